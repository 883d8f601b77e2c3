// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The guard on packets, attached to a sandbox's cgroup once it has a policy. Connections
 * were decided when they were made; here is what only packets show:
 *
 * - a route that the packet names itself (IPv4 source route, IPv6 routing header) leads
 *   elsewhere than the destination that was decided;
 * - a policy that was replaced, or a freeze, ends connections that live;
 * - listen() has no hook that could refuse it (inet_csk_listen_start()), so SYNs to a
 *   socket that may not listen are dropped;
 * - no call of a member's comes before a datagram that nobody asked for (datagram.h).
 *
 * skb->sk on egress is the sender's socket, on ingress the receiver's; in softirq, so
 * `current` is never read.
 */
#include "kernel.h"
#include "datagram.h"
#include "name.h"
#include "proxy.h"
#include "redirect.h"

#define SKB_PASS 1
#define SKB_DROP 0

/* Whether a datagram was decided when it was sent, and not when its socket was connected. */
static __always_inline bool datagram_decided(struct __sk_buff *skb, struct bpf_sock *sk,
					     const struct sl_sock *rec)
{
	struct sl_endpoint target;

	return !datagram_connected(sk) || (datagram_end(skb, DATAGRAM_TARGET, &target) &&
					   !endpoint_equal(&target, &rec->remote));
}

/*
 * Whether the connection may not go on: what allowed it does not any more, or it is older
 * than any policy and none would have allowed it.
 */
static __always_inline bool revoked(struct __sk_buff *skb, struct bpf_sock *sk, struct sl_sock *rec,
				    struct sl_guard *guard)
{
	struct sl_endpoint remote;
	struct verdict v;
	bool udp = rec->type == SOCK_DGRAM;

	if (guard->mode == SL_GUARD_FROZEN)
		return true;
	if (guard->mode != SL_GUARD_ENFORCE || rec->policy == guard->policy ||
	    !(rec->flags & SL_SOCK_CONNECTED) || (rec->flags & SL_SOCK_OWN) ||
	    (udp && datagram_decided(skb, sk, rec)) ||
	    (rec->policy && (guard->flags & SL_GUARD_KEEP)))
		return false;
	verdict_ask(&v, guard, rec->owner.lineage, rec, udp ? SL_TRANSPORT_UDP : SL_TRANSPORT_TCP);
	decided_end(&remote, rec);
	verdict_rules(&v, &remote);
	/* A member that serves the proxy's address by now has not made this its own. */
	if (v.reason != SL_REASON_NONE &&
	    ((rec->flags & SL_SOCK_PROXIED) ||
	     !own_loopback(skb, &remote, &rec->local, guard, rec->owner.sandbox, udp)))
		return true;
	rec->policy = guard->policy;
	return false;
}

/* The application is not told: to it the peer has gone silent. So the operator is. */
static __always_inline void revoked_tell(const struct sl_sock *rec, const struct sl_guard *guard)
{
	struct sl_decision_key key = {
		.sandbox = rec->owner.sandbox,
		.lineage = rec->owner.lineage,
		.policy = guard->policy,
		.protocol = rec->protocol,
		.reason = SL_REASON_STALE_POLICY,
		.name = rec->name,
	};

	decided_end(&key.remote, rec);
	verdict_tell(&key, &rec->owner, rec->cookie, 0);
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
	struct verdict v;

	verdict_ask(&v, guard, rec->owner.lineage, rec, SL_TRANSPORT_UDP);
	if (!datagram_end(skb, DATAGRAM_TARGET, &key.remote))
		v.reason = SL_REASON_INTERNAL;
	else if (!own_loopback(skb, &key.remote, &rec->local, guard, rec->owner.sandbox, true))
		verdict_rules(&v, &key.remote);
	if (v.reason == SL_REASON_NONE ||
	    ((guard->flags & SL_GUARD_DNS) && dns_listens(rec->owner.sandbox, &key.remote)))
		return false;
	key.reason = v.reason;
	key.name = remote_name(guard, rec->owner.sandbox, &rec->owner, &key.remote);
	return !verdict_tell(&key, &rec->owner, rec->cookie, v.class_id);
}

/* Who sends datagrams to a policy DNS or a relay, which has their port when it asks. */
static __always_inline void datagram_publish(struct bpf_sock *sk, const struct sl_sock *rec)
{
	struct sl_datagram key = {
		.netns_cookie = rec->netns_cookie,
		.protocol = IPPROTO_UDP,
		.port_be = bpf_htons(sk->src_port),
	};
	__u64 cookie = rec->cookie, *last = bpf_map_lookup_elem(&datagrams, &key);

	if (!last || *last != cookie)
		bpf_map_update_elem(&datagrams, &key, &cookie, BPF_ANY);
}

static __always_inline bool datagram_published(struct bpf_sock *sk, const struct sl_sock *rec,
					       const struct sl_guard *guard)
{
	return sk->protocol == IPPROTO_UDP &&
	       ((guard->flags & SL_GUARD_DATAGRAMS) || (rec->flags & SL_SOCK_REDIRECTED));
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
	if (rec && guard && datagram_published(sk, rec, guard))
		datagram_publish(sk, rec);
	if (rec && guard && guard->mode != SL_GUARD_FROZEN && (rec->flags & SL_SOCK_PROBE))
		return datagram_denied(skb, rec, guard) ? SKB_DROP : SKB_PASS;
	if (!rec || !guard || !revoked(skb, sk, rec, guard))
		return SKB_PASS;
	count(sandbox, SL_COUNTER_REVOKED);
	if (guard->mode != SL_GUARD_FROZEN)
		revoked_tell(rec, guard);
	return SKB_DROP;
}

static __always_inline int ingress_listener(struct bpf_sock *sk)
{
	struct mptcp_sock *msk = bpf_skc_to_mptcp_sock(sk);
	struct sl_guard *guard;
	struct sl_sock *rec;
	__u32 sandbox;

	/* What listens for MPTCP is a socket of the kernel's: the application's answers. */
	if (msk)
		rec = bpf_sk_storage_get(&adopted, msk, NULL, 0);
	else
		rec = bpf_sk_storage_get(&adopted, sk, NULL, 0);
	/* Without a record nobody is known to may listen: the cgroup says whose rules hold. */
	sandbox = rec ? rec->owner.sandbox : sock_cgroup_sandbox(sk);
	guard = guard_active(sandbox);
	if (!guard || guard->mode == SL_GUARD_AUDIT)
		return SKB_PASS;
	if (rec && guard->mode != SL_GUARD_FROZEN &&
	    listen_allowed(guard, SL_TRANSPORT_TCP, &rec->local, rec))
		return SKB_PASS;
	count(sandbox, SL_COUNTER_NOT_LISTENING);
	return SKB_DROP;
}

static __always_inline bool sock_probes(struct __sk_buff *skb, struct bpf_sock *sk)
{
	struct sl_sock *rec = sock_find(sk, bpf_get_socket_cookie(skb));

	return rec && (rec->flags & SL_SOCK_PROBE);
}

SEC("cgroup_skb/ingress")
int on_guard_ingress(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	if (!sk)
		return SKB_PASS;
	if (sk->state == TCP_LISTEN)
		return ingress_listener(sk);
	if (!datagram_socket(sk))
		return SKB_PASS;
	/* The kernel takes its peer's only; whom it was connected to by way of trial is nobody. */
	if (datagram_connected(sk) && !sock_probes(skb, sk))
		return SKB_PASS;
	return datagram_passes(skb, sk) ? SKB_PASS : SKB_DROP;
}
