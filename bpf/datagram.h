/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a member's UDP socket may receive, decided for each datagram (udp_queue_rcv_one_skb()
 * -> sk_filter_trim_cap()). UDP has no connection whose first packet could be refused, so
 * one passes when
 *
 * - the socket is connected, and not to try an address (probe.h): the kernel gives it nothing
 *   but what its peer sent;
 * - the socket has sent to that address and port: an answer (peer.h);
 * - the socket is bound to loopback, as for TCP, or a `listen` entry has its port;
 * - it came over loopback from another member's socket.
 *
 * What answers from another address than was asked, like the members of a multicast group,
 * needs the entry. ICMP errors are no datagrams and don't come here (udp_err()).
 */
#ifndef SLUICE_BPF_DATAGRAM_H
#define SLUICE_BPF_DATAGRAM_H

#include "cgroup.h"
#include "loopback.h"
#include "packet.h"
#include "peer.h"

static __always_inline bool datagram_socket(struct bpf_sock *sk)
{
	return sk->type == SOCK_DGRAM &&
	       (sk->protocol == IPPROTO_UDP || sk->protocol == IPPROTO_UDPLITE);
}

/* The sandbox whose cgroup the socket was made in; for one that has no record. */
static __always_inline __u32 sock_cgroup_sandbox(struct bpf_sock *sk)
{
	return cgroup_sandbox(BPF_CORE_READ(sock_plain(sk), sk_cgrp_data.cgroup));
}

static __always_inline bool datagram_wanted(struct __sk_buff *skb, const struct sl_sock *rec,
					    struct sl_guard *guard, const struct sl_endpoint *local)
{
	__u32 sandbox = rec->owner.sandbox;
	struct sl_endpoint source;

	if (guard->mode == SL_GUARD_FROZEN || !datagram_end(skb, DATAGRAM_SOURCE, &source))
		return false;
	return peer_known(rec, &source) || listen_allowed(guard, SL_TRANSPORT_UDP, local, rec) ||
	       own_loopback(skb, &source, local, guard, sandbox, true);
}

/* Of a socket that is not connected. */
static __always_inline bool datagram_passes(struct __sk_buff *skb, struct bpf_sock *sk)
{
	struct sl_sock *rec = sock_find(sk, bpf_get_socket_cookie(skb));
	__u32 sandbox = rec ? rec->owner.sandbox : sock_cgroup_sandbox(sk);
	struct sl_guard *guard = guard_active(sandbox);
	struct sl_endpoint local;

	if (!guard)
		return true;
	endpoint_local(&local, sk);
	if (rec && datagram_wanted(skb, rec, guard, &local))
		return true;
	if (rec && guard->mode != SL_GUARD_FROZEN && listen_tell(rec, guard, sk->protocol, &local))
		return true;
	if (guard->mode == SL_GUARD_AUDIT)
		return true;
	count(sandbox, SL_COUNTER_UNSOLICITED);
	return false;
}

#endif
