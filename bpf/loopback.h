/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sandbox's own loopback. */
#ifndef SLUICE_BPF_LOOPBACK_H
#define SLUICE_BPF_LOOPBACK_H

#include "verdict.h"

static __always_inline struct sock *sock_plain(struct bpf_sock *sk)
{
	return (struct sock *)plain(sk);
}

/*
 * The record of a socket that a look-up found. A listener's is in its own storage, from
 * where its children copy it. A datagram socket that a member made has a cookie since then.
 */
static __always_inline struct sl_sock *looked_up_record(struct bpf_sock *sk, bool udp)
{
	struct sl_sock *rec = bpf_sk_storage_get(&adopted, sk, NULL, 0);
	__u64 cookie;

	if (rec || !udp)
		return rec;
	cookie = BPF_CORE_READ(sock_plain(sk), __sk_common.skc_cookie.counter);
	return cookie ? sock_by_cookie(cookie) : NULL;
}

/* The source of what is sent to loopback from a socket without an address of its own. */
static __always_inline __be32 loopback_source(const struct sl_endpoint *local)
{
	return local->addr_be[2] == V4_MAPPED && local->addr_be[3] ? local->addr_be[3]
								   : bpf_htonl(0x7f000001);
}

/*
 * A loopback destination is the sandbox's own when a member serves it, by a socket that was
 * made inside, or when nobody else can: in a network namespace of its own. `local`, for UDP
 * only, is the end that sends: a socket that is connected is served by its peer alone.
 */
static __always_inline bool own_loopback(void *ctx, const struct sl_endpoint *remote,
					 const struct sl_endpoint *local, struct sl_guard *guard,
					 __u32 sandbox, bool udp)
{
	struct bpf_sock_tuple tuple = {};
	__u32 size = sizeof(tuple.ipv4);
	struct bpf_sock *socket;
	struct sl_sock *rec;
	bool own;

	if (!endpoint_loopback(remote))
		return false;
	if (guard->flags & SL_GUARD_OWN_NETNS)
		return true;
	if (remote->addr_be[2] == V4_MAPPED) {
		tuple.ipv4.daddr = remote->addr_be[3];
		tuple.ipv4.dport = remote->port_be;
		tuple.ipv4.saddr = udp ? loopback_source(local) : 0;
		tuple.ipv4.sport = udp ? local->port_be : 0;
	} else {
		__builtin_memcpy(tuple.ipv6.daddr, remote->addr_be, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.dport = remote->port_be;
		tuple.ipv6.saddr[3] = udp ? bpf_htonl(1) : 0; /* there is one address only */
		tuple.ipv6.sport = udp ? local->port_be : 0;
		size = sizeof(tuple.ipv6);
	}
	socket = udp ? bpf_sk_lookup_udp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0)
		     : bpf_sk_lookup_tcp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return false;
	rec = looked_up_record(socket, udp);
	own = rec && rec->owner.sandbox == sandbox && !(rec->flags & SL_SOCK_FOREIGN);
	bpf_sk_release(socket);
	return own;
}

#endif
