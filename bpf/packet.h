/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a packet itself says, for programs on cgroup_skb: there it begins with its network
 * header (__cgroup_bpf_run_filter_skb()).
 */
#ifndef SLUICE_BPF_PACKET_H
#define SLUICE_BPF_PACKET_H

#include "inet.h"
#include "maps.h"

#define IPV4_OPTION_END 0
#define IPV4_OPTION_NOP 1
#define IPV4_OPTION_LSRR 131 /* RFC 791, 3.1 */
#define IPV4_OPTION_SSRR 137
#define IPV4_OPTIONS_MAX 40
#define IPV4_ADDR_OFFSET 12 /* source, then destination */

#define IPV6_HOPOPTS 0
#define IPV6_ROUTING 43
#define IPV6_DSTOPTS 60
#define IPV6_HEADER_BYTES 40
#define IPV6_ADDR_OFFSET 8
#define IPV6_EXTENSIONS_MAX 8

static __always_inline bool ipv4_source_routed(struct __sk_buff *skb, __u8 first)
{
	__u32 end = (first & 15) * 4, at = 20;
	__u8 option[2];

	for (int i = 0; i < IPV4_OPTIONS_MAX && at < end; i++) {
		if (bpf_skb_load_bytes(skb, at, option, sizeof(option)))
			return true; /* can't be told: not let through */
		if (option[0] == IPV4_OPTION_END)
			return false;
		if (option[0] == IPV4_OPTION_LSRR || option[0] == IPV4_OPTION_SSRR)
			return true;
		at += option[0] == IPV4_OPTION_NOP ? 1 : option[1];
		if (option[0] != IPV4_OPTION_NOP && option[1] < 2)
			return true;
	}
	return false;
}

/*
 * What follows the extension headers, or the routing header among them: its offset << 8 and
 * its type. Negative when it can't be told.
 */
SL_GLOBAL int ipv6_upper(struct __sk_buff *skb)
{
	__u8 type, extension[2];
	__u32 at = IPV6_HEADER_BYTES;

	if (bpf_skb_load_bytes(skb, 6, &type, sizeof(type)))
		return -1;
	for (int i = 0; i < IPV6_EXTENSIONS_MAX; i++) {
		if (type != IPV6_HOPOPTS && type != IPV6_DSTOPTS)
			return (int)(at << 8 | type);
		if (bpf_skb_load_bytes(skb, at, extension, sizeof(extension)))
			return -1;
		type = extension[0];
		at += (extension[1] + 1) * 8;
	}
	return -1;
}

SL_GLOBAL bool source_routed(struct __sk_buff *skb)
{
	__u8 first = 0;
	int upper;

	if (bpf_skb_load_bytes(skb, 0, &first, sizeof(first)))
		return true;
	if (first >> 4 == 6) {
		upper = ipv6_upper(skb);
		return upper < 0 || (upper & 255) == IPV6_ROUTING;
	}
	return (first & 15) > 5 && ipv4_source_routed(skb, first);
}

enum datagram_end { DATAGRAM_SOURCE, DATAGRAM_TARGET };

static __always_inline bool datagram_end_v6(struct __sk_buff *skb, enum datagram_end which,
					    struct sl_endpoint *out)
{
	int upper = ipv6_upper(skb);
	__be32 addr_be[4];
	__be16 port_be;

	if (upper < 0 || ((upper & 255) != IPPROTO_UDP && (upper & 255) != IPPROTO_UDPLITE) ||
	    bpf_skb_load_bytes(skb, IPV6_ADDR_OFFSET + which * sizeof(addr_be), addr_be,
			       sizeof(addr_be)) ||
	    bpf_skb_load_bytes(skb, (upper >> 8) + which * sizeof(port_be), &port_be,
			       sizeof(port_be)))
		return false;
	endpoint_v6(out, addr_be, port_be);
	return true;
}

/* Where a datagram came from, or goes to. False when it can't be told. */
static __always_inline bool datagram_end(struct __sk_buff *skb, enum datagram_end which,
					 struct sl_endpoint *out)
{
	__be32 addr_be;
	__be16 port_be;
	__u8 first;

	if (bpf_skb_load_bytes(skb, 0, &first, sizeof(first)))
		return false;
	if (first >> 4 == 6)
		return datagram_end_v6(skb, which, out);
	if (bpf_skb_load_bytes(skb, IPV4_ADDR_OFFSET + which * sizeof(addr_be), &addr_be,
			       sizeof(addr_be)) ||
	    bpf_skb_load_bytes(skb, (first & 15) * 4 + which * sizeof(port_be), &port_be,
			       sizeof(port_be)))
		return false;
	endpoint_v4(out, addr_be, port_be);
	return true;
}

#endif
