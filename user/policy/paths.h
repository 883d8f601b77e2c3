/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of path patterns with what they grant. Add all, then close; look-ups after that.
 * Private to the compiler.
 */
#ifndef SLUICE_USER_POLICY_PATHS_H
#define SLUICE_USER_POLICY_PATHS_H

#include "base/intern.h"
#include "policy/compile.h"

struct sl_paths {
	struct sl_intern *texts[SL_PATH_KIND_MAX]; /* a prefix ends in '/' */
	struct sl_array grants[SL_PATH_KIND_MAX];  /* struct sl_grant, by number */
};

int sl_paths_init(struct sl_paths *paths);
void sl_paths_clear(struct sl_paths *paths);

/* A pattern that is there already gets the grant too. -E2BIG: SL_POLICY_GLOBS_MAX. */
int sl_paths_add(struct sl_paths *paths, const char *pattern, const struct sl_grant *grant);

/* Makes longest match alone answer: adds to each row what the prefixes around it grant. */
void sl_paths_close(struct sl_paths *paths);

/* All that the path is granted, by globs too. */
void sl_paths_find(const struct sl_paths *paths, const char *path, struct sl_grant *out);

int sl_paths_each(const struct sl_paths *paths,
		  int (*row)(const struct sl_path_row *row, void *arg), void *arg);

#endif
