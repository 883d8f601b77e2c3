/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the hooks of a sandbox with policy DNS or a proxy do beyond deciding. Off for a sandbox without,
 * which then pays nothing for it. A policy that is loaded leaves all of it as it is; the end
 * of the sandbox is the end of it. None of it is done in mode observe.
 *
 *	sl_guard_names(set, sandbox, true, &err);	before the first name is told
 *	sl_guard_dns(set, sandbox, &listeners, &err);	with a way out: once they listen
 *	sl_guard_proxy(set, sandbox, &proxy, &err);	with a way out, before the policy is loaded
 *	sl_guard_datagrams(set, sandbox, true, &err);	with a relay
 *	sl_guard_synthetic(set, sandbox, true, &err);	with a relay
 *
 * Callers serialise what they do to one sandbox, as for guard/guard.h. All return 0, or -errno
 * with err.
 */
#ifndef SLUICE_USER_GUARD_DNS_H
#define SLUICE_USER_GUARD_DNS_H

#include <sluice/dns.h>
#include <sluice/proxy.h>

#include "guard/guard.h"

/* Whether hooks look up by which name a destination is known (kernel/name.h). */
int sl_guard_names(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err);

/*
 * Sends calls to port 53 of any address, UDP and TCP, to these listeners (loopback addresses
 * of the members' network namespace); the application sees the address that it asked for.
 * They need no rule, and no later policy ends them; a frozen sandbox' are denied. NULL: no
 * more. Who sent a datagram is published (sl_sock_by_datagram()).
 *
 * Sockets that the sandbox's own hooks don't see are not sent there, and need a rule.
 */
int sl_guard_dns(struct sl_set *set, unsigned int sandbox, const struct sl_dns_listeners *listeners,
		 struct sl_err *err);

/*
 * Makes TCP connections to this proxy that the policy allows to elsewhere: all but those to the
 * sandbox's own loopback and to the policy DNS. The application sees the address that it asked
 * for, the records have it as `original`, and a later policy decides on it. What the proxy has
 * no address for (a family), and what can't be told of to it (a socket without a record, or one
 * that the sandbox's own hooks don't see), is denied for reason `proxy`. In mode audit what
 * would be denied goes where it asked. Connections that live stay as they are. The addresses
 * are those of the members' network namespace, and need no rule. NULL: no proxy any more.
 */
int sl_guard_proxy(struct sl_set *set, unsigned int sandbox, const struct sl_proxy *proxy,
		   struct sl_err *err);

/*
 * Whether names have synthetic addresses (sluice/dns.h): then one that stands for none is denied
 * for reason `unmapped-name`, unless a rule for addresses has it.
 */
int sl_guard_synthetic(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err);

/* Whether the senders of all datagrams are published, as a relay needs it. */
int sl_guard_datagrams(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err);

#endif
