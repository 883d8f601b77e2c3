// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/signals.h"

#include "base/cleanup.h"

void sl_run_signals_passed(sigset_t *set)
{
	static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD };

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaddset(set, passed[i]);
}

void sl_run_signals_take(struct sl_run_signals *old)
{
	const struct sigaction fallback = { .sa_handler = SIG_DFL };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sl_run_signals_passed(&set);
	sigprocmask(SIG_BLOCK, &set, &old->mask);
	/* Ignored SIGCHLD would reap the command behind our back. */
	sigaction(SIGCHLD, &fallback, &old->chld);
	/* A reader of events that goes away must not take the command with it. */
	sigaction(SIGPIPE, &ignore, &old->pipe);
}

void sl_run_signals_restore(const struct sl_run_signals *old)
{
	sigaction(SIGPIPE, &old->pipe, NULL);
	sigaction(SIGCHLD, &old->chld, NULL);
	sigprocmask(SIG_SETMASK, &old->mask, NULL);
}
