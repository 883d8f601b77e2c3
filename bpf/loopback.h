/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sandbox's own loopback. */
#ifndef SLUICE_BPF_LOOPBACK_H
#define SLUICE_BPF_LOOPBACK_H

#include "verdict.h"

/*
 * A loopback destination is the sandbox's own when a member serves it, or when nobody else
 * can: in a network namespace of its own.
 */
static __always_inline bool own_loopback(void *ctx, const struct sl_endpoint *remote,
					 struct sl_guard *guard, __u32 sandbox, bool udp)
{
	struct bpf_sock_tuple tuple = {};
	__u32 size = sizeof(tuple.ipv4);
	struct bpf_sock *listener;
	struct sl_sock *rec;
	bool own;

	if (!endpoint_loopback(remote))
		return false;
	if (guard->flags & SL_GUARD_OWN_NETNS)
		return true;
	if (remote->addr_be[2] == V4_MAPPED) {
		tuple.ipv4.daddr = remote->addr_be[3];
		tuple.ipv4.dport = remote->port_be;
	} else {
		__builtin_memcpy(tuple.ipv6.daddr, remote->addr_be, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.dport = remote->port_be;
		size = sizeof(tuple.ipv6);
	}
	listener = udp ? bpf_sk_lookup_udp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0)
		       : bpf_sk_lookup_tcp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!listener)
		return false;
	rec = bpf_sk_storage_get(&adopted, listener, NULL, 0);
	own = rec && rec->owner.sandbox == sandbox;
	bpf_sk_release(listener);
	return own;
}

#endif
