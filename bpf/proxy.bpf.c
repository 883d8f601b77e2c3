// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a transparent proxy asks of a connection that it has accepted: where the client meant
 * it to go. Attached to the cgroup of the proxy, which is no member and so has no records: the
 * ends of the socket name the client's. Asked as of netfilter, which redirects by NAT:
 *
 *	nf_getsockopt() -> getorigdst(), ipv6_getorigdst()      -ENOPROTOOPT without conntrack
 *	do_sock_getsockopt() -> __cgroup_bpf_run_filter_getsockopt()   after the kernel's answer
 *
 * All else is left as the kernel, or a program before this one, has answered it.
 */
#include "kernel.h"
#include "tuple.h"

#define SOL_IP 0
#define SOL_IPV6 41
#define SO_ORIGINAL_DST 80 /* IP6T_SO_ORIGINAL_DST as well */

/* What fits the kernel's copy of an option; a larger one it takes for a program's mistake. */
#define OPTION_MAX 4096

struct sockaddr_v4 {
	__u16 family;
	__be16 port_be;
	__be32 addr_be;
	__u8 zero[8];
};

struct sockaddr_v6 {
	__u16 family;
	__be16 port_be;
	__be32 flowinfo;
	__be32 addr_be[4];
	__u32 scope_id;
};

/* The other end of an accepted socket, which is connected. */
static __always_inline void endpoint_peer(struct sl_endpoint *ep, struct bpf_sock *sk)
{
	/* Read before the branch: see sockops_endpoints(). */
	__be32 peer4 = sk->dst_ip4;
	__be32 peer6[4] = { sk->dst_ip6[0], sk->dst_ip6[1], sk->dst_ip6[2], sk->dst_ip6[3] };
	__be16 port_be = sk->dst_port;

	barrier_var(peer4);
	if (sk->family == AF_INET)
		endpoint_v4(ep, peer4, port_be);
	else
		endpoint_v6(ep, peer6, port_be);
}

/* What the client asked for; NULL: it is nobody's, or came here by itself. */
static __always_inline struct sl_endpoint *original_of(struct bpf_sockopt *ctx, struct bpf_sock *sk)
{
	struct sl_endpoint local, peer;
	struct sl_sock_more *more;
	__u64 cookie;

	endpoint_local(&local, sk);
	endpoint_peer(&peer, sk);
	cookie = tuple_cookie(bpf_get_netns_cookie(ctx), &peer, &local);
	more = cookie ? bpf_map_lookup_elem(&sock_more, &cookie) : NULL;
	return more && more->original.port_be ? &more->original : NULL;
}

static __always_inline void answered(struct bpf_sockopt *ctx, __s32 size)
{
	ctx->optlen = size;
	/* Else clang makes one store of the two, which the verifier refuses. */
	barrier();
	ctx->retval = 0;
}

static __always_inline void answer_v4(struct bpf_sockopt *ctx, const struct sl_endpoint *original)
{
	struct sockaddr_v4 *out = ctx->optval;

	if ((void *)(out + 1) > ctx->optval_end)
		return;
	out->family = AF_INET;
	out->port_be = original->port_be;
	out->addr_be = original->addr_be[3];
	__builtin_memset(out->zero, 0, sizeof(out->zero));
	answered(ctx, sizeof(*out));
}

static __always_inline void answer_v6(struct bpf_sockopt *ctx, const struct sl_endpoint *original)
{
	struct sockaddr_v6 *out = ctx->optval;

	if ((void *)(out + 1) > ctx->optval_end)
		return;
	out->family = AF_INET6;
	out->port_be = original->port_be;
	out->flowinfo = 0;
	out->addr_be[0] = original->addr_be[0];
	out->addr_be[1] = original->addr_be[1];
	out->addr_be[2] = original->addr_be[2];
	out->addr_be[3] = original->addr_be[3];
	out->scope_id = 0;
	answered(ctx, sizeof(*out));
}

SEC("cgroup/getsockopt")
int on_proxy_getsockopt(struct bpf_sockopt *ctx)
{
	struct sl_endpoint *original;
	struct bpf_sock *sk = ctx->sk;

	if (ctx->optname != SO_ORIGINAL_DST || (ctx->level != SOL_IP && ctx->level != SOL_IPV6) ||
	    !sk || sk->type != SOCK_STREAM || sk->state == TCP_LISTEN) {
		/* 0: the kernel's answer, as it is. */
		if (ctx->optlen > OPTION_MAX)
			ctx->optlen = 0;
		return 1;
	}
	original = original_of(ctx, sk);
	if (!original)
		return 1;
	if (ctx->level == SOL_IP && original->addr_be[2] == V4_MAPPED)
		answer_v4(ctx, original);
	else if (ctx->level == SOL_IPV6 && original->addr_be[2] != V4_MAPPED)
		answer_v6(ctx, original);
	return 1;
}
