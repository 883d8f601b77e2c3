/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The loop of `sluice run`: events, signals, and the end of the command. */
#ifndef SLUICE_USER_RUN_LOOP_H
#define SLUICE_USER_RUN_LOOP_H

#include "event/stream.h"
#include "kernel/ring.h"
#include "run/world.h"

struct sl_mediate;

/*
 * To be called with the signals taken (run/signals.h); they are passed on to the command.
 * Runs until the command `pid` has ended; *status is what waitpid(2) says. With
 * `mediate` may be NULL. With
 * `wait_all` until nothing is left in the cgroup, else what is left is killed and named.
 */
int sl_run_loop(struct sl_run_world *world, struct sl_ring *ring, struct sl_event_stream *stream,
		struct sl_mediate *mediate, pid_t pid, bool wait_all, int *status,
		struct sl_err *err);

#endif
