/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Patterns of paths (match.h). */
#include <errno.h>
#include <string.h>

#include "policy/match.h"
#include "policy/policy.h"

static int check_components(const char *pattern, struct sl_err *err)
{
	for (const char *at = pattern; *at; at += strcspn(at, "/")) {
		size_t len = strcspn(++at, "/");

		if (len == 0 && !*at) {
			sl_err_set(err, EINVAL, "a path that ends in '/' names no file");
			return sl_err_hint(err, "\"/d/**\" matches all below /d");
		}
		if (len == 0)
			sl_err_set(err, EINVAL, "'//' can never match");
		else if (len == 1 && at[0] == '.')
			sl_err_set(err, EINVAL, "a component '.' can never match");
		else if (len == 2 && at[0] == '.' && at[1] == '.')
			sl_err_set(err, EINVAL, "a component '..' can never match");
		else
			continue;
		return sl_err_hint(err, "write the path as the kernel shows it: absolute, each "
					"component once");
	}
	return 0;
}

int sl_path_check(const char *pattern, struct sl_err *err)
{
	size_t len = strlen(pattern);
	unsigned int wildcards = 0;

	if (pattern[0] != '/') {
		sl_err_set(err, EINVAL, "a path that is not absolute can never match");
		return sl_err_hint(err, "begin it with '/'; \"/**/name\" matches a name in any "
					"directory");
	}
	if (len > SL_POLICY_PATH_MAX)
		return sl_err_set(err, E2BIG,
				  "a path of %zu bytes; at most %u (PATH_MAX) are "
				  "possible",
				  len, SL_POLICY_PATH_MAX);
	for (const char *at = strchr(pattern, '*'); at; at = strchr(at, '*')) {
		at += strspn(at, "*");
		wildcards++;
	}
	if (wildcards > SL_POLICY_WILDCARDS_MAX)
		return sl_err_set(err, E2BIG, "%u wildcards in one path; at most %u are taken",
				  wildcards, SL_POLICY_WILDCARDS_MAX);
	return check_components(pattern, err);
}

/*
 * reach[i]: the pattern so far can end after i bytes of the text. All that is reachable lies
 * in low to high; false when nothing is.
 */
struct reach {
	char at[SL_POLICY_PATH_MAX + 2];
	size_t low, high;
};

static bool step_byte(struct reach *reach, const char *text, size_t len, char byte)
{
	size_t low = len + 1, high = 0;

	for (size_t i = reach->high + 1; i-- > reach->low;) {
		bool next = reach->at[i] && i < len && text[i] == byte;

		reach->at[i + 1] = next;
		if (next) {
			low = i + 1;
			high = high ? high : i + 1;
		}
	}
	reach->at[reach->low] = 0;
	reach->low = low;
	reach->high = high;
	return low <= len;
}

/* Extends what is reachable over any bytes, or over any but '/'. */
static void step_star(struct reach *reach, const char *text, size_t len, bool across)
{
	size_t high = across ? len : reach->high;

	for (size_t i = reach->low; i < len; i++) {
		bool next = reach->at[i] && (across || text[i] != '/');

		if (i + 1 > reach->high)
			reach->at[i + 1] = 0;
		if (i >= reach->high && !next)
			break;
		reach->at[i + 1] |= next;
		if (next && i + 1 > high)
			high = i + 1;
	}
	reach->high = high;
}

static bool glob(const char *pattern, const char *text, size_t len)
{
	struct reach reach;

	reach.at[0] = 1;
	reach.low = reach.high = 0;
	while (*pattern) {
		size_t stars = strspn(pattern, "*");

		if (!stars) {
			if (!step_byte(&reach, text, len, *pattern++))
				return false;
			continue;
		}
		step_star(&reach, text, len, stars > 1);
		pattern += stars;
	}
	return reach.high == len;
}

bool sl_path_match(const char *pattern, const char *path)
{
	size_t fixed = strcspn(pattern, "*"), len = strlen(path), tail;
	const char *last = strrchr(pattern, '*');

	if (!last)
		return !strcmp(pattern, path);
	/* What is fixed at both ends decides nearly all cases. */
	tail = strlen(last + 1);
	if (len > SL_POLICY_PATH_MAX || len < fixed + tail || memcmp(pattern, path, fixed) != 0 ||
	    memcmp(last + 1, path + len - tail, tail) != 0)
		return false;
	return glob(pattern + fixed, path + fixed, len - fixed);
}

enum sl_path_kind sl_path_kind(const char *pattern)
{
	const char *star = strchr(pattern, '*');

	if (!star)
		return SL_PATH_EXACT;
	if (star > pattern && star[-1] == '/' && !strcmp(star, "**"))
		return SL_PATH_PREFIX;
	return SL_PATH_GLOB;
}

bool sl_path_fits(const char *pattern)
{
	size_t len = strlen(pattern);

	switch (sl_path_kind(pattern)) {
	case SL_PATH_EXACT:
		return len + 1 <= SL_GUARD_PATH_MAX;
	case SL_PATH_PREFIX:
		return len - 2 <= SL_GUARD_PATH_MAX; /* without its "**" */
	default:
		return false;
	}
}
