// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "run/signals.h"

#include <time.h>

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

int sl_run_signals_ending(void)
{
	static const int ending[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	struct sigaction action;
	sigset_t pending;

	if (sigpending(&pending))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		/* One that is ignored stays pending too while it is blocked. */
		if (sigismember(&pending, ending[i]) == 1 && !sigaction(ending[i], NULL, &action) &&
		    action.sa_handler != SIG_IGN)
			return ending[i];
	return 0;
}

void sl_run_signals_hand_over(pid_t child)
{
	const struct timespec now = { 0 };
	sigset_t keys;
	int number;

	sigemptyset(&keys);
	sigaddset(&keys, SIGINT);
	sigaddset(&keys, SIGQUIT);
	while ((number = sigtimedwait(&keys, NULL, &now)) > 0)
		kill(child, number);
}

void sl_run_signals_restore(const struct sl_run_signals *old)
{
	sigaction(SIGPIPE, &old->pipe, NULL);
	sigaction(SIGCHLD, &old->chld, NULL);
	sigprocmask(SIG_SETMASK, &old->mask, NULL);
}
