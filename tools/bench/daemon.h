/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent, as a program of its own with its places below a directory in /tmp and the set
 * of the world: sl_daemon_start(), sandboxes through it (guest.h), sl_daemon_stop(). It is
 * $SLUICED, or `sluiced` beside this program. It ends with this process.
 */
#ifndef SLUICE_BENCH_DAEMON_H
#define SLUICE_BENCH_DAEMON_H

#include "child.h"
#include "world.h"

struct sl_daemon {
	struct sl_child keeper;
	char dir[64], socket[96], state[96], log[96];
	const char *set_dir;          /* the world's */
	unsigned long listener_flags; /* for filters, as this kernel takes them */
};

/* Returns when it can be called. */
int sl_daemon_start(struct sl_daemon *daemon, const struct sl_world *world, struct sl_err *err);

/* Its worker's pid, 0: there is none just now. */
pid_t sl_daemon_worker(const struct sl_daemon *daemon);

/* Ends it, and removes what it had, its set too. Zeroed ones are fine. */
void sl_daemon_stop(struct sl_daemon *daemon);
#define _cleanup_daemon_ __attribute__((cleanup(sl_daemon_stop)))

#endif
