/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Families, protocols, and the ends of a connection. */
#ifndef SLUICE_BPF_INET_H
#define SLUICE_BPF_INET_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include <sluice/sock.h>

#ifndef AF_INET
#define AF_INET 2
#define AF_INET6 10
#define AF_PACKET 17
#endif
#ifndef SOCK_STREAM
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_RAW 3
#endif
#ifndef IPPROTO_TCP
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_ICMPV6 58
#define IPPROTO_UDPLITE 136
#define IPPROTO_MPTCP 262
#endif

/* enum tcp states (include/net/tcp_states.h) */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_FIN_WAIT1 4
#define TCP_FIN_WAIT2 5
#define TCP_TIME_WAIT 6
#define TCP_CLOSE 7
#define TCP_LAST_ACK 9
#define TCP_LISTEN 10
#define TCP_CLOSING 11

#define V4_MAPPED bpf_htonl(0x0000ffff)

static __always_inline void endpoint_v4(struct sl_endpoint *ep, __be32 addr_be, __be16 port_be)
{
	ep->addr_be[0] = 0;
	ep->addr_be[1] = 0;
	ep->addr_be[2] = V4_MAPPED;
	ep->addr_be[3] = addr_be;
	ep->port_be = port_be;
	ep->pad = 0;
}

static __always_inline void endpoint_v6(struct sl_endpoint *ep, const __be32 *addr_be,
					__be16 port_be)
{
	ep->addr_be[0] = addr_be[0];
	ep->addr_be[1] = addr_be[1];
	ep->addr_be[2] = addr_be[2];
	ep->addr_be[3] = addr_be[3];
	ep->port_be = port_be;
	ep->pad = 0;
}

static __always_inline void endpoint_local_v6(struct sl_endpoint *ep, struct bpf_sock *sk)
{
	__be32 addr_be[4];

	addr_be[0] = sk->src_ip6[0];
	addr_be[1] = sk->src_ip6[1];
	addr_be[2] = sk->src_ip6[2];
	addr_be[3] = sk->src_ip6[3];
	endpoint_v6(ep, addr_be, bpf_htons(sk->src_port));
}

/* The local end that a socket is bound to. Not for the context of a bind hook. */
static __always_inline void endpoint_local(struct sl_endpoint *ep, struct bpf_sock *sk)
{
	/* Read before the branch: see sockops_endpoints(). */
	__be32 local4 = sk->src_ip4;

	barrier_var(local4);
	if (sk->family == AF_INET)
		endpoint_v4(ep, local4, bpf_htons(sk->src_port));
	else
		endpoint_local_v6(ep, sk);
}

/* Neither address nor port: a call that named no destination. */
static __always_inline bool endpoint_empty(const struct sl_endpoint *ep)
{
	return !ep->port_be && !ep->addr_be[3] && !ep->addr_be[1] && !ep->addr_be[0];
}

static __always_inline bool endpoint_loopback(const struct sl_endpoint *ep)
{
	if (ep->addr_be[0] || ep->addr_be[1])
		return false;
	if (ep->addr_be[2] == V4_MAPPED)
		return (ep->addr_be[3] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
	return !ep->addr_be[2] && ep->addr_be[3] == bpf_htonl(1);
}

/* A datagram socket that has a peer. It may send to others all the same. */
static __always_inline bool datagram_connected(struct bpf_sock *sk)
{
	return sk->state == TCP_ESTABLISHED;
}

static __always_inline bool endpoint_equal(const struct sl_endpoint *a, const struct sl_endpoint *b)
{
	return a->addr_be[3] == b->addr_be[3] && a->port_be == b->port_be &&
	       a->addr_be[2] == b->addr_be[2] && a->addr_be[1] == b->addr_be[1] &&
	       a->addr_be[0] == b->addr_be[0];
}

#endif
