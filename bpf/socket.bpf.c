// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ownership: the cgroup hooks of sockets. All run in the context of the caller.
 *
 *	inet_create()       -> sock_create    never for sockets of the kernel's own
 *	inet_stream_connect(), inet_dgram_connect()
 *	                    -> connect4/6     before the address is used; no local port yet
 *	udp_sendmsg() with a name -> sendmsg4/6
 *	__inet_bind()       -> post_bind4/6   after the port was taken
 *	inet_release()      -> sock_release   the last descriptor was closed
 */
#include "kernel.h"
#include "bytes.h"
#include "call.h"
#include "peer.h"
#include "redirect.h"

static __always_inline void no_identity(void)
{
	count(0, SL_COUNTER_NO_IDENTITY);
}

/*
 * A record among the live ones whose slots are taken; NULL when there is no room (counted).
 * Not inline: the record it begins with takes most of a program's stack.
 */
static __noinline struct sl_sock *over_new(__u64 cookie, __u32 sandbox)
{
	struct sl_sock empty = { .cookie = cookie };
	long err;

	count(sandbox, SL_COUNTER_SOCK_OVERFLOW);
	err = bpf_map_update_elem(&socks_over, &cookie, &empty, BPF_NOEXIST);
	if (err) {
		count_map_error(sandbox, SL_COUNTER_SOCKS_FULL, err);
		return NULL;
	}
	return bpf_map_lookup_elem(&socks_over, &cookie);
}

SEC("cgroup/sock_create")
int on_sock_create(struct bpf_sock *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sl_owner *state = owner_state(task);
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct sl_sock *rec;

	if (!create_verdict(ctx, caller_sandbox(task, state), state))
		return 0;
	if (!state) {
		no_identity();
		return 1;
	}
	rec = slot_choose(cookie);
	if (!rec || !slot_take(rec))
		rec = over_new(cookie, state->sandbox);
	if (!rec)
		return 1;
	slot_clear(rec);
	owner_fill(&rec->owner, state, task);
	rec->netns_cookie = bpf_get_netns_cookie(ctx);
	rec->family = ctx->family;
	rec->type = ctx->type;
	rec->protocol = ctx->protocol;
	slot_publish(rec, cookie);
	count(state->sandbox, SL_COUNTER_SOCK_CREATED);
	sock_event(SL_EVENT_OPEN, rec, 0);
	return 1;
}

/*
 * The record of the calling task's socket. The caller becomes its owner unless one of the
 * `settled` flags says that another has: who uses it later is its `user`.
 */
static __always_inline struct sl_sock *sock_for_call(struct bpf_sock_addr *ctx, __u32 settled,
						     const struct sl_owner *state)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct bpf_sock *sk = ctx->sk;
	struct sl_owner owner;
	struct sl_sock *rec;

	if (!sk)
		return NULL;
	rec = sock_record(sk, cookie);
	if (rec) {
		if (!(rec->flags & settled))
			sock_take(rec, state);
		return rec;
	}
	if (!state) {
		no_identity();
		return NULL;
	}
	owner_fill(&owner, state, bpf_get_current_task_btf());
	rec = sock_adopt(sk, cookie, &owner, SL_SOCK_FOREIGN);
	if (!rec)
		return NULL;
	rec->netns_cookie = bpf_get_netns_cookie(ctx);
	rec->family = sk->family;
	rec->type = sk->type;
	rec->protocol = sk->protocol;
	count(owner.sandbox, SL_COUNTER_SOCK_UNSEEN);
	return rec;
}

static __always_inline int socket_connect(struct bpf_sock_addr *ctx, bool v6)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sl_owner *state = owner_state(task);
	struct sl_sock *rec = sock_for_call(ctx, 0, state);
	struct sl_endpoint remote;
	struct call_found found = {};

	remote_of(&remote, ctx, v6);
	if (redirected(ctx, rec, &remote, state, v6))
		sock_settle(rec, 0, true);
	else if (!remote_verdict(ctx, rec, &remote, task, state, true, true, &found))
		return 0;
	else if (found.proxy)
		led_to(ctx, &remote, found.proxy, v6);
	else if (rec)
		original_forget(rec);
	if (!rec)
		return 1;
	if (rec->flags & SL_SOCK_CONNECTED) {
		/* connect(AF_UNSPEC) runs no hook: this is how a second connection shows. */
		tuple_remove(rec);
		rec->generation++;
		rec->error = 0;
		rec->flags &= ~SL_SOCK_ESTABLISHED;
		count(rec->owner.sandbox, SL_COUNTER_SOCK_DISCONNECT);
	}
	rec->remote = remote;
	rec->name = found.name;
	rec->since_ns = bpf_ktime_get_boot_ns();
	rec->flags |= SL_SOCK_CONNECTED;
	count(rec->owner.sandbox, SL_COUNTER_SOCK_CONNECT);
	/* After a disconnect it may still answer what was sent to it. */
	if (ctx->type == SOCK_DGRAM)
		peer_note(rec, &remote);
	sock_event(SL_EVENT_CONNECT, rec, rec->since_ns);
	return 1;
}

SEC("cgroup/connect4")
int on_connect4(struct bpf_sock_addr *ctx)
{
	return socket_connect(ctx, false);
}

SEC("cgroup/connect6")
int on_connect6(struct bpf_sock_addr *ctx)
{
	return socket_connect(ctx, true);
}

static __always_inline int socket_sendmsg(struct bpf_sock_addr *ctx, bool v6)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sl_owner *state = owner_state(task);
	struct sl_endpoint remote;
	struct call_found found = {};
	struct sl_sock *rec;

	remote_of(&remote, ctx, v6);
	if (endpoint_empty(&remote)) /* a control message without a name: the connected peer */
		return 1;
	rec = sock_for_call(ctx, SL_SOCK_CONNECTED | SL_SOCK_BOUND | SL_SOCK_SENT, state);
	found.name = rec ? rec->name : 0;
	if (redirected(ctx, rec, &remote, state, v6))
		found.name = 0;
	else if (!remote_verdict(ctx, rec, &remote, task, state, false,
				 !datagram_connected(ctx->sk), &found))
		return 0;
	if (!rec)
		return 1;
	sock_since(rec);
	rec->flags |= SL_SOCK_SENT;
	if (!(rec->flags & SL_SOCK_CONNECTED)) {
		rec->remote = remote;
		rec->name = found.name;
	}
	if (peer_note(rec, &remote))
		sock_event(SL_EVENT_SEND, rec, 0);
	return 1;
}

SEC("cgroup/sendmsg4")
int on_sendmsg4(struct bpf_sock_addr *ctx)
{
	return socket_sendmsg(ctx, false);
}

SEC("cgroup/sendmsg6")
int on_sendmsg6(struct bpf_sock_addr *ctx)
{
	return socket_sendmsg(ctx, true);
}

static __always_inline struct sl_sock *sock_bound(struct bpf_sock *ctx)
{
	struct sl_sock *rec = sock_find(ctx, bpf_get_socket_cookie(ctx));

	if (!rec)
		return NULL;
	if (!(rec->flags & SL_SOCK_CONNECTED))
		sock_take(rec, owner_state(bpf_get_current_task_btf()));
	sock_since(rec);
	rec->flags |= SL_SOCK_BOUND;
	return rec;
}

SEC("cgroup/post_bind4")
int on_post_bind4(struct bpf_sock *ctx)
{
	struct sl_sock *rec = sock_bound(ctx);

	if (rec)
		endpoint_v4(&rec->local, ctx->src_ip4, bpf_htons(ctx->src_port));
	return 1;
}

SEC("cgroup/post_bind6")
int on_post_bind6(struct bpf_sock *ctx)
{
	struct sl_sock *rec = sock_bound(ctx);

	if (rec)
		endpoint_local_v6(&rec->local, ctx);
	return 1;
}

/* UDP picks its port, and a connected socket its address, after the hooks above. */
static __always_inline void sock_read_local(struct sl_sock *rec, struct bpf_sock *ctx)
{
	struct sock *sk = (void *)ctx;
	__be32 addr_be[4];

	/* A raw socket has its protocol where others have their port. */
	if (rec->local.port_be || rec->type == SOCK_RAW)
		return;
	if (rec->family == AF_INET) {
		endpoint_v4(&rec->local, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr),
			    bpf_htons(BPF_CORE_READ(sk, __sk_common.skc_num)));
		return;
	}
	BPF_CORE_READ_INTO(&addr_be, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32);
	endpoint_v6(&rec->local, addr_be, bpf_htons(BPF_CORE_READ(sk, __sk_common.skc_num)));
}

SEC("cgroup/sock_release")
int on_sock_release(struct bpf_sock *ctx)
{
	struct sl_sock *rec = sock_find(ctx, bpf_get_socket_cookie(ctx));
	struct sock *sk = (void *)ctx;
	struct tcp_bytes bytes;

	if (!rec || (rec->flags & SL_SOCK_RELEASED))
		return 1;
	rec->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (rec->protocol == IPPROTO_TCP && rec->state != TCP_LISTEN) {
		tcp_bytes_read(&bytes, (void *)ctx, rec->state, !(rec->flags & SL_SOCK_ACCEPTED));
		rec->bytes_sent = bytes.sent;
		rec->bytes_acked = bytes.acked;
		rec->bytes_received = bytes.received;
	}
	if (!rec->error)
		rec->error = BPF_CORE_READ(sk, sk_err);
	sock_read_local(rec, ctx);
	sock_finish(rec);
	return 1;
}
