/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "policy/bits.h"
#include "policy/paths.h"

int sl_paths_init(struct sl_paths *paths)
{
	int ret = 0;

	for (int kind = 0; kind < SL_PATH_KIND_MAX && !ret; kind++) {
		paths->grants[kind] = (struct sl_array)SL_ARRAY(struct sl_grant);
		ret = sl_intern_new(&paths->texts[kind]);
	}
	return ret;
}

void sl_paths_clear(struct sl_paths *paths)
{
	for (int kind = 0; kind < SL_PATH_KIND_MAX; kind++) {
		sl_intern_free(&paths->texts[kind]);
		sl_array_free(&paths->grants[kind]);
	}
}

int sl_paths_add(struct sl_paths *paths, const char *pattern, const struct sl_grant *grant)
{
	enum sl_path_kind kind = sl_path_kind(pattern);
	size_t len = strlen(pattern);
	struct sl_grant *row;
	bool added = false;
	uint32_t id;

	if (!sl_path_fits(pattern))
		kind = SL_PATH_GLOB;
	else if (kind == SL_PATH_PREFIX)
		len -= 2;
	if (kind == SL_PATH_GLOB && sl_intern_count(paths->texts[kind]) == SL_POLICY_GLOBS_MAX &&
	    sl_intern_find(paths->texts[kind], pattern, len) == SL_INTERN_NONE)
		return -E2BIG;
	id = sl_intern_add(paths->texts[kind], pattern, len, &added);
	if (id == SL_INTERN_NONE)
		return -ENOMEM;
	row = added ? sl_array_add(&paths->grants[kind]) : sl_array_at(&paths->grants[kind], id);
	if (!row)
		return -ENOMEM;
	sl_grant_or(row, grant);
	return 0;
}

/*
 * The grant of the longest prefix row that covers the first `len` bytes of a path; NULL: no
 * row does.
 */
static struct sl_grant *prefix_grant(const struct sl_paths *paths, const char *path, size_t len)
{
	const struct sl_intern *texts = paths->texts[SL_PATH_PREFIX];

	if (!sl_intern_count(texts))
		return NULL;
	if (len > SL_GUARD_PATH_MAX)
		len = SL_GUARD_PATH_MAX;
	for (; len > 0; len--) {
		uint32_t id;

		if (path[len - 1] != '/')
			continue;
		id = sl_intern_find(texts, path, len);
		if (id != SL_INTERN_NONE)
			return sl_array_at(&paths->grants[SL_PATH_PREFIX], id);
	}
	return NULL;
}

void sl_paths_close(struct sl_paths *paths)
{
	struct sl_array *prefixes = &paths->grants[SL_PATH_PREFIX];
	struct sl_array *exact = &paths->grants[SL_PATH_EXACT];

	/* Shorter ones first, so that the next shorter one is complete: by length. */
	for (size_t want = 1; want <= SL_GUARD_PATH_MAX; want++) {
		for (uint32_t i = 0; i < prefixes->count; i++) {
			size_t len = 0;
			const char *text = sl_intern_at(paths->texts[SL_PATH_PREFIX], i, &len);
			const struct sl_grant *cover;

			if (len != want)
				continue;
			cover = prefix_grant(paths, text, len - 1);
			if (cover)
				sl_grant_or(sl_array_at(prefixes, i), cover);
		}
	}
	for (uint32_t i = 0; i < exact->count; i++) {
		size_t len = 0;
		const char *text = sl_intern_at(paths->texts[SL_PATH_EXACT], i, &len);
		const struct sl_grant *cover = prefix_grant(paths, text, len);

		if (cover)
			sl_grant_or(sl_array_at(exact, i), cover);
	}
}

void sl_paths_find(const struct sl_paths *paths, const char *path, struct sl_grant *out)
{
	size_t len = strlen(path);
	uint32_t id = sl_intern_find(paths->texts[SL_PATH_EXACT], path, len);
	const struct sl_grant *grant;

	if (id != SL_INTERN_NONE)
		grant = sl_array_at(&paths->grants[SL_PATH_EXACT], id);
	else
		grant = prefix_grant(paths, path, len);
	memset(out, 0, sizeof(*out));
	if (grant)
		*out = *grant;
	for (uint32_t i = 0; i < sl_intern_count(paths->texts[SL_PATH_GLOB]); i++) {
		if (sl_path_match(sl_intern_at(paths->texts[SL_PATH_GLOB], i, NULL), path))
			sl_grant_or(out, sl_array_at(&paths->grants[SL_PATH_GLOB], i));
	}
}

int sl_paths_each(const struct sl_paths *paths,
		  int (*row)(const struct sl_path_row *row, void *arg), void *arg)
{
	int ret = 0;

	for (int kind = 0; kind < SL_PATH_KIND_MAX; kind++) {
		for (uint32_t i = 0; i < paths->grants[kind].count && !ret; i++) {
			struct sl_path_row at = { .kind = (enum sl_path_kind)kind };

			at.text = sl_intern_at(paths->texts[kind], i, &at.len);
			at.grant = sl_array_at(&paths->grants[kind], i);
			ret = row(&at, arg);
		}
	}
	return ret;
}
