/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Remote ends that a datagram socket has sent to: each is told once, and only they may
 * answer (datagram.h).
 *
 * A remote end is kept as a hash of 64 bits under the set's secret seed: one word, so that
 * threads that send at once can't leave a mixture of two, and nobody outside can find
 * another end with the same one. The latest SL_SOCK_PEERS are in the socket's record, the
 * rest in map `peers`. When that is full the one that was not used for the longest time is
 * forgotten: its answers are dropped (and counted) until the socket sends to it again.
 */
#ifndef SLUICE_BPF_PEER_H
#define SLUICE_BPF_PEER_H

#include "slot.h"

/* Multiplies, rotates and adds the seed in between: no difference of two words survives. */
static __always_inline __u64 peer_mix(__u64 hash, __u64 word, __u64 seed)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL + seed;
	return (hash << 31 | hash >> 33) * 0xbf58476d1ce4e5b9ULL;
}

/* Never 0, which is an empty place. */
static __always_inline __u64 peer_hash(const struct sl_endpoint *ep)
{
	struct sl_config *cfg = config_get();
	__u64 seed = cfg ? cfg->hash_seed : 0, hash = seed;

	hash = peer_mix(hash, (__u64)ep->addr_be[0] << 32 | ep->addr_be[1], seed);
	hash = peer_mix(hash, (__u64)ep->addr_be[2] << 32 | ep->addr_be[3], seed);
	hash = peer_mix(hash, ep->port_be, seed);
	return (hash ^ hash >> 32) ?: 1;
}

static __always_inline bool peer_latest(const struct sl_sock *rec, __u64 hash)
{
	for (int i = 0; i < SL_SOCK_PEERS; i++)
		if (rec->peer_hash[i] == hash)
			return true;
	return false;
}

/* The look-up also keeps the row from being forgotten. */
static __always_inline bool peer_earlier(const struct sl_sock *rec, __u64 hash)
{
	struct sl_peer_key key = { .cookie = rec->cookie, .hash = hash };

	return rec->peers > SL_SOCK_PEERS && bpf_map_lookup_elem(&peers, &key);
}

/* Whether the socket has sent to this end. */
static __always_inline bool peer_known(const struct sl_sock *rec, const struct sl_endpoint *remote)
{
	__u64 hash = peer_hash(remote);

	return peer_latest(rec, hash) || peer_earlier(rec, hash);
}

/* Notes what is about to be sent to. True when it was not known: worth an event. */
static __always_inline bool peer_note(struct sl_sock *rec, const struct sl_endpoint *remote)
{
	__u64 hash = peer_hash(remote), *place;
	struct sl_peer_key key = { .cookie = rec->cookie };
	__u8 value = 0;

	if (peer_latest(rec, hash) || peer_earlier(rec, hash))
		return false;
	place = &rec->peer_hash[__sync_fetch_and_add(&rec->peers, 1) & (SL_SOCK_PEERS - 1)];
	key.hash = __sync_lock_test_and_set(place, hash);
	if (key.hash && bpf_map_update_elem(&peers, &key, &value, BPF_ANY))
		count(rec->owner.sandbox, SL_COUNTER_MAP_NOMEM);
	return true;
}

#endif
