/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections by their ends: published before the first packet leaves, for the accepting
 * side on this host and for whoever asks. A bucket holds cookies only; the sockets'
 * records say whether one is meant (struct sl_tuple_bucket).
 */
#ifndef SLUICE_BPF_TUPLE_H
#define SLUICE_BPF_TUPLE_H

#include "slot.h"

static __always_inline struct sl_tuple_bucket *
tuple_bucket(__u64 netns_cookie, const struct sl_endpoint *local, const struct sl_endpoint *remote)
{
	struct sl_config *cfg = config_get();
	__u32 index;

	if (!cfg)
		return NULL;
	index = sl_tuple_hash(netns_cookie, local, remote, cfg->hash_seed) &
		(cfg->tuple_buckets - 1);
	return bpf_map_lookup_elem(&tuple_buckets, &index);
}

static __always_inline void tuple_of(struct sl_tuple *tuple, const struct sl_sock *rec)
{
	tuple->netns_cookie = rec->netns_cookie;
	tuple->local = rec->local;
	tuple->remote = rec->remote;
	tuple->protocol = IPPROTO_TCP;
	tuple->pad = 0;
}

/* A row of its own, for want of a place in the bucket. False when there is no room. */
static __noinline int tuple_publish_row(struct sl_sock *rec)
{
	struct sl_tuple_owner value;
	struct sl_tuple tuple;
	long err;

	if (!rec)
		return 0;
	value.cookie = rec->cookie;
	value.owner = rec->owner;
	tuple_of(&tuple, rec);
	err = bpf_map_update_elem(&tuples, &tuple, &value, BPF_ANY);
	if (!err) {
		rec->flags |= SL_SOCK_TUPLE_ROW;
		return 1;
	}
	count_map_error(rec->owner.sandbox, SL_COUNTER_TUPLES_FULL, err);
	return 0;
}

static __always_inline bool tuple_publish_bucket(struct sl_sock *rec)
{
	struct sl_tuple_bucket *bucket = tuple_bucket(rec->netns_cookie, &rec->local, &rec->remote);

	if (!bucket)
		return false;
	for (int i = 0; i < SL_TUPLE_LIVE; i++)
		if (!bucket->cookie[i] &&
		    !__sync_val_compare_and_swap(&bucket->cookie[i], 0, rec->cookie))
			return true;
	count(rec->owner.sandbox, SL_COUNTER_TUPLE_OVERFLOW);
	return false;
}

/* `by_cookie`: the record is found by its cookie, so a place in the bucket is enough. */
static __always_inline void tuple_publish(struct sl_sock *rec, bool by_cookie)
{
	if ((!by_cookie || !tuple_publish_bucket(rec)) && !tuple_publish_row(rec))
		return;
	rec->flags |= SL_SOCK_TUPLE;
	count(rec->owner.sandbox, SL_COUNTER_TUPLE_CREATED);
}

static __noinline int tuple_remove_row(struct sl_sock *rec)
{
	struct sl_tuple_owner *value;
	struct sl_tuple tuple;

	if (!rec)
		return 0;
	rec->flags &= ~SL_SOCK_TUPLE_ROW;
	tuple_of(&tuple, rec);
	value = bpf_map_lookup_elem(&tuples, &tuple);
	/* Reused by a newer connection: its row. */
	if (value && value->cookie == rec->cookie)
		bpf_map_delete_elem(&tuples, &tuple);
	return 0;
}

/* The connection is over; an accepting side may still be about to look for it. */
static __always_inline void tuple_remove(struct sl_sock *rec)
{
	struct sl_tuple_bucket *bucket;

	if (!(rec->flags & SL_SOCK_TUPLE))
		return;
	rec->flags &= ~SL_SOCK_TUPLE;
	count(rec->owner.sandbox, SL_COUNTER_TUPLE_DELETED);
	if (rec->flags & SL_SOCK_TUPLE_ROW) {
		tuple_remove_row(rec);
		return;
	}
	bucket = tuple_bucket(rec->netns_cookie, &rec->local, &rec->remote);
	if (!bucket)
		return;
	for (int i = 0; i < SL_TUPLE_LIVE; i++)
		if (bucket->cookie[i] == rec->cookie)
			bucket->cookie[i] = 0;
	bucket->cookie[SL_TUPLE_LIVE + (rec->cookie & (SL_TUPLE_CLOSED - 1))] = rec->cookie;
}

/* A port may have been used twice for one tuple: the later connection is meant. */
static __always_inline struct sl_sock *tuple_later(struct sl_sock *a, struct sl_sock *b)
{
	if (!a || !b)
		return a ?: b;
	return b->since_ns > a->since_ns ? b : a;
}

static __always_inline struct sl_sock *tuple_match(__u64 cookie, __u64 netns_cookie,
						   const struct sl_endpoint *local,
						   const struct sl_endpoint *remote)
{
	struct sl_sock *rec = cookie ? sock_by_cookie(cookie) : NULL;

	if (!rec || rec->netns_cookie != netns_cookie || !endpoint_equal(&rec->local, local) ||
	    !endpoint_equal(&rec->remote, remote))
		return NULL;
	return rec;
}

/* Who has the connection with these ends, as seen from the first; live ones before others. */
struct tuple_found {
	struct sl_owner *owner; /* NULL: nobody known */
	__u64 cookie;
};

static __always_inline void tuple_is(struct tuple_found *found, struct sl_sock *rec)
{
	found->owner = &rec->owner;
	found->cookie = rec->cookie;
}

static __always_inline void tuple_find(struct tuple_found *found, __u64 netns_cookie,
				       const struct sl_endpoint *local,
				       const struct sl_endpoint *remote)
{
	struct sl_tuple_bucket *bucket = tuple_bucket(netns_cookie, local, remote);
	struct sl_tuple tuple = { .netns_cookie = netns_cookie, .protocol = IPPROTO_TCP };
	struct sl_tuple_owner *row;
	struct sl_sock *rec, *closed;

	for (int i = 0; bucket && i < SL_TUPLE_LIVE; i++) {
		rec = tuple_match(bucket->cookie[i], netns_cookie, local, remote);
		if (rec) {
			tuple_is(found, rec);
			return;
		}
	}
	tuple.local = *local;
	tuple.remote = *remote;
	row = bpf_map_lookup_elem(&tuples, &tuple);
	if (row) {
		found->owner = &row->owner;
		found->cookie = row->cookie;
		return;
	}
	if (!bucket)
		return;
	rec = tuple_match(bucket->cookie[SL_TUPLE_LIVE], netns_cookie, local, remote);
	closed = tuple_match(bucket->cookie[SL_TUPLE_LIVE + 1], netns_cookie, local, remote);
	rec = tuple_later(rec, closed);
	if (rec)
		tuple_is(found, rec);
}

static __always_inline struct sl_owner *
tuple_owner(__u64 netns_cookie, const struct sl_endpoint *local, const struct sl_endpoint *remote)
{
	struct tuple_found found = {};

	tuple_find(&found, netns_cookie, local, remote);
	return found.owner;
}

/* 0: nobody's. */
static __always_inline __u64 tuple_cookie(__u64 netns_cookie, const struct sl_endpoint *local,
					  const struct sl_endpoint *remote)
{
	struct tuple_found found = {};

	tuple_find(&found, netns_cookie, local, remote);
	return found.cookie;
}

#endif
