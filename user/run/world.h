/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of one `sluice run`: a private set and a cgroup below the caller's own, with
 * a keeper process that kills the cgroup and removes both when `sluice run` dies.
 *
 * What a killed run and a killed keeper leave is found by the next run: a private set
 * whose directory nobody locks. A symbolic link in it names the cgroup, and is there
 * before the cgroup is.
 */
#ifndef SLUICE_USER_RUN_WORLD_H
#define SLUICE_USER_RUN_WORLD_H

#include <limits.h>
#include <sys/types.h>

#include "kernel/set.h"

struct sl_run_world {
	char dir[PATH_MAX];    /* of the set */
	char cgroup[PATH_MAX]; /* absolute */
	struct sl_set *set;
	unsigned int sandbox;
	pid_t keeper;
	int keeper_fd; /* its end tells the keeper to clean up */
};

/*
 * Removes stale worlds, then makes one; of `options` the sizes count (0: 16,384 processes,
 * else the set's defaults). On failure nothing is left.
 */
int sl_run_world_make(struct sl_run_world *world, const char *name,
		      const struct sl_set_options *options, struct sl_err *err);

/* Kills what is in the cgroup, removes all, ends the keeper. */
void sl_run_world_end(struct sl_run_world *world);

#endif
