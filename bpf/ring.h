/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events: to the set's ring, or to the sandbox's own, so that one slow reader loses nobody
 * else's. A wake-up costs its caller a dozen times what a record does, so only the
 * producer that finds the consumer asleep (ring_ctl.idle) wakes it, or the one that
 * finds much unread.
 */
#ifndef SLUICE_BPF_RING_H
#define SLUICE_BPF_RING_H

#include "counter.h"

static __always_inline struct sl_config *config_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&config, &zero);
}

/* Of the sandbox's own ring; NULL when its events go to the set's. */
static __always_inline struct sl_ring_ctl *ring_own(__u32 sandbox)
{
	struct sl_ring_ctl *ctl = bpf_map_lookup_elem(&ring_ctl, &sandbox);

	return ctl && ctl->own ? ctl : NULL;
}

static __always_inline bool event_wanted(__u32 sandbox, enum sl_event_kind kind)
{
	struct sl_ring_ctl *own = ring_own(sandbox);
	struct sl_config *cfg;

	if (own)
		return own->events & SL_EVENT_BIT(kind);
	cfg = config_get();
	return cfg && (cfg->events & SL_EVENT_BIT(kind));
}

static __always_inline void event_lost(__u32 sandbox, enum sl_event_kind kind,
				       struct sl_ring_ctl *own)
{
	struct sl_counters *row = bpf_map_lookup_elem(&counters, &sandbox);
	struct sl_ring_ctl *ctl = own;
	__u32 zero = 0;

	if (row) {
		__sync_fetch_and_add(&row->n[SL_COUNTER_EVENT_LOST], 1);
		__sync_fetch_and_add(&row->event_lost[kind & 15], 1);
	}
	if (!ctl)
		ctl = bpf_map_lookup_elem(&ring_ctl, &zero);
	if (!ctl)
		return;
	__sync_fetch_and_add(&ctl->lost[kind & (SL_RING_KINDS - 1)], 1);
	ctl->resync = 1;
}

/* Starts an event; NULL when it is not wanted or there is no room (counted). */
static __always_inline void *event_begin(__u32 sandbox, enum sl_event_kind kind, __u32 size,
					 __u64 now)
{
	struct sl_ring_ctl *own = ring_own(sandbox);
	void *ring_map = &ring;
	struct sl_event *head;

	if (!event_wanted(sandbox, kind))
		return NULL;
	if (own)
		ring_map = bpf_map_lookup_elem(&rings, &sandbox);
	head = ring_map ? bpf_ringbuf_reserve(ring_map, size, 0) : NULL;
	if (!head) {
		event_lost(sandbox, kind, own);
		return NULL;
	}
	head->schema = SL_SCHEMA;
	head->kind = kind;
	head->size = size;
	head->time_ns = now;
	return head;
}

/* More is unread than a busy consumer should be left alone with. */
static __always_inline bool ring_much(__u32 sandbox, struct sl_ring_ctl *own)
{
	struct sl_config *cfg;
	void *ring_map;

	if (own) {
		ring_map = bpf_map_lookup_elem(&rings, &sandbox);
		return ring_map && bpf_ringbuf_query(ring_map, BPF_RB_AVAIL_DATA) > own->wake_bytes;
	}
	cfg = config_get();
	return cfg && bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > cfg->wake_bytes;
}

static __always_inline void event_end(__u32 sandbox, void *event)
{
	struct sl_ring_ctl *own = ring_own(sandbox), *ctl = own;
	__u64 flags = BPF_RB_NO_WAKEUP;
	__u32 zero = 0;

	if (!ctl)
		ctl = bpf_map_lookup_elem(&ring_ctl, &zero);
	if (ctl && ctl->idle && __sync_lock_test_and_set(&ctl->idle, 0))
		flags = BPF_RB_FORCE_WAKEUP;
	else if (ctl && !ctl->woken && ring_much(sandbox, own) &&
		 !__sync_lock_test_and_set(&ctl->woken, 1))
		flags = BPF_RB_FORCE_WAKEUP;
	if (flags == BPF_RB_FORCE_WAKEUP)
		count(sandbox, SL_COUNTER_EVENT_WAKEUP);
	count(sandbox, SL_COUNTER_EVENT_SUBMITTED);
	bpf_ringbuf_submit(event, flags);
}

#endif
