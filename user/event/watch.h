/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loop of a program that does nothing but watch events: it consumes a set's ring
 * into a stream until it was interrupted (SIGINT, SIGTERM, SIGHUP), a time is over, the
 * stream has reported its maximum, or writing failed. While it runs, the set's programs
 * make the kinds of events that the stream wants, afterwards those they made before.
 */
#ifndef SLUICE_USER_WATCH_H
#define SLUICE_USER_WATCH_H

#include "base/err.h"
#include "event/stream.h"
#include "kernel/set.h"

/*
 * `time_us` 0: no end. -EBUSY when another process consumes the set's events, -ENOENT when
 * the set was removed meanwhile.
 */
int sl_event_watch(struct sl_set *set, struct sl_event_stream *stream, uint64_t time_us,
		   struct sl_err *err);

/*
 * Says which kinds of events the programs make from now on (SL_EVENT_BIT), and what it
 * was. One writer at a time: whoever consumes the ring.
 */
int sl_event_mask_set(struct sl_set *set, unsigned int mask, unsigned int *old, struct sl_err *err);

#endif
