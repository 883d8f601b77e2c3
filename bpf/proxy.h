/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A transparent proxy in the way of a direct sandbox: a TCP connection that a rule allows is
 * made to the proxy instead. The verdict, and later ones on a policy that was replaced, are on
 * what the application asked for, which `sock_more` keeps for as long as the socket is known:
 * what could not be kept is denied, and so is what the proxy has no address for. Whoever
 * listens at the proxy's address gets these connections and no others, so that a member that
 * does gains nothing.
 */
#ifndef SLUICE_BPF_PROXY_H
#define SLUICE_BPF_PROXY_H

#include <sluice/proxy.h>

#include "original.h"

static __always_inline struct sl_endpoint *proxy_for(__u32 sandbox,
						     const struct sl_endpoint *remote)
{
	struct sl_proxy *row = bpf_map_lookup_elem(&proxies, &sandbox);

	return row ? endpoint_for(&row->v4, &row->v6, remote) : NULL;
}

/* Keeps what a connection was allowed to; 0: there is no room. */
SL_GLOBAL int proxy_keep(__u64 cookie, const struct sl_endpoint *asked)
{
	struct sl_sock_more *more = more_get(cookie);

	if (!more || !asked)
		return 0;
	more->original = *asked;
	return 1;
}

/*
 * What takes a connection of this socket, NULL: of one without a record. NULL: nobody can.
 * From here it is the proxy's, whose end the caller has to write.
 */
static __always_inline struct sl_endpoint *proxy_takes(struct sl_sock *rec, __u32 sandbox,
						       const struct sl_endpoint *remote)
{
	struct sl_endpoint *proxy = rec ? proxy_for(sandbox, remote) : NULL;

	if (!proxy)
		return NULL;
	if (!proxy_keep(rec->cookie, remote)) {
		count(sandbox, SL_COUNTER_MORE_FULL);
		return NULL;
	}
	rec->flags = (rec->flags & ~SL_SOCK_REDIRECTED) | SL_SOCK_PROXIED | SL_SOCK_MORE;
	return proxy;
}

/* Where the application's connection goes, as far as rules are concerned. */
static __always_inline void decided_end(struct sl_endpoint *out, const struct sl_sock *rec)
{
	struct sl_sock_more *more = NULL;
	__u64 cookie = rec->cookie;

	if (rec->flags & SL_SOCK_PROXIED)
		more = bpf_map_lookup_elem(&sock_more, &cookie);
	*out = more ? more->original : rec->remote;
}

#endif
