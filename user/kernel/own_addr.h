/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether what is sent to an address arrives at this machine itself, as the kernel's routing
 * says (RTM_GETROUTE, rtnetlink(7)): addresses of its interfaces, of "local" routes, and the
 * broadcast and anycast ones that it takes. ip_nonlocal_bind lets programs use addresses that
 * are not there, and changes no route, so it changes nothing here; bind() would be fooled.
 *
 *	sl_own_new(&own, mark, device, &err);
 *	sl_own_add(own, ns, &err);		each network namespace to ask in
 *	sl_own_has(own, addr_be);
 *	sl_own_free(&own);
 *
 * Addresses come and go: it is asked anew each time, which takes a few microseconds. Any thread.
 */
#ifndef SLUICE_USER_OWN_ADDR_H
#define SLUICE_USER_OWN_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

#include "base/err.h"

struct sl_own;

/*
 * As sockets with this SO_MARK (0: none) and SO_BINDTODEVICE (NULL: none; of the calling
 * thread's namespace) are routed; for a device it is asked without it as well.
 */
int sl_own_new(struct sl_own **out, uint32_t mark, const char *device, struct sl_err *err);
void sl_own_free(struct sl_own **own);

/* -1: the calling thread's. Two at most. */
int sl_own_add(struct sl_own *own, int ns, struct sl_err *err);

/*
 * Of any of the namespaces. IPv4 is ::ffff:a.b.c.d; addresses in which NAT64 (RFC 6052) or 6to4
 * (RFC 3056) embed one count as that one, too. What can't be asked counts as the machine's own.
 */
bool sl_own_has(struct sl_own *own, const __be32 addr_be[4]);

#endif
