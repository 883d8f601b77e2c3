/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of one `sluice run`: a cgroup below the caller's own and a private set, or with
 * an agent a sandbox in the agent's set, and a keeper process that kills the cgroup and
 * removes both when `sluice run` dies.
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
#include "run/agent.h"

struct sl_run_world {
	char dir[PATH_MAX];         /* of the private set */
	char cgroup[PATH_MAX];      /* absolute */
	struct sl_run_agent *agent; /* borrowed; NULL: the set is private */
	struct sl_set *set;         /* NULL: not attached yet, with an agent */
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

/*
 * With an agent: makes the cgroup and the keeper; the sandbox is there after attach, whose
 * `cgroup` is filled in here. The set must have the sizes of `options`: -EEXIST.
 */
int sl_run_world_make_with(struct sl_run_world *world, struct sl_run_agent *agent,
			   struct sl_err *err);
int sl_run_world_attach(struct sl_run_world *world, const struct sl_run_attach *attach,
			const struct sl_set_options *options, struct sl_err *err);

/* Kills what is in the cgroup, removes all, ends the keeper. */
void sl_run_world_end(struct sl_run_world *world);

/* Last: closes the set, which readers of its events have borrowed. */
void sl_run_world_free(struct sl_run_world *world);

#endif
