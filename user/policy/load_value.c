/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values of a policy file: mappings, lists, words, notes. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "policy/load.h"

int sl_load_no_memory(struct sl_loader *loader)
{
	return sl_err_sys(loader->source.err, ENOMEM, "reading a policy");
}

int sl_load_note(struct sl_loader *loader, enum sl_note_kind kind, struct sl_position at,
		 const char *fmt, ...)
{
	char text[256], safe[SL_ESCAPE_MAX(sizeof(text))];
	struct sl_policy_note *note;
	va_list args;

	if (loader->notes.count == SL_POLICY_NOTES_MAX) {
		loader->policy->notes_dropped++;
		return 0;
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	sl_escape_text(safe, sizeof(safe), text);
	note = sl_array_add(&loader->notes);
	if (!note)
		return sl_load_no_memory(loader);
	note->kind = kind;
	note->at = at;
	note->text = sl_arena_text(loader->arena, safe, strlen(safe));
	return note->text ? 0 : sl_load_no_memory(loader);
}

static bool is_null(const struct sl_yaml_node *node)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

	for (size_t i = 0; node->plain && i < ARRAY_SIZE(nulls); i++) {
		if (!strcmp(node->text, nulls[i]))
			return true;
	}
	return false;
}

/* Refuses aliases, tags, and what is of another kind than expected. */
static int check_kind(struct sl_loader *loader, const struct sl_yaml_node *node,
		      enum sl_yaml_kind kind, const char *what)
{
	static const char *const names[] = { "text", "a list", "a mapping", "an alias" };
	const struct sl_yaml_source *source = &loader->source;

	if (node->kind == SL_YAML_ALIAS) {
		sl_yaml_fail(source, EINVAL, node->at, node->text, "an alias");
		return sl_err_hint(source->err, "aliases (*name) are not expanded in a policy: "
						"write the value out");
	}
	if (node->tagged) {
		sl_yaml_fail(source, EINVAL, node->at, NULL, "a tag");
		return sl_err_hint(source->err, "tags (!!type) have no meaning in a policy: "
						"remove it");
	}
	if (node->kind == (uint8_t)kind && (kind != SL_YAML_SCALAR || !is_null(node)))
		return 0;
	if (node->kind == SL_YAML_SCALAR && is_null(node))
		return sl_yaml_fail(source, EINVAL, node->at, NULL,
				    "%s: nothing is given, expected is %s", what, names[kind]);
	return sl_yaml_fail(source, EINVAL, node->at,
			    node->kind == SL_YAML_SCALAR ? node->text : NULL,
			    "%s: %s, expected is %s", what, names[node->kind], names[kind]);
}

int sl_load_is_map(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what)
{
	return check_kind(loader, node, SL_YAML_MAP, what);
}

bool sl_load_refused(const struct sl_loader *loader, const struct sl_load_key *key)
{
	return key->refused && !(key->inspected && loader->inspects);
}

static int unknown_key(struct sl_loader *loader, const struct sl_yaml_node *key, const char *what,
		       const struct sl_load_key *keys)
{
	char list[256];
	size_t used = 0;

	for (size_t i = 0; keys[i].name && used < sizeof(list); i++) {
		if (!keys[i].refused && !keys[i].notice) /* those of sluice's own */
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", keys[i].name);
	}
	sl_yaml_fail(&loader->source, EINVAL, key->at, key->text, "%s: unknown key", what);
	return sl_err_hint(loader->source.err, "expected is one of: %s", list);
}

static int take_key(struct sl_loader *loader, const struct sl_yaml_node *key, const char *what,
		    const struct sl_load_key *keys, const struct sl_yaml_node **seen)
{
	const struct sl_yaml_source *source = &loader->source;
	size_t i = 0;
	int ret = check_kind(loader, key, SL_YAML_SCALAR, what);

	if (ret)
		return ret;
	while (keys[i].name && strcmp(keys[i].name, key->text) != 0)
		i++;
	if (!keys[i].name)
		return unknown_key(loader, key, what, keys);
	if (seen[i]) {
		sl_yaml_fail(source, EINVAL, key->at, key->text,
			     "%s: the key is there twice, first on line %u", what,
			     seen[i]->at.line);
		return sl_err_hint(source->err, "which one counts is not guessed: make them one");
	}
	seen[i] = key;
	if (sl_load_refused(loader, &keys[i])) {
		sl_yaml_fail(source, EINVAL, key->at, key->text, "%s: sluice can't enforce the key",
			     what);
		return sl_err_hint(source->err, "%s", keys[i].refused);
	}
	if (keys[i].notice)
		return sl_load_note(loader, SL_NOTE_NOTICE, key->at, "'%s' %s", key->text,
				    keys[i].notice);
	return 0;
}

int sl_load_map(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		const struct sl_load_key *keys, const struct sl_yaml_node **values)
{
	const struct sl_yaml_node *seen[SL_LOAD_KEYS_MAX] = { NULL };
	const struct sl_yaml_node *key, *value;
	int ret = sl_load_is_map(loader, node, what);

	if (ret)
		return ret;
	for (key = sl_yaml_first(loader->yaml, node); key;
	     key = sl_yaml_next(loader->yaml, value)) {
		value = sl_yaml_next(loader->yaml, key);
		ret = take_key(loader, key, what, keys, seen);
		if (ret)
			return ret;
		for (size_t i = 0; keys[i].name; i++) {
			if (seen[i] == key)
				values[i] = value;
		}
	}
	return 0;
}

int sl_load_list(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		 size_t max, size_t size, sl_load_item item, const void **out, size_t *count)
{
	_cleanup_array_ struct sl_array array = { .item = size };
	int ret = check_kind(loader, node, SL_YAML_LIST, what);

	if (ret)
		return ret;
	for (const struct sl_yaml_node *child = sl_yaml_first(loader->yaml, node); child;
	     child = sl_yaml_next(loader->yaml, child)) {
		void *element;

		if (array.count == max)
			return sl_yaml_fail(&loader->source, E2BIG, child->at, NULL,
					    "%s: more than %zu; one list may have no more", what,
					    max);
		element = sl_array_add(&array);
		if (!element)
			return sl_load_no_memory(loader);
		ret = item(loader, child, element);
		if (ret)
			return ret;
	}
	*out = sl_arena_copy(loader->arena, array.data, array.count * size);
	*count = array.count;
	return *out ? 0 : sl_load_no_memory(loader);
}

int sl_load_text(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		 const char **out)
{
	int ret = check_kind(loader, node, SL_YAML_SCALAR, what);

	if (ret)
		return ret;
	if (!node->text[0])
		return sl_yaml_fail(&loader->source, EINVAL, node->at, NULL, "%s: empty text",
				    what);
	*out = node->text;
	return 0;
}

int sl_load_bool(struct sl_loader *loader, const struct sl_yaml_node *node, bool *out)
{
	bool yes = node && !strcmp(node->text, "true");

	if (!node)
		return 0;
	if (node->kind != SL_YAML_SCALAR || !node->plain || node->tagged ||
	    (!yes && strcmp(node->text, "false") != 0))
		return sl_yaml_fail(&loader->source, EINVAL, node->at, node->text,
				    "expected is true or false");
	*out = yes;
	return 0;
}

int sl_load_word(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		 const char *const *words, size_t count, unsigned int *out)
{
	char list[128];
	size_t used = 0;
	const char *text = "";
	int ret;

	if (!node)
		return 0;
	ret = sl_load_text(loader, node, what, &text);
	if (ret)
		return ret;
	for (unsigned int i = 0; i < count; i++) {
		if (!strcmp(words[i], text)) {
			*out = i;
			return 0;
		}
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 i ? " or " : "", words[i]);
	}
	return sl_yaml_fail(&loader->source, EINVAL, node->at, text, "%s: expected is %s", what,
			    list);
}

int sl_load_keep(struct sl_loader *loader, const char *text, const char **out)
{
	const char *copy = sl_arena_text(loader->arena, text, strlen(text));

	if (!copy)
		return sl_load_no_memory(loader);
	*out = copy;
	return 0;
}
