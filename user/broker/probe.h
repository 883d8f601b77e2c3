/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which flags a listener may use on this kernel. */
#ifndef SLUICE_USER_BROKER_PROBE_H
#define SLUICE_USER_BROKER_PROBE_H

#include "base/err.h"

/*
 * *flags: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV where the kernel has it and has it right,
 * else 0 and *why, the reason, for the log (static text, NULL when the flag is set).
 *
 * With the flag a call that was received waits for its answer through signals. Before 6.18
 * (and the stable kernels of October 2025) a signal that arrived just before RECV could
 * drop an answer sent right after it. Kernels older than 6.18 take the test below.
 */
void sl_probe_listener_flags(unsigned long *flags, const char **why);

/*
 * The test: a child makes `calls` calls under a timer that fires all the time, and counts
 * how many had the answer that was sent. *lost: answers that were sent and not had, 0 on a
 * kernel without the race. -errno when it could not be made.
 */
int sl_probe_killable_race(unsigned int calls, unsigned int *lost, struct sl_err *err);

#endif
