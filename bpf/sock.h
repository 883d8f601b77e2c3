/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The record of a socket: making one, finding it, closing it. */
#ifndef SLUICE_BPF_SOCK_H
#define SLUICE_BPF_SOCK_H

#include <bpf/bpf_endian.h>

#include "owner.h"

#ifndef AF_INET
#define AF_INET 2
#define AF_INET6 10
#define AF_PACKET 17
#endif
#ifndef IPPROTO_TCP
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_ICMPV6 58
#define IPPROTO_MPTCP 262
#endif

#define V4_MAPPED bpf_htonl(0x0000ffff)

static __always_inline void endpoint_v4(struct sl_endpoint *ep, __be32 addr_be, __be16 port_be)
{
	ep->addr_be[0] = 0;
	ep->addr_be[1] = 0;
	ep->addr_be[2] = V4_MAPPED;
	ep->addr_be[3] = addr_be;
	ep->port_be = port_be;
	ep->pad = 0;
}

static __always_inline void endpoint_v6(struct sl_endpoint *ep, const __be32 *addr_be,
					__be16 port_be)
{
	ep->addr_be[0] = addr_be[0];
	ep->addr_be[1] = addr_be[1];
	ep->addr_be[2] = addr_be[2];
	ep->addr_be[3] = addr_be[3];
	ep->port_be = port_be;
	ep->pad = 0;
}

static __always_inline bool endpoint_equal(const struct sl_endpoint *a,
					   const struct sl_endpoint *b)
{
	return a->addr_be[3] == b->addr_be[3] && a->port_be == b->port_be &&
	       a->addr_be[2] == b->addr_be[2] && a->addr_be[1] == b->addr_be[1] &&
	       a->addr_be[0] == b->addr_be[0];
}

/* Neither address nor port: a call that named no destination. */
static __always_inline bool endpoint_empty(const struct sl_endpoint *ep)
{
	return !ep->port_be && !ep->addr_be[3] && !ep->addr_be[1] && !ep->addr_be[0];
}

static __always_inline void sock_event(enum sl_event_kind kind, struct sl_sock *rec, __u64 now)
{
	__u32 sandbox = rec->owner.sandbox;
	struct sl_event_sock *event;

	event = event_begin(sandbox, kind, sizeof(*event), now);
	if (!event)
		return;
	event->sock = *rec;
	event_end(sandbox, event);
}

/* First fields of a new record, whose memory is zero. */
static __always_inline void sock_init(struct sl_sock *rec, const struct sl_owner *owner,
				      __u64 cookie, __u64 now, __u32 flags)
{
	rec->cookie = cookie;
	rec->created_ns = now;
	rec->flags = flags;
	rec->owner = *owner;
	rec->opener = *owner;
	count(owner->sandbox, SL_COUNTER_SOCK_CREATED);
}

/*
 * The record that answers for `sk`. An MPTCP subflow is a socket of the kernel's own,
 * which no application holds: its MPTCP socket answers (RFC 8684; net/mptcp/subflow.c).
 */
static __always_inline struct sl_sock *sock_record(struct bpf_sock *sk)
{
	struct sl_sock *rec = bpf_sk_storage_get(&socks, sk, NULL, 0);
	struct mptcp_sock *msk;

	if (rec)
		return rec;
	msk = bpf_skc_to_mptcp_sock(sk);
	return msk ? bpf_sk_storage_get(&socks, msk, NULL, 0) : NULL;
}

static __always_inline void tuple_of(struct sl_tuple *tuple, const struct sl_sock *rec)
{
	tuple->netns_cookie = rec->netns_cookie;
	tuple->local = rec->local;
	tuple->remote = rec->remote;
	tuple->protocol = IPPROTO_TCP;
	tuple->pad = 0;
}

/*
 * Publishes the owner of a connection by its tuple, before its first packet leaves, for
 * the accepting side on this host and for whoever asks.
 */
static __always_inline void tuple_publish(struct sl_sock *rec)
{
	struct sl_tuple_owner value = { .cookie = rec->cookie, .owner = rec->owner };
	__u32 sandbox = rec->owner.sandbox;
	struct sl_tuple tuple;
	long err;

	tuple_of(&tuple, rec);
	err = bpf_map_update_elem(&tuples, &tuple, &value, BPF_NOEXIST);
	if (err == -17) { /* EEXIST */
		count(sandbox, SL_COUNTER_TUPLE_REPLACED);
		count(sandbox, SL_COUNTER_TUPLE_DELETED);
		err = bpf_map_update_elem(&tuples, &tuple, &value, BPF_ANY);
	}
	if (err) {
		count(sandbox, SL_COUNTER_TUPLES_FULL);
		return;
	}
	rec->flags |= SL_SOCK_TUPLE;
	count(sandbox, SL_COUNTER_TUPLE_CREATED);
}

/*
 * Removes the tuple of a closed connection. If no accepting socket has copied the owner,
 * it may be about to (the last packet of the handshake is under way), or the other end
 * is on another host: the row moves to the bounded map of closed tuples first.
 */
static __always_inline void tuple_retire(struct sl_sock *rec)
{
	__u32 sandbox = rec->owner.sandbox;
	struct sl_tuple_owner *value;
	struct sl_tuple tuple;

	if (!(rec->flags & SL_SOCK_TUPLE))
		return;
	tuple_of(&tuple, rec);
	value = bpf_map_lookup_elem(&tuples, &tuple);
	rec->flags &= ~SL_SOCK_TUPLE;
	if (!value || value->cookie != rec->cookie)
		return; /* reused by a newer connection: its row */
	if (!value->claimed && (rec->flags & SL_SOCK_ESTABLISHED)) {
		if (!bpf_map_update_elem(&closed_tuples, &tuple, value, BPF_ANY))
			count(sandbox, SL_COUNTER_TUPLE_KEPT);
	}
	if (!bpf_map_delete_elem(&tuples, &tuple))
		count(sandbox, SL_COUNTER_TUPLE_DELETED);
}

static __always_inline void closed_keep(struct sl_sock *rec)
{
	struct sl_config *cfg = config_get();
	struct sl_closed *slot;
	struct sl_ids *last;
	__u32 zero = 0, index;
	__u64 seq;

	last = bpf_map_lookup_elem(&ids, &zero);
	if (!last || !cfg || !cfg->closed_entries)
		return;
	seq = __sync_fetch_and_add(&last->closed, 1);
	index = seq & (cfg->closed_entries - 1);
	slot = bpf_map_lookup_elem(&closed, &index);
	if (!slot)
		return;
	/* Readers take a slot whose seq is the same before and after their copy. */
	__sync_lock_test_and_set(&slot->seq, 0);
	slot->sock = *rec;
	__sync_lock_test_and_set(&slot->seq, seq + 1);
	count(rec->owner.sandbox, SL_COUNTER_CLOSED_KEPT);
}

/* The one end of every record: counts, tuple, ring of closed ones, event. */
static __always_inline void sock_finish(struct sl_sock *rec)
{
	__u64 now = bpf_ktime_get_boot_ns();

	rec->closed_ns = now;
	rec->flags |= SL_SOCK_RELEASED;
	tuple_retire(rec);
	closed_keep(rec);
	count(rec->owner.sandbox, SL_COUNTER_SOCK_DELETED);
	sock_event(SL_EVENT_CLOSE, rec, now);
}

#endif
