/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policy DNS: where a sandbox's questions go, and who sent them. */
#ifndef SLUICE_DNS_H
#define SLUICE_DNS_H

#include <sluice/sock.h>

/* Port of all resolvers (RFC 1035, 4.2). */
#define SL_DNS_PORT 53

/*
 * A relay's addresses of names, which no host has: 198.18.0.0/15 (RFC 2544) and
 * fd73:6c75:6963::/48 (RFC 4193). Words in host order.
 */
#define SL_SYNTHETIC_V4 0xc6120000
#define SL_SYNTHETIC_V4_BITS 15
#define SL_SYNTHETIC_V6_0 0xfd736c75
#define SL_SYNTHETIC_V6_1 0x69630000
#define SL_SYNTHETIC_V6_BITS 48

/*
 * Value of array `dns_listeners`, by sandbox id: what takes calls to port 53 of any address,
 * by UDP and TCP on one port, with SL_GUARD_DNS. Port 0: none for that family, whose calls
 * are decided like others.
 */
struct sl_dns_listeners {
	struct sl_endpoint v4;
	struct sl_endpoint v6;
};

/*
 * Key of LRU hash `datagrams`; the value is the cookie of the socket that sent a datagram
 * from this port last.
 */
struct sl_datagram {
	__u64 netns_cookie;
	__u32 protocol; /* IPPROTO_UDP */
	__be16 port_be;
	__u16 pad;
};

#endif
