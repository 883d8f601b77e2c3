// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The guard on packets, attached to a sandbox's cgroup once it has a policy. Connections
 * were decided when they were made; here is what only packets show:
 *
 * - a route that the packet names itself (IPv4 source route, IPv6 routing header) leads
 *   elsewhere than the destination that was decided;
 * - a policy that was replaced, or a freeze, ends connections that live;
 * - listen() has no hook that could refuse it (inet_csk_listen_start()), so SYNs to a
 *   socket that may not listen are dropped.
 *
 * skb->sk on egress is the sender's socket, on ingress the receiver's; in softirq, so
 * `current` is never read.
 */
#include "kernel.h"
#include "loopback.h"

#define IPV4_OPTION_END 0
#define IPV4_OPTION_NOP 1
#define IPV4_OPTION_LSRR 131 /* RFC 791, 3.1 */
#define IPV4_OPTION_SSRR 137
#define IPV4_OPTIONS_MAX 40

#define IPV6_HOPOPTS 0
#define IPV6_ROUTING 43
#define IPV6_DSTOPTS 60
#define IPV6_HEADER_BYTES 40
#define IPV6_EXTENSIONS_MAX 8

#define SKB_PASS 1
#define SKB_DROP 0

static __always_inline bool ipv4_source_routed(struct __sk_buff *skb, __u8 first)
{
	__u32 end = (first & 15) * 4, at = 20;
	__u8 option[2];

	for (int i = 0; i < IPV4_OPTIONS_MAX && at < end; i++) {
		if (bpf_skb_load_bytes(skb, at, option, sizeof(option)))
			return true; /* can't be told: not let through */
		if (option[0] == IPV4_OPTION_END)
			return false;
		if (option[0] == IPV4_OPTION_LSRR || option[0] == IPV4_OPTION_SSRR)
			return true;
		at += option[0] == IPV4_OPTION_NOP ? 1 : option[1];
		if (option[0] != IPV4_OPTION_NOP && option[1] < 2)
			return true;
	}
	return false;
}

static __always_inline bool ipv6_source_routed(struct __sk_buff *skb)
{
	__u32 at = IPV6_HEADER_BYTES;
	__u8 next, extension[2];

	if (bpf_skb_load_bytes(skb, 6, &next, sizeof(next)))
		return true;
	for (int i = 0; i < IPV6_EXTENSIONS_MAX; i++) {
		if (next == IPV6_ROUTING)
			return true;
		if (next != IPV6_HOPOPTS && next != IPV6_DSTOPTS)
			return false;
		if (bpf_skb_load_bytes(skb, at, extension, sizeof(extension)))
			return true;
		next = extension[0];
		at += (extension[1] + 1) * 8;
	}
	return true;
}

static __always_inline bool source_routed(struct __sk_buff *skb)
{
	__u8 first = 0;

	if (bpf_skb_load_bytes(skb, 0, &first, sizeof(first)))
		return true;
	if (first >> 4 == 6)
		return ipv6_source_routed(skb);
	return (first & 15) > 5 && ipv4_source_routed(skb, first);
}

/*
 * Whether the connection may not go on: what allowed it does not any more, or it is older
 * than any policy and none would have allowed it.
 */
static __always_inline bool revoked(struct __sk_buff *skb, struct sl_sock *rec,
				    struct sl_guard *guard)
{
	struct verdict v = { .policy = guard->policy };
	bool udp = rec->type == SOCK_DGRAM;

	if (guard->mode == SL_GUARD_FROZEN)
		return true;
	if (guard->mode != SL_GUARD_ENFORCE || rec->policy == guard->policy ||
	    !(rec->flags & SL_SOCK_CONNECTED) || (rec->flags & SL_SOCK_OWN) ||
	    (rec->policy && (guard->flags & SL_GUARD_KEEP)))
		return false;
	verdict_rules(&v, rec->owner.lineage, udp ? SL_TRANSPORT_UDP : SL_TRANSPORT_TCP,
		      &rec->remote);
	if (v.reason != SL_REASON_NONE &&
	    !own_loopback(skb, &rec->remote, guard, rec->owner.sandbox, udp))
		return true;
	rec->policy = guard->policy;
	return false;
}

/* Offset of an IPv6 packet's UDP header; 0: there is none that can be told. */
static __always_inline __u32 ipv6_udp_at(struct __sk_buff *skb)
{
	__u32 at = IPV6_HEADER_BYTES;
	__u8 next, extension[2];

	if (bpf_skb_load_bytes(skb, 6, &next, sizeof(next)))
		return 0;
	for (int i = 0; i < IPV6_EXTENSIONS_MAX; i++) {
		if (next == IPPROTO_UDP || next == IPPROTO_UDPLITE)
			return at;
		if ((next != IPV6_HOPOPTS && next != IPV6_DSTOPTS) ||
		    bpf_skb_load_bytes(skb, at, extension, sizeof(extension)))
			return 0;
		next = extension[0];
		at += (extension[1] + 1) * 8;
	}
	return 0;
}

/* Where a datagram goes, as it says itself; false when that can't be told. */
static __always_inline bool datagram_remote(struct __sk_buff *skb, struct sl_endpoint *remote)
{
	__be32 addr_be[4];
	__be16 port_be;
	__u8 first;
	__u32 at;

	if (bpf_skb_load_bytes(skb, 0, &first, sizeof(first)))
		return false;
	if (first >> 4 == 6) {
		at = ipv6_udp_at(skb);
		if (!at || bpf_skb_load_bytes(skb, 24, addr_be, sizeof(addr_be)) ||
		    bpf_skb_load_bytes(skb, at + 2, &port_be, sizeof(port_be)))
			return false;
		endpoint_v6(remote, addr_be, port_be);
		return true;
	}
	if (bpf_skb_load_bytes(skb, 16, addr_be, sizeof(addr_be[0])) ||
	    bpf_skb_load_bytes(skb, (first & 15) * 4 + 2, &port_be, sizeof(port_be)))
		return false;
	endpoint_v4(remote, addr_be[0], port_be);
	return true;
}

/* A datagram of a socket that was connected to try an address (probe.h). */
static __always_inline bool datagram_denied(struct __sk_buff *skb, struct sl_sock *rec,
					    struct sl_guard *guard)
{
	struct sl_decision_key key = {
		.sandbox = rec->owner.sandbox,
		.lineage = rec->owner.lineage,
		.policy = guard->policy,
		.protocol = IPPROTO_UDP,
	};
	struct verdict v = { .policy = guard->policy };

	if (!datagram_remote(skb, &key.remote))
		v.reason = SL_REASON_INTERNAL;
	else if (!own_loopback(skb, &key.remote, guard, rec->owner.sandbox, true))
		verdict_rules(&v, rec->owner.lineage, SL_TRANSPORT_UDP, &key.remote);
	if (v.reason == SL_REASON_NONE)
		return false;
	key.reason = v.reason;
	return !verdict_tell(&key, &rec->owner, rec->cookie, v.class_id);
}

SEC("cgroup_skb/egress")
int on_guard_egress(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct sl_guard *guard;
	struct sl_sock *rec;
	__u32 sandbox;

	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	rec = sk ? sock_record(sk, bpf_get_socket_cookie(skb)) : NULL;
	sandbox = rec ? rec->owner.sandbox : 0;
	guard = bpf_map_lookup_elem(&guards, &sandbox);
	/* Of packets that belong to nobody known only the route is looked at. */
	if (rec && (!guard || guard->mode == SL_GUARD_OBSERVE))
		return SKB_PASS;
	if (source_routed(skb)) {
		count(sandbox, SL_COUNTER_SOURCE_ROUTED);
		return rec && guard && guard->mode == SL_GUARD_AUDIT ? SKB_PASS : SKB_DROP;
	}
	if (rec && guard && guard->mode != SL_GUARD_FROZEN && (rec->flags & SL_SOCK_PROBE))
		return datagram_denied(skb, rec, guard) ? SKB_DROP : SKB_PASS;
	if (!rec || !guard || !revoked(skb, rec, guard))
		return SKB_PASS;
	count(sandbox, SL_COUNTER_REVOKED);
	return SKB_DROP;
}

SEC("cgroup_skb/ingress")
int on_guard_ingress(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct mptcp_sock *msk;
	struct sl_guard *guard;
	struct sl_sock *rec;
	__u32 sandbox;

	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	if (!sk || sk->state != TCP_LISTEN)
		return SKB_PASS;
	/* What listens for MPTCP is a socket of the kernel's: the application's answers. */
	msk = bpf_skc_to_mptcp_sock(sk);
	if (msk)
		rec = bpf_sk_storage_get(&adopted, msk, NULL, 0);
	else
		rec = bpf_sk_storage_get(&adopted, sk, NULL, 0);
	if (!rec)
		return SKB_PASS;
	sandbox = rec->owner.sandbox;
	guard = guard_active(sandbox);
	if (!guard || guard->mode == SL_GUARD_AUDIT)
		return SKB_PASS;
	if (guard->mode != SL_GUARD_FROZEN && listen_allowed(guard, rec, rec->owner.lineage))
		return SKB_PASS;
	count(sandbox, SL_COUNTER_NOT_LISTENING);
	return SKB_DROP;
}
