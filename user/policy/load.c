/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/intern.h"
#include "policy/load.h"

#define ELSEWHERE "is not sluice's concern and left alone"

const char *const sl_policy_mode_names[SL_POLICY_MODE_MAX] = {
	[SL_POLICY_ENFORCE] = "enforce",
	[SL_POLICY_AUDIT] = "audit",
};
const char *const sl_transport_names[SL_TRANSPORT_MAX] = {
	[SL_TRANSPORT_TCP] = "tcp",
	[SL_TRANSPORT_UDP] = "udp",
};
const char *const sl_note_kind_names[SL_NOTE_KIND_MAX] = {
	[SL_NOTE_NOTICE] = "notice",
	[SL_NOTE_WARNING] = "warning",
};

enum key { KEY_VERSION, KEY_MODE, KEY_ESTABLISHED, KEY_INTEGRITY, KEY_NETWORK_POLICIES };

static const struct sl_load_key top_keys[] = {
	{ .name = "version" },
	{ .name = "mode" },
	{ .name = "established" },
	{ .name = "integrity" },
	{ .name = "network_policies" },
	{ .name = "filesystem_policy", .notice = ELSEWHERE },
	{ .name = "landlock", .notice = ELSEWHERE },
	{ .name = "process", .notice = ELSEWHERE },
	{ .name = "inference", .notice = ELSEWHERE },
	{ .name = "network_middlewares",
	  .refused = "it asks for handlers in the path of requests, and no inspecting proxy is "
		     "configured: remove it, or the endpoints that need it" },
	{ 0 },
};

void sl_policy_free(struct sl_policy **policy)
{
	if (!policy || !*policy)
		return;
	sl_arena_free(&(*policy)->arena);
	free(*policy);
	*policy = NULL;
}

static int take_version(struct sl_loader *loader, const struct sl_yaml_node *root,
			const struct sl_yaml_node *node)
{
	const char *text = NULL;
	int ret;

	if (!node) {
		sl_yaml_fail(&loader->source, EINVAL, root->at, NULL, "no `version`");
		return sl_err_hint(loader->source.err, "expected is `version: 1`");
	}
	ret = sl_load_text(loader, node, "version", &text);
	if (!ret && strcmp(text, "1") != 0)
		ret = sl_yaml_fail(&loader->source, EINVAL, node->at, text,
				   "version: expected is 1, the only one there is");
	return ret;
}

/* The keys are numbered as they are interned: the number of a known one is its entry. */
static int take_entry(struct sl_loader *loader, struct sl_intern *keys, struct sl_array *entries,
		      const struct sl_yaml_node *key, const struct sl_yaml_node *value)
{
	struct sl_policy_entry *entry;
	bool added = false;
	uint32_t id = sl_intern_add(keys, key->text, key->len, &added);

	if (id == SL_INTERN_NONE)
		return sl_load_no_memory(loader);
	if (!added && key->kind == SL_YAML_SCALAR) {
		entry = sl_array_at(entries, id);
		sl_yaml_fail(&loader->source, EINVAL, key->at, key->text,
			     "network_policies: the key is there twice, first on line %u",
			     entry->at.line);
		return sl_err_hint(loader->source.err, "name one of the entries otherwise, or make "
						       "them one");
	}
	if (entries->count == SL_POLICY_ENTRIES_MAX)
		return sl_yaml_fail(&loader->source, E2BIG, key->at, key->text,
				    "more than %u entries; a policy may have no more",
				    SL_POLICY_ENTRIES_MAX);
	entry = sl_array_add(entries);
	return entry ? sl_load_entry(loader, key, value, entry) : sl_load_no_memory(loader);
}

static int take_entries(struct sl_loader *loader, const struct sl_yaml_node *node)
{
	_cleanup_array_ struct sl_array entries = SL_ARRAY(struct sl_policy_entry);
	_cleanup_(sl_intern_free) struct sl_intern *keys = NULL;
	const struct sl_yaml_node *key, *value;
	struct sl_policy *policy = loader->policy;
	int ret = sl_load_is_map(loader, node, "network_policies");

	if (ret)
		return ret;
	if (sl_intern_new(&keys))
		return sl_load_no_memory(loader);
	for (key = sl_yaml_first(loader->yaml, node); key && !ret;
	     key = sl_yaml_next(loader->yaml, value)) {
		value = sl_yaml_next(loader->yaml, key);
		ret = take_entry(loader, keys, &entries, key, value);
	}
	if (ret)
		return ret;
	policy->entry_count = entries.count;
	policy->entries = sl_arena_copy(loader->arena, entries.data, entries.count * entries.item);
	return policy->entries ? 0 : sl_load_no_memory(loader);
}

static int take_top(struct sl_loader *loader, const struct sl_yaml_node *root)
{
	static const char *const established[] = { "close", "keep" };
	static const char *const integrity[] = { "pins", "first-use" };
	const struct sl_yaml_node *values[ARRAY_SIZE(top_keys)] = { NULL };
	unsigned int mode = SL_POLICY_ENFORCE, keep = 0, first_use = 0;
	int ret = sl_load_map(loader, root, "policy", top_keys, values);

	if (!ret)
		ret = take_version(loader, root, values[KEY_VERSION]);
	if (!ret)
		ret = sl_load_word(loader, values[KEY_MODE], "mode", sl_policy_mode_names,
				   SL_POLICY_MODE_MAX, &mode);
	if (!ret)
		ret = sl_load_word(loader, values[KEY_ESTABLISHED], "established", established,
				   ARRAY_SIZE(established), &keep);
	if (!ret)
		ret = sl_load_word(loader, values[KEY_INTEGRITY], "integrity", integrity,
				   ARRAY_SIZE(integrity), &first_use);
	if (ret)
		return ret;
	loader->policy->mode = (enum sl_policy_mode)mode;
	loader->policy->keep_established = keep;
	loader->policy->first_use = first_use;
	if (values[KEY_NETWORK_POLICIES])
		ret = take_entries(loader, values[KEY_NETWORK_POLICIES]);
	if (!ret && !loader->policy->entry_count)
		ret = sl_load_note(loader, SL_NOTE_WARNING, root->at,
				   "no network_policies: everything is denied");
	return ret;
}

static int by_position(const void *a, const void *b)
{
	const struct sl_position *x = &((const struct sl_policy_note *)a)->at;
	const struct sl_position *y = &((const struct sl_policy_note *)b)->at;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (x->column > y->column) - (x->column < y->column);
}

static int load(struct sl_loader *loader, const char *text, size_t len)
{
	struct sl_policy *policy = loader->policy;
	int ret = sl_yaml_parse(&loader->yaml, &loader->source, text, len);

	if (!ret)
		ret = take_top(loader, sl_yaml_root(loader->yaml));
	if (ret)
		return ret;
	if (loader->notes.count)
		qsort(loader->notes.data, loader->notes.count, loader->notes.item, by_position);
	policy->note_count = loader->notes.count;
	policy->notes = sl_arena_copy(loader->arena, loader->notes.data,
				      loader->notes.count * loader->notes.item);
	policy->file =
		sl_arena_text(loader->arena, loader->source.file, strlen(loader->source.file));
	return policy->notes && policy->file ? 0 : sl_load_no_memory(loader);
}

int sl_policy_load_for(struct sl_policy **out, const char *text, size_t len, const char *file,
		       const struct sl_policy_options *options, struct sl_err *err)
{
	_cleanup_(sl_policy_free) struct sl_policy *policy = calloc(1, sizeof(*policy));
	/* The caller may not want the text, but messages are made from it in steps. */
	struct sl_err own = { 0 };
	struct sl_loader loader = {
		.source = { .file = file, .err = err ? err : &own },
		.policy = policy,
		.notes = SL_ARRAY(struct sl_policy_note),
		.inspects = options->inspects,
		.relayed = options->relayed,
	};
	int ret = -ENOMEM;

	if (!policy || sl_arena_new(&policy->arena))
		return sl_load_no_memory(&loader);
	loader.arena = policy->arena;
	ret = load(&loader, text, len);
	sl_yaml_free(&loader.yaml);
	sl_array_free(&loader.notes);
	if (!ret)
		*out = TAKE_PTR(policy);
	return ret;
}

static const struct sl_policy_options no_options;

int sl_policy_load(struct sl_policy **out, const char *text, size_t len, const char *file,
		   struct sl_err *err)
{
	return sl_policy_load_for(out, text, len, file, &no_options, err);
}

/* Reads at most one byte more than a policy may have: enough to see that it is too long. */
int sl_policy_read(const char *file, char **text, size_t *len, struct sl_err *err)
{
	const char *path = strcmp(file, "-") ? file : "/dev/stdin";
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t room = SL_POLICY_FILE_MAX + 1, used = 0;
	_cleanup_free_ char *data = NULL;
	char shown[SL_ESCAPE_MAX(128)];
	struct stat st;
	ssize_t n = -1;

	sl_escape_text(shown, sizeof(shown), file);
	if (fd < 0 || fstat(fd, &st))
		return sl_err_sys(err, errno, "opening %s", shown);
	if (S_ISREG(st.st_mode) && (size_t)st.st_size < room)
		room = (size_t)st.st_size + 1;
	data = malloc(room + 1);
	if (!data)
		return sl_err_sys(err, ENOMEM, "reading %s", shown);
	while (used < room) {
		n = read(fd, data + used, room - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sl_err_sys(err, errno, "reading %s", shown);
		if (n == 0)
			break;
		used += (size_t)n;
	}
	data[used] = '\0';
	*text = TAKE_PTR(data);
	*len = used;
	/* Too long: only the length is looked at, so that the message has the right one. */
	if (used > SL_POLICY_FILE_MAX && S_ISREG(st.st_mode) && (size_t)st.st_size > used)
		*len = (size_t)st.st_size;
	return 0;
}

int sl_policy_load_file_for(struct sl_policy **out, const char *file,
			    const struct sl_policy_options *options, struct sl_err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int ret = sl_policy_read(file, &text, &len, err);

	return ret ? ret : sl_policy_load_for(out, text, len, file, options, err);
}

int sl_policy_load_file(struct sl_policy **out, const char *file, struct sl_err *err)
{
	return sl_policy_load_file_for(out, file, &no_options, err);
}
