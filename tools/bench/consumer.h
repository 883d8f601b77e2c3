/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A consumer of events in a process of its own, outside of any sandbox: it drains the
 * ring as an agent does and counts what it reads.
 */
#ifndef SLUICE_BENCH_CONSUMER_H
#define SLUICE_BENCH_CONSUMER_H

#include <sluice/event.h>

#include "child.h"
#include "world.h"

/* What a consumer wants unless asked for more. */
#define SL_CONSUMER_EVENTS \
	(SL_EVENT_BIT(SL_EVENT_EXEC) | SL_EVENT_BIT(SL_EVENT_EXIT) | SL_EVENT_BIT(SL_EVENT_CLOSE))

struct sl_consumer_stats {
	unsigned long long read; /* events */
	unsigned long long by_kind[SL_EVENT_KIND_MAX];
	unsigned long long wakeups; /* returns from poll */
};

struct sl_consumer {
	struct sl_child child;
	struct sl_set *set; /* borrowed */
	int stop[2];        /* pipe: a byte ends the consumer */
	int ready[2];
	struct sl_consumer_stats *stats; /* shared */
};

#define SL_CONSUMER_NONE                                \
	{                                               \
		.stop = { -1, -1 }, .ready = { -1, -1 } \
	}

/* Starts it for the loaded set; returns once it consumes. */
int sl_consumer_start(struct sl_consumer *consumer, struct sl_world *world, int cpu,
		      struct sl_err *err);

/*
 * Waits until all submitted events were read: -ETIMEDOUT when they were not within
 * `timeout_ms`, so events got lost on the way. *missing may be NULL.
 */
int sl_consumer_settle(struct sl_consumer *consumer, int timeout_ms, long long *missing);

/* Has it drain once more and ends it. Counts stay readable until clear. */
void sl_consumer_stop(struct sl_consumer *consumer);

/* Stops and releases all; of SL_CONSUMER_NONE too. */
void sl_consumer_clear(struct sl_consumer *consumer);
#define _cleanup_consumer_ __attribute__((cleanup(sl_consumer_clear)))

#endif
