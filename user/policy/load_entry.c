/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Entries of network_policies and their binaries. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "policy/load.h"
#include "policy/match.h"

static int take_path(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		     const char **out)
{
	struct sl_err bare = { 0 };
	const char *text = NULL;
	int ret = sl_load_text(loader, node, what, &text);

	if (ret)
		return ret;
	if (sl_path_check(text, &bare)) {
		sl_err_prefix(&bare, "%s", what);
		return sl_yaml_locate(&loader->source, node->at, text, &bare);
	}
	return sl_load_keep(loader, text, out);
}

int sl_sha256_parse(const char *text, uint8_t *out)
{
	return sl_hex_parse(text, out, SL_SHA256_LEN);
}

static int take_sha256(struct sl_loader *loader, const struct sl_yaml_node *node,
		       const uint8_t **out)
{
	uint8_t bytes[SL_SHA256_LEN];
	const char *text = NULL;
	int ret = node ? sl_load_text(loader, node, "sha256", &text) : 0;

	if (ret || !node)
		return ret;
	if (sl_sha256_parse(text, bytes)) {
		sl_yaml_fail(&loader->source, EINVAL, node->at, text,
			     "sha256: not a SHA-256 digest");
		return sl_err_hint(loader->source.err, "expected are 64 hexadecimal digits, as "
						       "sha256sum prints them");
	}
	*out = sl_arena_copy(loader->arena, bytes, sizeof(bytes));
	return *out ? 0 : sl_load_no_memory(loader);
}

/* A script has but its name, which user space can tell the kernel only if it fits. */
static int check_script(struct sl_loader *loader, const struct sl_yaml_node *node,
			const char *script)
{
	if (sl_path_kind(script) == SL_PATH_GLOB || sl_path_fits(script))
		return 0;
	sl_yaml_fail(&loader->source, E2BIG, node->at, script,
		     "script: %zu bytes; at most %u are possible", strlen(script),
		     SL_GUARD_PATH_MAX - 1U);
	return sl_err_hint(loader->source.err, "name a directory above it: a prefix that ends in "
					       "\"/**\" matches longer names too");
}

int sl_load_binary(struct sl_loader *loader, const struct sl_yaml_node *node, void *element)
{
	static const struct sl_load_key keys[] = {
		{ .name = "path" },
		{ .name = "script" },
		{ .name = "sha256" },
		{ .name = "descendants" },
		{ .name = "strict" },
		{ .name = "harness", .notice = "has no meaning any more, in OpenShell neither" },
		{ 0 },
	};
	const struct sl_yaml_node *values[ARRAY_SIZE(keys)] = { NULL };
	struct sl_policy_binary *binary = element;
	int ret = sl_load_map(loader, node, "binary", keys, values);

	binary->at = node->at;
	binary->descendants = true;
	if (!ret && values[0])
		ret = take_path(loader, values[0], "path", &binary->path);
	else if (!ret)
		ret = sl_yaml_fail(&loader->source, EINVAL, node->at, NULL,
				   "binary: no `path`, without which it can never match");
	if (!ret && values[1])
		ret = take_path(loader, values[1], "script", &binary->script);
	if (!ret && values[1])
		ret = check_script(loader, values[1], binary->script);
	if (!ret)
		ret = take_sha256(loader, values[2], &binary->sha256);
	if (!ret)
		ret = sl_load_bool(loader, values[3], &binary->descendants);
	return ret ? ret : sl_load_bool(loader, values[4], &binary->strict);
}

/* Keys and names go to logs and terminals: short, and nothing that needs escaping. */
static int take_label(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		      const char **out)
{
	const char *text = NULL;
	uint32_t code = 0;
	int ret = sl_load_text(loader, node, what, &text);

	if (ret)
		return ret;
	if (node->len > SL_POLICY_KEY_MAX)
		return sl_yaml_fail(&loader->source, E2BIG, node->at, text,
				    "%s: %u bytes; at most %u are possible", what, node->len,
				    SL_POLICY_KEY_MAX);
	for (size_t i = 0; i < node->len; i += sl_utf8_decode(text + i, node->len - i, &code)) {
		sl_utf8_decode(text + i, node->len - i, &code);
		if (!sl_utf8_safe(code))
			return sl_yaml_fail(&loader->source, EINVAL, node->at, text,
					    "%s: a control or invisible character", what);
	}
	return sl_load_keep(loader, text, out);
}

static int check_entry(struct sl_loader *loader, const struct sl_policy_entry *entry)
{
	int ret = 0;

	if (!entry->binary_count)
		ret = sl_load_note(loader, SL_NOTE_WARNING, entry->at,
				   "'%s' has no binaries: it can never match", entry->key);
	if (!ret && !entry->endpoint_count && !entry->listen_count)
		ret = sl_load_note(loader, SL_NOTE_WARNING, entry->at,
				   "'%s' has no endpoints: it can never match", entry->key);
	for (size_t i = 0; !ret && i < entry->binary_count; i++) {
		if (!strcmp(entry->binaries[i].path, "/**"))
			ret = sl_load_note(loader, SL_NOTE_WARNING, entry->binaries[i].at,
					   "'/**' in '%s' is every binary", entry->key);
	}
	return ret;
}

int sl_load_entry(struct sl_loader *loader, const struct sl_yaml_node *key,
		  const struct sl_yaml_node *node, struct sl_policy_entry *entry)
{
	static const struct sl_load_key keys[] = { { .name = "name" },
						   { .name = "endpoints" },
						   { .name = "listen" },
						   { .name = "binaries" },
						   { 0 } };
	const struct sl_yaml_node *values[ARRAY_SIZE(keys)] = { NULL };
	int ret = take_label(loader, key, "an entry's key", &entry->key);

	entry->at = key->at;
	if (!ret)
		ret = sl_load_map(loader, node, "entry", keys, values);
	entry->name = entry->key;
	if (!ret && values[0])
		ret = take_label(loader, values[0], "name", &entry->name);
	if (!ret && values[1])
		ret = sl_load_list(loader, values[1], "endpoints", SIZE_MAX,
				   sizeof(*entry->endpoints), sl_load_endpoint,
				   (const void **)&entry->endpoints, &entry->endpoint_count);
	if (!ret && values[2])
		ret = sl_load_list(loader, values[2], "listen", SIZE_MAX, sizeof(*entry->listens),
				   sl_load_listen, (const void **)&entry->listens,
				   &entry->listen_count);
	if (!ret && values[3])
		ret = sl_load_list(loader, values[3], "binaries", SIZE_MAX,
				   sizeof(*entry->binaries), sl_load_binary,
				   (const void **)&entry->binaries, &entry->binary_count);
	return ret ? ret : check_entry(loader, entry);
}
