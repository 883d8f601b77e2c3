/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns of paths and host names. Time is bounded by pattern length times text length,
 * whatever the two are.
 */
#ifndef SLUICE_USER_POLICY_MATCH_H
#define SLUICE_USER_POLICY_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* What the kernel can do with a path pattern. */
enum sl_path_kind {
	SL_PATH_EXACT,  /* no wildcard: a hash look-up */
	SL_PATH_PREFIX, /* "/d/" and then "**": longest prefix, if short enough */
	SL_PATH_GLOB,   /* all else: user space only */
	SL_PATH_KIND_MAX
};

/*
 * Checks a path pattern: absolute; no empty, "." or ".." component; not ending in '/'; not
 * longer than SL_POLICY_PATH_MAX; at most SL_POLICY_WILDCARDS_MAX wildcards. -EINVAL or
 * -E2BIG, err says what is wrong and what would be right, without position.
 */
int sl_path_check(const char *pattern, struct sl_err *err);

/*
 * "*" is any bytes but '/', also none; "**" any bytes. So "/d/" and "**" matches /d/a and
 * /d/a/b, not /d and not /dx/a. There is no escape: a path with a '*' in its name is
 * matched by a wildcard only.
 */
bool sl_path_match(const char *pattern, const char *path);

enum sl_path_kind sl_path_kind(const char *pattern);

/* Whether the kernel has room for an exact path or prefix (SL_GUARD_PATH_MAX); not for globs. */
bool sl_path_fits(const char *pattern);

/* Longest name in text form, without trailing dot (RFC 1035, 2.3.4), and longest label. */
#define SL_HOST_MAX 253
#define SL_LABEL_MAX 63

/*
 * A host name in normal form into dst (SL_HOST_MAX + 1 bytes): lower case, no trailing dot,
 * labels as in RFC 1123, 2.1, and '_' in any place: services have names with it (RFC 8552),
 * some hosts too; international names as A-labels ("xn--…") only. The pattern form takes a
 * wildcard first label. -EINVAL, err says why, without position. What looks like an IPv4
 * address is no name.
 */
int sl_host_normal(char *dst, const char *text, struct sl_err *err);
int sl_host_pattern_normal(char *dst, const char *text, struct sl_err *err);

/*
 * Of a name in normal form: "localhost" or what is below it, which is loopback without being
 * asked for (RFC 6761, 6.3).
 */
bool sl_host_is_local(const char *name);

bool sl_host_is_wild(const char *pattern);

/* Both in normal form. A wildcard never matches the name behind it. */
bool sl_host_match(const char *pattern, const char *name);

#endif
