/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Consumer of a ring buffer: the set's, or one of a sandbox's own, to which the sandbox's
 * events then go instead, so that its reader loses nothing by others, nor they by him. A
 * ring has one consumer (a lock says so). Producers wake it only when it said that it
 * sleeps.
 *
 *	loop:	sl_ring_arm(); epoll_wait(sl_ring_fd(), sl_ring_timeout_ms()); sl_ring_drain();
 */
#ifndef SLUICE_USER_RING_H
#define SLUICE_USER_RING_H

#include <sluice/event.h>

#include "kernel/set.h"

struct sl_ring;

/* `fn` gets one whole, checked record; it is valid during the call only. */
typedef void (*sl_ring_fn)(const struct sl_event *event, void *arg);

/* -EBUSY when another process consumes this set's events. */
int sl_ring_new(struct sl_ring **out, struct sl_set *set, sl_ring_fn fn, void *arg,
		struct sl_err *err);

/* What a sandbox's own ring is to be. */
struct sl_ring_own {
	unsigned int sandbox;
	unsigned int bytes;  /* a power of two, pages at least */
	unsigned int events; /* SL_EVENT_BIT of what is wanted */
};

/*
 * Makes it and reads it. It goes with sl_ring_free(), or when the sandbox is detached.
 * -EBUSY: it has a reader.
 */
int sl_ring_new_own(struct sl_ring **out, struct sl_set *set, const struct sl_ring_own *own,
		    sl_ring_fn fn, void *arg, struct sl_err *err);

void sl_ring_free(struct sl_ring **ring);

/* Readable (EPOLLIN) when a producer woke this consumer. Borrowed. */
int sl_ring_fd(const struct sl_ring *ring);

/*
 * Prepares to sleep and says for how long at most, in milliseconds: -1 when nothing
 * happened lately (a producer wakes us), 0 when events are waiting, else a short
 * timer, since producers don't wake a consumer that is awake.
 */
int sl_ring_arm(struct sl_ring *ring);

/* Consumes until empty; returns how many records, or -errno. */
int sl_ring_drain(struct sl_ring *ring);

/*
 * All that was consumed is done with, what it refers to in the set is not needed any more.
 * Until it is said, sweeps of others (kernel/sweep.h) remove nothing.
 */
void sl_ring_reported(struct sl_ring *ring);

/* Events the kernel side dropped since the last call (also by kind), or 0. */
unsigned long long sl_ring_lost(struct sl_ring *ring,
				unsigned long long by_kind[SL_EVENT_KIND_MAX]);

#endif
