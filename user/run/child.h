/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starting the command of `sluice run` inside its cgroup. */
#ifndef SLUICE_USER_RUN_CHILD_H
#define SLUICE_USER_RUN_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "run/mediate.h"
#include "run/signals.h"

/* Who the command runs as. */
struct sl_run_user {
	bool change;
	uid_t uid;
	gid_t gid;
	char name[64]; /* for supplementary groups; empty: none */
	char home[256];
};

/*
 * "UID[:GID]" or a name; NULL: the user that sudo was called by, or nobody to change to.
 * -EINVAL, -ENOENT with the cause.
 */
int sl_run_user_find(struct sl_run_user *user, const char *text, struct sl_err *err);

struct sl_reach;

struct sl_run_start {
	const char *cgroup;
	const struct sl_run_user *user;
	const struct sl_run_signals *signals;
	struct sl_mediate *mediate;   /* NULL: observed only; else it changes the user as well */
	struct sl_files *files;       /* for what is held at exec; may be NULL */
	const struct sl_reach *reach; /* whose namespace it enters; NULL: none */
	char **argv;
};

/*
 * Forks, enters the cgroup, becomes the user, restores the signals, execs. Returns
 * after the exec has succeeded, with *pid; otherwise -errno of what failed, the child
 * reaped, and *exec_failed says whether it was the exec itself.
 */
int sl_run_child_start(pid_t *pid, const struct sl_run_start *start, bool *exec_failed,
		       struct sl_err *err);

#endif
