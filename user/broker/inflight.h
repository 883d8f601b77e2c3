/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that were received and not yet answered, in memory that outlives the process that
 * received them. RECV writes straight into a slot: from the moment the kernel hands a
 * notification out there is no instant at which its id is known to a dying process alone.
 *
 * Order of use: the keeper makes the table before it forks a worker; each thread of the
 * worker owns one slot; the next worker finds in each slot what its predecessor left.
 *
 * Invariants
 * 1. A slot has one writer: the thread that owns it, or nobody (its process is dead).
 * 2. busy is set before RECV and cleared after SEND. A busy slot with an id is a call
 *    without a known answer; a busy slot without one is a RECV that had not come back.
 * 3. Answering twice is harmless: the kernel says ENOENT or EINPROGRESS.
 */
#ifndef SLUICE_USER_BROKER_INFLIGHT_H
#define SLUICE_USER_BROKER_INFLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "broker/notify.h"

struct sl_inflight_slot {
	atomic_bool busy;
	uint64_t tag; /* of the listener */
	union sl_notif notif;
};

struct sl_inflight {
	unsigned int count;
	struct sl_inflight_slot slots[];
};

/* Shared by all processes forked from now on. -EINVAL, -ENOMEM. */
int sl_inflight_new(struct sl_inflight **out, unsigned int count);
void sl_inflight_free(struct sl_inflight **table);

/* RECV into a slot. On failure it is free again. Errors of sl_notify_receive(). */
int sl_inflight_receive(struct sl_inflight_slot *slot, int listener, uint64_t tag);

void sl_inflight_done(struct sl_inflight_slot *slot);

/* Whether a dead owner left an unanswered call here; a RECV that failed is cleared. */
bool sl_inflight_left(struct sl_inflight_slot *slot);

#endif
