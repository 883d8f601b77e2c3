/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the records of sockets live (struct sl_sock): slots of an array, a hash for what
 * finds its slots taken, and the sockets' own storage.
 *
 * A slot belongs to the socket whose cookie is in it. It is free for another one when it
 * was never used, or when its socket is closed. It is taken by a compare-and-exchange of
 * the cookie with SL_SOCK_BUSY, and the new cookie is written last: cookies are never used
 * again, so a reader that finds the same one before and after a copy has a whole record.
 */
#ifndef SLUICE_BPF_SLOT_H
#define SLUICE_BPF_SLOT_H

#include "inet.h"
#include "owner.h"

static __always_inline struct sl_sock *slot_at(__u64 cookie, unsigned int way)
{
	struct sl_config *cfg = config_get();
	__u32 index;

	if (!cfg)
		return NULL;
	index = sl_sock_slot(cookie, way, cfg->sock_slots);
	return bpf_map_lookup_elem(&socks, &index);
}

static __always_inline struct sl_sock *slot_find(__u64 cookie)
{
	struct sl_sock *slot = slot_at(cookie, 0);

	if (slot && slot->cookie == cookie)
		return slot;
	slot = slot_at(cookie, 1);
	return slot && slot->cookie == cookie ? slot : NULL;
}

/*
 * When its socket was closed; 0: never used; ~0: a live one has it. A guess, which
 * slot_take() makes sure of: of the record's cache lines it reads the first only.
 */
static __always_inline __u64 slot_closed(const struct sl_sock *slot)
{
	if (!slot->cookie)
		return 0;
	return slot->closed_ns ?: ~0ULL;
}

/* Of the slots that a new record may have: one never used, else what was closed first. */
static __always_inline struct sl_sock *slot_choose(__u64 cookie)
{
	struct sl_sock *first = slot_at(cookie, 0), *second;

	if (!first || !first->cookie)
		return first;
	second = slot_at(cookie, 1);
	return second && slot_closed(second) < slot_closed(first) ? second : first;
}

/* Takes the slot for a new record; false when a live one has it. */
static __always_inline bool slot_take(struct sl_sock *slot)
{
	__u64 old = slot->cookie;

	if (old && (old == SL_SOCK_BUSY || !(slot->flags & SL_SOCK_RELEASED)))
		return false;
	if (__sync_val_compare_and_swap(&slot->cookie, old, SL_SOCK_BUSY) != old)
		return false;
	if (!old)
		return true;
	count(slot->owner.sandbox, SL_COUNTER_SOCK_EVICTED);
	if (slot->flags & SL_SOCK_MORE)
		bpf_map_delete_elem(&sock_more, &old);
	return true;
}

/* All but the cookie, which makes the slot the socket's, and the peer. */
static __always_inline void slot_clear(struct sl_sock *slot)
{
	__builtin_memset(&slot->netns_cookie, 0,
			 offsetof(struct sl_sock, peer) - offsetof(struct sl_sock, netns_cookie));
}

static __always_inline void slot_publish(struct sl_sock *slot, __u64 cookie)
{
	__sync_lock_test_and_set(&slot->cookie, cookie);
}

/* A record of a socket that a member created. */
static __always_inline struct sl_sock *sock_by_cookie(__u64 cookie)
{
	return slot_find(cookie) ?: bpf_map_lookup_elem(&socks_over, &cookie);
}

/*
 * The record of `sk` itself, whose cookie is given. An accepted MPTCP socket has the cookie
 * of its listener (sk_clone_lock() copies it, mptcp_sk_clone_init() leaves it).
 */
static __always_inline struct sl_sock *sock_find(void *sk, __u64 cookie)
{
	struct sl_sock *rec = sock_by_cookie(cookie), *own;

	if (rec && !(rec->flags & SL_SOCK_LISTENING))
		return rec;
	own = bpf_sk_storage_get(&adopted, sk, NULL, 0);
	return own && (!rec || own->flags & SL_SOCK_ACCEPTED) ? own : rec;
}

/*
 * The record that answers for `sk`. An MPTCP subflow is a socket of the kernel's own,
 * which no application holds: its MPTCP socket answers (RFC 8684; net/mptcp/subflow.c).
 */
static __always_inline struct sl_sock *sock_record(struct bpf_sock *sk, __u64 cookie)
{
	struct sl_sock *rec = sock_find(sk, cookie);
	struct mptcp_sock *msk;

	if (rec)
		return rec;
	msk = bpf_skc_to_mptcp_sock(sk);
	if (!msk)
		return NULL;
	/* Until its first subflow is established, an accepted one looks like its listener. */
	rec = bpf_sk_storage_get(&adopted, msk, NULL, 0);
	if (rec && BPF_CORE_READ(msk, sk.icsk_inet.sk.__sk_common.skc_state) != TCP_LISTEN)
		return rec;
	cookie = BPF_CORE_READ(msk, sk.icsk_inet.sk.__sk_common.skc_cookie.counter);
	return sock_find(msk, cookie);
}

/*
 * Keeps the record of a closed socket. One that is not in a slot moves into one, if no
 * live one has them: storage goes with the socket, and the hash is for live ones. `slot`,
 * its slot_find(), cookie and sandbox are from before it was released: from then on another
 * socket may have the slot.
 */
static __always_inline void closed_keep(struct sl_sock *rec, struct sl_sock *slot, __u64 cookie,
					__u32 sandbox)
{
	if (slot == rec) {
		count(sandbox, SL_COUNTER_CLOSED_KEPT);
		return;
	}
	/* An MPTCP listener's is for those that it accepted as well: they have its cookie. */
	if (!slot)
		slot = slot_choose(cookie);
	if (slot && slot_take(slot)) {
		__builtin_memcpy(&slot->netns_cookie, &rec->netns_cookie,
				 sizeof(*slot) - offsetof(struct sl_sock, netns_cookie));
		slot_publish(slot, cookie);
		count(sandbox, SL_COUNTER_CLOSED_KEPT);
	} else {
		count(sandbox, SL_COUNTER_CLOSED_DROPPED);
		if (rec->flags & SL_SOCK_MORE)
			bpf_map_delete_elem(&sock_more, &cookie);
	}
	bpf_map_delete_elem(&socks_over, &cookie);
}

#endif
