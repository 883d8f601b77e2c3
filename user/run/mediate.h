/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands between the command of `sluice run --policy` and the system beside the guard:
 * containment, the seccomp filter, and the broker that answers what the filter holds.
 *
 *	sl_mediate_new(&m, &options, &err);
 *	fork;  child: sl_mediate_child(m, &err), exec
 *	       parent: sl_mediate_parent(m, files, child, &err)
 *	loop: sl_mediate_tick(m)
 *	sl_mediate_free(&m);
 *
 * What the filter refuses is told by way of the set, like what the guard denies.
 */
#ifndef SLUICE_USER_RUN_MEDIATE_H
#define SLUICE_USER_RUN_MEDIATE_H

#include "broker/contain.h"
#include "guard/files.h"

struct sl_mediate;

struct sl_mediate_options {
	struct sl_contain_options contain;
	unsigned int hold;  /* enum sl_hold */
	bool prepare;       /* held calls have files to be looked at: listen() is one of them */
	bool io_uring;      /* allow it, though its sockets of other families are not mediated */
	struct sl_set *set; /* borrowed: who a task is, as the kernel recorded it */
	unsigned int sandbox;
	/*
	 * In place of a broker of its own: attaches the sandbox with the listener (borrowed; -1:
	 * none), and lets the child in. NULL: `set` and `sandbox` are there.
	 */
	int (*attach)(void *ctx, int listener, pid_t child, struct sl_err *err);
	void *ctx;
};

int sl_mediate_new(struct sl_mediate **out, const struct sl_mediate_options *options,
		   struct sl_err *err);
void sl_mediate_free(struct sl_mediate **mediate);

/* What the command loses, a sentence each. */
unsigned int sl_mediate_lines(const struct sl_mediate *mediate, const char **lines,
			      unsigned int max);

/* In the child, right before exec. */
int sl_mediate_child(struct sl_mediate *mediate, struct sl_err *err);

/*
 * Takes over the listener of `child` and lets it go on. `files` is borrowed; NULL: none to
 * look at.
 */
int sl_mediate_parent(struct sl_mediate *mediate, struct sl_files *files, pid_t child,
		      struct sl_err *err);

/* Whether the child is let into its cgroup by the attach, not before. */
bool sl_mediate_attaches(const struct sl_mediate *mediate);

/* About once a second. */
void sl_mediate_tick(struct sl_mediate *mediate);

#endif
