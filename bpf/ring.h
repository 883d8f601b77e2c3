/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events. A wake-up costs its caller a dozen times what a record does, so only the
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

static __always_inline bool event_wanted(enum sl_event_kind kind)
{
	struct sl_config *cfg = config_get();

	return cfg && (cfg->events & SL_EVENT_BIT(kind));
}

static __always_inline void event_lost(__u32 sandbox, enum sl_event_kind kind,
				       struct sl_ring_ctl *ctl)
{
	struct sl_counters *row = bpf_map_lookup_elem(&counters, &sandbox);

	if (row) {
		__sync_fetch_and_add(&row->n[SL_COUNTER_EVENT_LOST], 1);
		__sync_fetch_and_add(&row->event_lost[kind & 15], 1);
	}
	if (ctl)
		ctl->resync = 1;
}

/* Starts an event; NULL when it is not wanted or there is no room (counted). */
static __always_inline void *event_begin(__u32 sandbox, enum sl_event_kind kind, __u32 size,
					 __u64 now)
{
	struct sl_event *head;
	__u32 zero = 0;

	if (!event_wanted(kind))
		return NULL;
	head = bpf_ringbuf_reserve(&ring, size, 0);
	if (!head) {
		event_lost(sandbox, kind, bpf_map_lookup_elem(&ring_ctl, &zero));
		return NULL;
	}
	head->schema = SL_SCHEMA;
	head->kind = kind;
	head->size = size;
	head->time_ns = now;
	return head;
}

static __always_inline void event_end(__u32 sandbox, void *event)
{
	struct sl_config *cfg = config_get();
	__u64 flags = BPF_RB_NO_WAKEUP;
	struct sl_ring_ctl *ctl;
	__u32 zero = 0;

	ctl = bpf_map_lookup_elem(&ring_ctl, &zero);
	if (ctl && ctl->idle && __sync_lock_test_and_set(&ctl->idle, 0))
		flags = BPF_RB_FORCE_WAKEUP;
	else if (ctl && cfg && !ctl->woken &&
		 bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > cfg->wake_bytes &&
		 !__sync_lock_test_and_set(&ctl->woken, 1))
		flags = BPF_RB_FORCE_WAKEUP;
	if (flags == BPF_RB_FORCE_WAKEUP)
		count(sandbox, SL_COUNTER_EVENT_WAKEUP);
	count(sandbox, SL_COUNTER_EVENT_SUBMITTED);
	bpf_ringbuf_submit(event, flags);
}

#endif
