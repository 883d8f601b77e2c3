/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the liveness check; see live.h. */
#ifndef SLUICE_USER_LIVE_PRIVATE_H
#define SLUICE_USER_LIVE_PRIVATE_H

#include "kernel/live.h"

/* Sets all but sandbox and type. */
void sl_condition_set(struct sl_condition *condition, enum sl_condition_status status,
		      const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* live_links.c: are the tracepoints attached, is the cgroup the same, are its links? */
void sl_live_tracepoints(const struct sl_set *set, struct sl_condition *condition);
void sl_live_cgroup(const struct sl_sandbox *sandbox, const char *path,
		    struct sl_condition *condition);
void sl_live_cgroup_links(const struct sl_set *set, const struct sl_sandbox *sandbox,
			  struct sl_condition *condition);

/*
 * live_canary.c: connects from inside the sandbox's cgroup at `path`, over loopback, to
 * this process, and looks for the record. Takes `timeout_ms` and a second at most; leaves
 * no process and no cgroup.
 */
void sl_live_canary(struct sl_set *set, const struct sl_sandbox *sandbox, const char *path,
		    int timeout_ms, struct sl_condition *condition);

#endif
