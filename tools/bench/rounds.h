/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One operation, measured in modes that take turns. Each mode has a worker process of
 * its own that stays in its cgroup; in each round all are woken one after the other, in
 * an order that rotates. A run has segments, each: rounds with nothing loaded, then the
 * set is loaded and the other modes do theirs, then it is unloaded. So round i of every
 * mode lies close to round i of every other in time, and ratios are of such pairs.
 */
#ifndef SLUICE_BENCH_ROUNDS_H
#define SLUICE_BENCH_ROUNDS_H

#include "bench.h"
#include "report.h"
#include "world.h"

enum sl_bench_mode {
	SL_MODE_UNLOADED, /* plain cgroup, no program loaded anywhere */
	SL_MODE_BARE,     /* plain cgroup; the set is loaded and attached to another cgroup */
	SL_MODE_ATTACHED, /* recording, no events wanted, nobody consumes */
	SL_MODE_DEFAULT,  /* recording, exec, exit and close events, consumed */
	SL_MODE_ALL,      /* recording, all events, consumed */
	SL_MODE_MAX
};

struct sl_rounds {
	unsigned int segments;
	unsigned int rounds;    /* of each mode, over all segments */
	unsigned int per_round; /* operations in one turn */
	enum sl_pin pin;
	/* Does the operation once: 0 or -errno. Runs in the worker. */
	int (*op)(void *arg);
	void *arg;
};

/*
 * Measures and reports: a row a mode, with the mean nanoseconds per operation of each
 * round, their median, MAD, and ratios; the budget is for the default mode's ratio.
 */
int sl_rounds_run(struct sl_world *world, const struct sl_rounds *spec, double budget,
		  struct sl_report *report, struct sl_err *err);

#endif
