/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the storm benchmark: the workload, and who answers and logs. */
#ifndef SLUICE_BENCH_STORM_H
#define SLUICE_BENCH_STORM_H

#include <netinet/in.h>
#include <stdint.h>

#include "broker/listener.h"

/* Shared with the workload. */
struct storm {
	/* How often; set before it starts. */
	uint64_t calls;   /* getpeername() of what is not connected, kill() of nobody: halves */
	uint64_t targets; /* processes that are killed while their connect() is held */
	uint64_t denied;  /* sendto() that no rule allows */
	struct sockaddr_in to;
	/* Counted by it: calls whose outcome was another one. */
	uint64_t wrong;
};

struct storm_work {
	struct storm *storm;
	struct sl_handoff *handoff;
	const struct sl_filter *filter;
	unsigned long flags;
};

/* Main function (struct sl_child_spec.run), in the sandbox; `arg` is struct storm_work. */
int storm_workload(void *arg);

#endif
