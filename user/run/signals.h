/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals of `sluice run`: those for the command are blocked and read from a descriptor
 * (run/loop.h), and what the caller had ignored must not get in the way. The command gets
 * all of it as the caller had it.
 */
#ifndef SLUICE_USER_RUN_SIGNALS_H
#define SLUICE_USER_RUN_SIGNALS_H

#include <signal.h>

/* As the caller had it. */
struct sl_run_signals {
	sigset_t mask;
	struct sigaction chld, pipe;
};

/* Signals that are passed on to the command, and SIGCHLD. */
void sl_run_signals_passed(sigset_t *set);

void sl_run_signals_take(struct sl_run_signals *old);
void sl_run_signals_restore(const struct sl_run_signals *old);

#endif
