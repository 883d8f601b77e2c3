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
#include "mediated.h"
#include "report.h"
#include "worker.h"
#include "world.h"

enum sl_bench_mode {
	SL_MODE_UNLOADED, /* plain cgroup, no program loaded anywhere */
	SL_MODE_BARE,     /* plain cgroup; the set is loaded and attached to another cgroup */
	SL_MODE_ATTACHED, /* recording, no events wanted, nobody consumes */
	SL_MODE_DEFAULT,  /* recording, exec, exit and close events, consumed */
	SL_MODE_ALL,      /* recording, all events, consumed */
	SL_MODE_ENFORCED, /* as default, and the guard decides */
	SL_MODE_FILTERED, /* as enforced, with the seccomp filter, which holds nothing */
	SL_MODE_HELD,     /* as enforced, with the filter that holds, and the broker */
	SL_MODE_MINIMAL,  /* as bare, with a filter that holds and the smallest loop that answers */
	SL_MODE_MAX
};

#define SL_MODE_BIT(mode) (1U << (mode))

/* What every benchmark has, and what those have that measure holding. */
#define SL_MODES_RECORDING                                           \
	(SL_MODE_BIT(SL_MODE_UNLOADED) | SL_MODE_BIT(SL_MODE_BARE) | \
	 SL_MODE_BIT(SL_MODE_ATTACHED) | SL_MODE_BIT(SL_MODE_DEFAULT) | SL_MODE_BIT(SL_MODE_ALL))
#define SL_MODES_HOLDING                                                 \
	(SL_MODE_BIT(SL_MODE_ENFORCED) | SL_MODE_BIT(SL_MODE_FILTERED) | \
	 SL_MODE_BIT(SL_MODE_HELD) | SL_MODE_BIT(SL_MODE_MINIMAL))

struct sl_rounds {
	unsigned int modes; /* SL_MODE_BIT()s, unloaded and bare among them */
	unsigned int segments;
	unsigned int rounds; /* of each mode, over all segments */
	enum sl_pin pin;
	const struct sl_op *op;
	const void *arg; /* of `op`, copied */
	size_t arg_size;
	unsigned int per_turn; /* operations */
	/* For the modes that enforce. */
	struct sl_mediated_options mediated;
	/* At most, as a ratio to bare; 0: no budget. */
	double budgets[SL_MODE_MAX];
};

/*
 * Measures and reports: a row a mode, with the mean nanoseconds per operation of each
 * round, their median, MAD, and ratios; and the budgets.
 */
int sl_rounds_run(struct sl_world *world, const struct sl_rounds *spec, struct sl_report *report,
		  struct sl_err *err);

#endif
