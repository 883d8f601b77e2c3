/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a set: connections by their two ends. See bpf/tuple.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "kernel/set_private.h"

static bool ends_equal(const struct sl_sock *sock, const struct sl_tuple *tuple)
{
	return !memcmp(&sock->local, &tuple->local, sizeof(tuple->local)) &&
	       !memcmp(&sock->remote, &tuple->remote, sizeof(tuple->remote)) &&
	       (!tuple->netns_cookie || sock->netns_cookie == tuple->netns_cookie);
}

struct tuple_search {
	struct sl_set *set;
	const struct sl_tuple *tuple;
	struct sl_sock *out;
	bool found;
};

/* A port may have been used twice for the same ends: the later connection is meant. */
static int tuple_match(const struct sl_sock *sock, void *arg)
{
	struct tuple_search *search = arg;

	/* What an MPTCP socket has on the wire is TCP. */
	if ((sock->protocol != IPPROTO_TCP && sock->protocol != IPPROTO_MPTCP) ||
	    !ends_equal(sock, search->tuple) ||
	    (search->found && sock->since_ns < search->out->since_ns))
		return 0;
	*search->out = *sock;
	search->found = true;
	return 0;
}

static int tuple_bucket(struct sl_set *set, const struct sl_tuple *tuple, struct sl_sock *out)
{
	__u32 index =
		sl_tuple_hash(tuple->netns_cookie, &tuple->local, &tuple->remote, set->hash_seed) &
		(set->tuple_buckets - 1);
	struct tuple_search search = { .tuple = tuple, .out = out };
	struct sl_tuple_bucket bucket;
	struct sl_sock sock;
	int rc = sl_map_lookup(set->maps[SL_MAP_TUPLE_BUCKETS], &index, &bucket);

	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(bucket.cookie); i++)
		if (bucket.cookie[i] && !sl_sock_by_cookie(set, bucket.cookie[i], &sock))
			tuple_match(&sock, &search);
	return search.found ? 0 : -ENOENT;
}

/* A row says who owns the connection; its record may be out of reach (adopted). */
static void tuple_found(struct sl_set *set, const struct sl_tuple *tuple,
			const struct sl_tuple_owner *owner, struct sl_sock *out)
{
	if (!sl_sock_by_cookie(set, owner->cookie, out))
		return;
	*out = (struct sl_sock){
		.cookie = owner->cookie,
		.netns_cookie = tuple->netns_cookie,
		.owner = owner->owner,
		.local = tuple->local,
		.remote = tuple->remote,
		.flags = SL_SOCK_CONNECTED,
		.family = tuple->local.addr_be[2] == htonl(0xffff) ? AF_INET : AF_INET6,
		.type = SOCK_STREAM,
		.protocol = IPPROTO_TCP,
	};
}

static int tuple_row(const void *key, void *value, void *arg)
{
	struct tuple_search *search = arg;
	const struct sl_tuple *tuple = key, *wanted = search->tuple;

	if (memcmp(&tuple->local, &wanted->local, sizeof(tuple->local)) != 0 ||
	    memcmp(&tuple->remote, &wanted->remote, sizeof(tuple->remote)) != 0)
		return 0;
	tuple_found(search->set, tuple, value, search->out);
	search->found = true;
	return 1;
}

static int tuple_scan(struct sl_set *set, const struct sl_tuple *tuple, struct sl_sock *out)
{
	struct tuple_search search = { .set = set, .tuple = tuple, .out = out };
	int rc = sl_sock_rows_each(set, tuple_match, &search);

	if (!rc && !search.found)
		rc = sl_map_each(set->maps[SL_MAP_TUPLES], tuple_row, &search);
	return rc < 0 ? rc : search.found ? 0 : -ENOENT;
}

int sl_tuple_resolve(struct sl_set *set, const struct sl_endpoint *local,
		     const struct sl_endpoint *remote, __u64 netns_cookie, struct sl_sock *out)
{
	const struct sl_tuple tuple = {
		.netns_cookie = netns_cookie,
		.local = *local,
		.remote = *remote,
		.protocol = IPPROTO_TCP,
	};
	struct sl_tuple_owner owner;
	int rc;

	if (!netns_cookie)
		return tuple_scan(set, &tuple, out);
	rc = tuple_bucket(set, &tuple, out);
	if (rc != -ENOENT)
		return rc;
	rc = sl_map_lookup(set->maps[SL_MAP_TUPLES], &tuple, &owner);
	if (!rc)
		tuple_found(set, &tuple, &owner, out);
	return rc;
}

int sl_tuples_count(struct sl_set *set)
{
	struct sl_tuple_bucket bucket;
	long long further;
	int rc, count = 0;

	for (__u32 i = 0; i < set->tuple_buckets; i++) {
		rc = sl_map_lookup(set->maps[SL_MAP_TUPLE_BUCKETS], &i, &bucket);
		if (rc)
			return rc;
		for (int place = 0; place < SL_TUPLE_LIVE; place++)
			count += bucket.cookie[place] != 0;
	}
	further = sl_map_count_rows(set->maps[SL_MAP_TUPLES]);
	return further < 0 ? (int)further : count + (int)further;
}

int sl_tuples_forget(struct sl_set *set, unsigned int sandbox)
{
	return sl_map_delete_rows(set->maps[SL_MAP_TUPLES], true,
				  offsetof(struct sl_tuple_owner, owner.sandbox), sandbox);
}
