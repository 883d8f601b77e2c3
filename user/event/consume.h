/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One round of consuming a set: ring, losses, AF_PACKET sockets that have gone, rows of
 * binaries and lineages that nothing refers to any more.
 */
#ifndef SLUICE_USER_CONSUME_H
#define SLUICE_USER_CONSUME_H

#include "event/stream.h"
#include "kernel/ring.h"
#include "kernel/sweep.h"

/*
 * How often it is looked whether AF_PACKET sockets have gone, since their close runs no
 * hook, and whether so many ids were given out that unused rows should be swept.
 */
#define SL_SWEEP_MS 1000

struct sl_consumer {
	struct sl_set *set;
	struct sl_ring *ring;
	struct sl_event_stream *stream;
	unsigned int sandbox; /* whose own ring it is; 0: the set's */
	int64_t sweep_ms;     /* CLOCK_MONOTONIC of the next look; 0 at first */
	struct sl_sweep_clock clock;
};

/* Feeds the stream with all that is there. 0 or -errno. */
int sl_consume(struct sl_consumer *consumer);

/* Reports AF_PACKET sockets that nobody holds any more, now. */
void sl_consume_packets(struct sl_consumer *consumer);

#endif
