// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ownership: what only the TCP stack knows. On a real network these run in softirq, so
 * `current` is never read here.
 *
 *	tcp_connect()        -> TCP_CONNECT_CB          port chosen, SYN not yet sent
 *	tcp_finish_connect() -> ACTIVE_ESTABLISHED_CB
 *	tcp_rcv_state_process() -> PASSIVE_ESTABLISHED_CB on the child, before accept()
 *	inet_csk_listen_start() -> TCP_LISTEN_CB        also without a bind()
 *	tcp_set_state()      -> STATE_CB                asked for on accepted sockets only
 */
#include "kernel.h"
#include "bytes.h"
#include "verdict.h"

static __always_inline void sockops_endpoints(struct sl_sock *rec, struct bpf_sock_ops *ctx)
{
	__be16 remote_port_be = bpf_htons(bpf_ntohl(ctx->remote_port));
	__be16 local_port_be = bpf_htons(ctx->local_port);
	/*
	 * All are read before the branch: clang would merge reads of two branches into one
	 * through a computed context pointer, which the verifier refuses.
	 */
	__be32 local4 = ctx->local_ip4, remote4 = ctx->remote_ip4;
	__be32 local6[4] = { ctx->local_ip6[0], ctx->local_ip6[1], ctx->local_ip6[2],
			     ctx->local_ip6[3] };
	__be32 remote6[4] = { ctx->remote_ip6[0], ctx->remote_ip6[1], ctx->remote_ip6[2],
			      ctx->remote_ip6[3] };

	barrier_var(local4);
	barrier_var(remote4);
	if (ctx->family == AF_INET) {
		endpoint_v4(&rec->local, local4, local_port_be);
		endpoint_v4(&rec->remote, remote4, remote_port_be);
	} else {
		endpoint_v6(&rec->local, local6, local_port_be);
		endpoint_v6(&rec->remote, remote6, remote_port_be);
	}
}

static __always_inline void active_connect(struct bpf_sock_ops *ctx, struct sl_sock *rec)
{
	/* Joined MPTCP subflows have tuples of their own; the first one names the socket. */
	if (rec->flags & SL_SOCK_TUPLE)
		return;
	sockops_endpoints(rec, ctx);
	tuple_publish(rec, !(rec->flags & SL_SOCK_ADOPTED));
}

static __always_inline void active_established(struct sl_sock *rec)
{
	if (rec->flags & SL_SOCK_ESTABLISHED)
		return;
	rec->flags |= SL_SOCK_ESTABLISHED;
	sock_event(SL_EVENT_ESTABLISHED, rec, 0);
}

/* The owner of the other end, if it is on this host and known. */
static __always_inline void peer_find(struct sl_sock *rec)
{
	struct sl_owner *owner = tuple_owner(rec->netns_cookie, &rec->remote, &rec->local);

	if (!owner)
		return;
	rec->peer = *owner;
	rec->flags |= SL_SOCK_PEER_KNOWN;
	count(rec->owner.sandbox, SL_COUNTER_SOCK_PEER_KNOWN);
}

/* The child starts as a copy of its listener's record: the listener's owner owns it. */
static __always_inline void passive_established(struct bpf_sock_ops *ctx, struct sl_sock *rec)
{
	__u64 now;

	/* Another subflow of an MPTCP connection: the first one names the socket. */
	if (rec->flags & SL_SOCK_ACCEPTED)
		return;
	now = bpf_ktime_get_boot_ns();
	rec->cookie = bpf_get_socket_cookie(ctx);
	rec->netns_cookie = bpf_get_netns_cookie(ctx);
	rec->since_ns = now;
	rec->flags = SL_SOCK_ACCEPTED | SL_SOCK_ESTABLISHED |
		     (rec->flags & (SL_SOCK_FOREIGN | SL_SOCK_PREEXISTING));
	rec->state = TCP_ESTABLISHED;
	sockops_endpoints(rec, ctx);
	peer_find(rec);
	count(rec->owner.sandbox, SL_COUNTER_SOCK_CREATED);
	count(rec->owner.sandbox, SL_COUNTER_SOCK_ADOPTED);
	count(rec->owner.sandbox, SL_COUNTER_SOCK_ACCEPT);
	/* A child nobody accepts is never released by a descriptor: watch its state. */
	bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG);
	sock_event(SL_EVENT_ACCEPT, rec, now);
}

/*
 * listen() can't be refused here; SYNs to a socket that may not listen are dropped
 * (guard_skb.bpf.c). This tells why nobody gets through.
 */
static __always_inline void listen_verdict(struct sl_sock *rec)
{
	struct sl_guard *guard = guard_active(rec->owner.sandbox);

	if (guard && !listen_allowed(guard, SL_TRANSPORT_TCP, &rec->local, rec))
		listen_tell(rec, guard, IPPROTO_TCP, &rec->local);
}

/* Children start as copies of what the listener's own storage holds. */
static __always_inline void listen_start(struct bpf_sock *sk, struct bpf_sock_ops *ctx,
					 struct sl_sock *rec)
{
	struct mptcp_sock *msk = bpf_skc_to_mptcp_sock(sk);
	struct sl_sock *template;

	sockops_endpoints(rec, ctx);
	__builtin_memset(&rec->remote, 0, sizeof(rec->remote));
	sock_since(rec);
	rec->flags |= SL_SOCK_LISTENING;
	/* What accept() returns is a clone of the MPTCP socket, not of its subflow. */
	if (msk)
		template = bpf_sk_storage_get(&adopted, msk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	else
		template = bpf_sk_storage_get(&adopted, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!template)
		count(rec->owner.sandbox, SL_COUNTER_SOCK_NOMEM);
	else if (template != rec)
		*template = *rec;
	sock_event(SL_EVENT_LISTEN, rec, 0);
	listen_verdict(rec);
}

/* End of a child that no accept() ever returned. */
static __always_inline void passive_state(struct bpf_sock_ops *ctx, struct sl_sock *rec)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct tcp_bytes bytes;

	if (ctx->args[1] != TCP_CLOSE || (rec->flags & SL_SOCK_RELEASED) || !sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.sk_socket))
		return;
	tcp_bytes_read(&bytes, tp, TCP_CLOSE, false);
	rec->bytes_sent = bytes.sent;
	rec->bytes_acked = bytes.acked;
	rec->bytes_received = bytes.received;
	rec->state = TCP_CLOSE;
	rec->error = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.sk_err);
	sock_finish(rec);
}

SEC("sockops")
int on_sockops(struct bpf_sock_ops *ctx)
{
	__u32 op = ctx->op;
	struct bpf_sock *sk;
	struct sl_sock *rec;

	if (op != BPF_SOCK_OPS_TCP_CONNECT_CB && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB && op != BPF_SOCK_OPS_TCP_LISTEN_CB &&
	    op != BPF_SOCK_OPS_STATE_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	rec = sock_record(sk, bpf_get_socket_cookie(ctx));
	if (!rec)
		return 1;
	if (op == BPF_SOCK_OPS_TCP_CONNECT_CB)
		active_connect(ctx, rec);
	else if (op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		active_established(rec);
	else if (op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		passive_established(ctx, rec);
	else if (op == BPF_SOCK_OPS_TCP_LISTEN_CB)
		listen_start(sk, ctx, rec);
	else
		passive_state(ctx, rec);
	return 1;
}
