/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Policy DNS in a namespace with a way out: a call that names port 53 of any address goes to
 * the sandbox's own resolver, and the application is told that it is where it asked for
 * (redirect.bpf.c). No rule is needed, and none takes it back: what may be asked is decided
 * name by name.
 */
#ifndef SLUICE_BPF_REDIRECT_H
#define SLUICE_BPF_REDIRECT_H

#include <sluice/dns.h>

#include "call.h"
#include "original.h"

/* What takes calls to `remote`; NULL: nobody does. */
static __always_inline struct sl_endpoint *dns_listener(__u32 sandbox,
							const struct sl_endpoint *remote)
{
	struct sl_dns_listeners *row = bpf_map_lookup_elem(&dns_listeners, &sandbox);

	return row ? endpoint_for(&row->v4, &row->v6, remote) : NULL;
}

/* Whether that is where the sandbox's questions go. */
static __always_inline bool dns_listens(__u32 sandbox, const struct sl_endpoint *ep)
{
	struct sl_endpoint *listener = dns_listener(sandbox, ep);

	return listener && endpoint_equal(listener, ep);
}

/* What the application asked for, to be told of later. */
static __always_inline void original_keep(struct sl_sock *rec, const struct sl_endpoint *asked)
{
	struct sl_sock_more *more = sock_more_get(rec);

	if (more)
		more->original = *asked;
}

/*
 * Sends the call to the policy DNS, if it is for one: *remote is that one's end then. Not in
 * observe mode; a frozen sandbox, and who has no identity, is denied by remote_verdict().
 */
static __always_inline bool redirected(struct bpf_sock_addr *ctx, struct sl_sock *rec,
				       struct sl_endpoint *remote, const struct sl_owner *state,
				       bool v6)
{
	struct sl_endpoint *listener;
	struct sl_guard *guard;

	if (!rec || !state)
		return false;
	/* Nearly all calls end here. */
	if (remote->port_be != bpf_htons(SL_DNS_PORT) && !(rec->flags & SL_SOCK_REDIRECTED))
		return false;
	guard = guard_active(state->sandbox);
	if (!guard || !(guard->flags & SL_GUARD_DNS) || guard->mode == SL_GUARD_FROZEN)
		return false;
	/* An IPv4 peer of an IPv6 socket is named anew by each send() (udpv6_sendmsg()). */
	if (remote->port_be != bpf_htons(SL_DNS_PORT))
		return dns_listens(state->sandbox, remote);
	listener = dns_listener(state->sandbox, remote);
	if (!listener)
		return false;
	original_keep(rec, remote);
	rec->flags = (rec->flags & ~SL_SOCK_PROXIED) | SL_SOCK_REDIRECTED;
	led_to(ctx, remote, listener, v6);
	count(state->sandbox, SL_COUNTER_ALLOWED);
	return true;
}

#endif
