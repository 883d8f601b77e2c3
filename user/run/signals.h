/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals of `sluice run`: those for the command are blocked and read from a descriptor
 * (run/loop.h), and what the caller had ignored must not get in the way. The command gets
 * all of it as the caller had it.
 */
#ifndef SLUICE_USER_RUN_SIGNALS_H
#define SLUICE_USER_RUN_SIGNALS_H

#include <signal.h>
#include <sys/types.h>

/* As the caller had it. */
struct sl_run_signals {
	sigset_t mask;
	struct sigaction chld, pipe;
};

/* Signals that are passed on to the command, and SIGCHLD. */
void sl_run_signals_passed(sigset_t *set);

void sl_run_signals_take(struct sl_run_signals *old);

/*
 * While there is no command yet, nobody reads the descriptor: the first signal that is
 * pending and asks for the end (SIGINT, SIGQUIT, SIGTERM, SIGHUP), 0 for none. Stays pending.
 */
int sl_run_signals_ending(void);

/*
 * Right after the fork of `child`, which has all of them blocked: what the terminal sent
 * before it was there is passed on, and no longer pending here. It gets none twice, since
 * one that came after the fork is pending there already.
 */
void sl_run_signals_hand_over(pid_t child);

void sl_run_signals_restore(const struct sl_run_signals *old);

#endif
