// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The escape guard, at the root of cgroup2: membership does not end when a process leaves
 * the cgroup or enters another network namespace, but the hooks of the cgroup do. These see
 * every socket of the host, so they return at once for whoever is no member, and for
 * sockets that were made inside, whose own hooks decide (both run, and both must agree).
 */
#include "kernel.h"
#include "call.h"

/* The calling member, whose sandbox decides; NULL for most of the host. */
static __always_inline struct sl_owner *member_now(void)
{
	struct sl_owner *state = owner_state(bpf_get_current_task_btf());

	return state && guard_active(state->sandbox) ? state : NULL;
}

/* Whose hooks see the calls on a socket: those of the cgroup that it was made in. */
static __always_inline bool is_seen(struct bpf_sock_addr *ctx, __u32 sandbox)
{
	struct bpf_sock_addr_kern *kernel = (void *)ctx;

	/* Most have a record; subflows of MPTCP, which the kernel makes, have none. */
	return sock_by_cookie(bpf_get_socket_cookie(ctx)) ||
	       cgroup_sandbox(BPF_CORE_READ(kernel, sk, sk_cgrp_data.cgroup)) == sandbox;
}

/* A member's call on a socket that its sandbox's hooks don't see. */
static __always_inline int escaped_call(struct bpf_sock_addr *ctx, bool v6, bool message)
{
	struct sl_owner *state = member_now();
	struct sl_endpoint remote;
	struct call_found found = {};

	if (!state || !ctx->sk || is_seen(ctx, state->sandbox))
		return 1;
	remote_of(&remote, ctx, v6);
	/* A control message without a name: the connected peer, which was decided. */
	if (message && endpoint_empty(&remote))
		return 1;
	return remote_verdict(ctx, NULL, &remote, bpf_get_current_task_btf(), state, false, false,
			      &found);
}

SEC("cgroup/connect4")
int on_escaped_connect4(struct bpf_sock_addr *ctx)
{
	return escaped_call(ctx, false, false);
}

SEC("cgroup/connect6")
int on_escaped_connect6(struct bpf_sock_addr *ctx)
{
	return escaped_call(ctx, true, false);
}

SEC("cgroup/sendmsg4")
int on_escaped_sendmsg4(struct bpf_sock_addr *ctx)
{
	return escaped_call(ctx, false, true);
}

SEC("cgroup/sendmsg6")
int on_escaped_sendmsg6(struct bpf_sock_addr *ctx)
{
	return escaped_call(ctx, true, true);
}

/* Making one inside was decided inside, where its record is from. */
SEC("cgroup/sock_create")
int on_escaped_create(struct bpf_sock *ctx)
{
	struct sl_owner *state = member_now();

	/* Refused there, it has no record. */
	if (!state || sock_by_cookie(bpf_get_socket_cookie(ctx)) ||
	    task_cgroup_sandbox(bpf_get_current_task_btf()) == state->sandbox)
		return 1;
	return create_verdict(ctx, state->sandbox, state);
}
