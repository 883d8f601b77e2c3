/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP sockets that are connected to try an address. getaddrinfo() does so with each address
 * of a name, to learn which source each would have (RFC 6724, 2 and 5), with the port that
 * is meant for TCP or with none. Nothing is sent, so nothing is denied: such a connect()
 * passes, and from then on each datagram of the socket is decided by the destination that
 * it carries (guard_skb.bpf.c), since a socket's connected peer may be another one than the
 * latest connect() asked for: one that fails leaves the earlier.
 */
#ifndef SLUICE_BPF_PROBE_H
#define SLUICE_BPF_PROBE_H

#include "cgroup.h"
#include "loopback.h"

/* Whether TCP may have it, or nobody can: port 0. */
static __noinline bool probe_names(const struct sl_guard *guard, __u32 lineage,
				   const struct sl_sock *rec, const struct sl_endpoint *remote)
{
	struct verdict v = {};

	if (!guard || !rec || !remote)
		return false;
	if (!remote->port_be)
		return true;
	verdict_ask(&v, guard, lineage, rec, SL_TRANSPORT_TCP);
	verdict_rules(&v, remote);
	return v.reason == SL_REASON_NONE;
}

/*
 * Only where the guard sees the packets of the socket: they run the hooks of the cgroup
 * that the socket was made in, wherever its user is now.
 */
static __always_inline bool probe_connect(struct bpf_sock_addr *ctx, struct sl_sock *rec,
					  struct sl_guard *guard, __u32 lineage, __u32 sandbox,
					  const struct sl_endpoint *remote)
{
	struct bpf_sock_addr_kern *kernel = (void *)ctx;

	if (!rec || ctx->type != SOCK_DGRAM ||
	    (ctx->protocol != IPPROTO_UDP && ctx->protocol != IPPROTO_UDPLITE) ||
	    (!probe_names(guard, lineage, rec, remote) &&
	     !own_loopback(ctx, remote, NULL, guard, sandbox, false)) ||
	    cgroup_sandbox(BPF_CORE_READ(kernel, sk, sk_cgrp_data.cgroup)) != sandbox)
		return false;
	rec->flags |= SL_SOCK_PROBE;
	return true;
}

#endif
