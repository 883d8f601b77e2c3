/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that are led elsewhere than they asked: the other address, and what was asked for. */
#ifndef SLUICE_BPF_ORIGINAL_H
#define SLUICE_BPF_ORIGINAL_H

#include "sock.h"

/* A socket whose call was led elsewhere: to the policy DNS, or to a proxy. */
#define SOCK_LED (SL_SOCK_REDIRECTED | SL_SOCK_PROXIED)
/* One that was meant for something else than its remote end. */
#define SOCK_ELSEWHERE (SOCK_LED | SL_SOCK_ASKED)

/* Of a pair, the end that has the family of `remote`. */
static __always_inline struct sl_endpoint *
endpoint_for(struct sl_endpoint *v4, struct sl_endpoint *v6, const struct sl_endpoint *remote)
{
	bool mapped = remote->addr_be[2] == V4_MAPPED && !remote->addr_be[1] && !remote->addr_be[0];
	struct sl_endpoint *end = mapped ? v4 : v6;

	return end->port_be ? end : NULL;
}

/* A socket that was meant for something else, and is connected to where it asks now. */
static __always_inline void original_forget(struct sl_sock *rec)
{
	__u64 cookie = rec->cookie;
	struct sl_sock_more *more;

	if (!(rec->flags & SOCK_ELSEWHERE))
		return;
	rec->flags &= ~SOCK_ELSEWHERE;
	more = bpf_map_lookup_elem(&sock_more, &cookie);
	if (more)
		__builtin_memset(&more->original, 0, sizeof(more->original));
}

/* `v6` is the hook's, as for remote_of(). */
static __always_inline void address_write(struct bpf_sock_addr *ctx, const struct sl_endpoint *ep,
					  bool v6)
{
	if (v6) {
		ctx->user_ip6[0] = ep->addr_be[0];
		ctx->user_ip6[1] = ep->addr_be[1];
		ctx->user_ip6[2] = ep->addr_be[2];
		ctx->user_ip6[3] = ep->addr_be[3];
	} else {
		ctx->user_ip4 = ep->addr_be[3];
	}
	ctx->user_port = ep->port_be;
}

/* Leads a call there: *remote is that end then. */
static __always_inline void led_to(struct bpf_sock_addr *ctx, struct sl_endpoint *remote,
				   const struct sl_endpoint *to, bool v6)
{
	*remote = *to;
	address_write(ctx, remote, v6);
}

#endif
