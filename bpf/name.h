/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The name by which a process has looked up an address (sluice/name.h). */
#ifndef SLUICE_BPF_NAME_H
#define SLUICE_BPF_NAME_H

#include <sluice/dns.h>

#include "inet.h"
#include "maps.h"

/* Its id; 0: none is known. A child that was given the address has the sandbox's. */
SL_GLOBAL int name_find(__u32 sandbox, __u32 tgid, __u64 start_ns, const struct sl_endpoint *remote)
{
	struct sl_named key = {};
	__u32 *id;

	if (!remote)
		return 0;
	key.addr_be[0] = remote->addr_be[0];
	key.addr_be[1] = remote->addr_be[1];
	key.addr_be[2] = remote->addr_be[2];
	key.addr_be[3] = remote->addr_be[3];
	key.start_ns = start_ns;
	key.tgid = tgid;
	key.sandbox = sandbox;
	id = bpf_map_lookup_elem(&named, &key);
	if (id)
		return *id;
	key.start_ns = 0;
	key.tgid = 0;
	id = bpf_map_lookup_elem(&named, &key);
	return id ? *id : 0;
}

/* Whether it is in a range of a relay's own addresses. */
static __always_inline bool endpoint_synthetic(const struct sl_endpoint *ep)
{
	const __u32 v4_mask = ~0U << (32 - SL_SYNTHETIC_V4_BITS);

	if (ep->addr_be[0] == bpf_htonl(SL_SYNTHETIC_V6_0))
		return (ep->addr_be[1] & bpf_htonl(0xffff0000)) == bpf_htonl(SL_SYNTHETIC_V6_1);
	return !ep->addr_be[0] && !ep->addr_be[1] && ep->addr_be[2] == V4_MAPPED &&
	       (ep->addr_be[3] & bpf_htonl(v4_mask)) == bpf_htonl(SL_SYNTHETIC_V4);
}

/* Only where somebody tells names: the rest pays nothing for them. */
static __always_inline __u32 remote_name(const struct sl_guard *guard, __u32 sandbox,
					 const struct sl_owner *who,
					 const struct sl_endpoint *remote)
{
	if (!(guard->flags & SL_GUARD_NAMES))
		return 0;
	return name_find(sandbox, who ? who->tgid : 0, who ? who->start_ns : 0, remote);
}

#endif
