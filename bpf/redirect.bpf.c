// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an application is told of an address that a hook has changed: the one that it asked
 * for. Attached only to sandboxes with policy DNS, or a transparent proxy.
 *
 *	udp_recvmsg(), udpv6_recvmsg()  -> recvmsg4/6      the source of a datagram
 *	inet_getname(), inet6_getname() -> getpeername4/6
 *
 * Resolver libraries take an answer only from an address that they have asked. One that asks
 * several from one socket (musl) takes it from any of them, so the last one will do.
 */
#include "kernel.h"
#include "redirect.h"

static __always_inline void address_restore(struct bpf_sock_addr *ctx, bool v6)
{
	struct bpf_sock *sk = ctx->sk;
	struct sl_sock_more *more;
	struct sl_endpoint ep;
	struct sl_sock *rec;
	__u64 cookie;

	rec = sk ? sock_record(sk, bpf_get_socket_cookie(ctx)) : NULL;
	if (!rec || !(rec->flags & SOCK_LED))
		return;
	remote_of(&ep, ctx, v6);
	if (rec->flags & SL_SOCK_PROXIED ? !endpoint_equal(&ep, &rec->remote)
					 : !dns_listens(rec->owner.sandbox, &ep))
		return;
	cookie = rec->cookie;
	more = bpf_map_lookup_elem(&sock_more, &cookie);
	if (more && more->original.port_be)
		address_write(ctx, &more->original, v6);
}

SEC("cgroup/recvmsg4")
int on_recvmsg4(struct bpf_sock_addr *ctx)
{
	address_restore(ctx, false);
	return 1;
}

SEC("cgroup/recvmsg6")
int on_recvmsg6(struct bpf_sock_addr *ctx)
{
	address_restore(ctx, true);
	return 1;
}

SEC("cgroup/getpeername4")
int on_getpeername4(struct bpf_sock_addr *ctx)
{
	address_restore(ctx, false);
	return 1;
}

SEC("cgroup/getpeername6")
int on_getpeername6(struct bpf_sock_addr *ctx)
{
	address_restore(ctx, true);
	return 1;
}
