/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets: who owns one, where it goes, what it carried. */
#ifndef SLUICE_SOCK_H
#define SLUICE_SOCK_H

#include <sluice/abi.h>
#include <sluice/process.h>

struct sl_endpoint {
	__be32 addr_be[4]; /* IPv4 as ::ffff:a.b.c.d */
	__be16 port_be;
	__u16 pad;
};

/* Key of map `tuples`: one side of a live connection, seen from that side. */
struct sl_tuple {
	__u64 netns_cookie;
	struct sl_endpoint local;
	struct sl_endpoint remote;
	__u32 protocol; /* IPPROTO_TCP */
	__u32 pad;
};

/* Value of maps `tuples` and `closed_tuples`. */
struct sl_tuple_owner {
	__u64 cookie;
	struct sl_owner owner;
	__u32 claimed; /* an accepting socket has copied the owner */
	__u32 pad;
};

enum sl_sock_flag {
	SL_SOCK_CONNECTED = 1 << 0,   /* connect() ran; for UDP also without any datagram */
	SL_SOCK_ACCEPTED = 1 << 1,    /* made by the kernel for a listener */
	SL_SOCK_LISTENING = 1 << 2,
	SL_SOCK_BOUND = 1 << 3,       /* the application chose the local address */
	SL_SOCK_PREEXISTING = 1 << 4, /* found by the iterator when the sandbox was attached */
	SL_SOCK_FOREIGN = 1 << 5,     /* its opener is not known: made outside the sandbox */
	SL_SOCK_INHERITED = 1 << 6,   /* `user` differs from `opener` */
	SL_SOCK_ESTABLISHED = 1 << 7, /* a TCP handshake completed */
	SL_SOCK_RELEASED = 1 << 8,    /* closed by its last holder */
	SL_SOCK_PEER_KNOWN = 1 << 9,  /* `peer` holds the owner of the other end */
	SL_SOCK_TUPLE = 1 << 10,      /* has a row in map `tuples` */
	SL_SOCK_SENT = 1 << 11,       /* something was sent (UDP, raw, ping, packet) */
	SL_SOCK_COUNTED_SKB = 1 << 12,/* bytes come from cgroup_skb: packets, not calls */
};

/* Remote addresses of one unconnected socket that are remembered, to report each once. */
#define SL_SOCK_PEERS 4

/*
 * The record of a socket: value of the socket storage `socks`, of `closed`, and the
 * body of socket events. The storage is the authority; all else are copies of it.
 *
 * bytes_sent: accepted from the application; bytes_acked: acknowledged by the peer
 * (TCP only); bytes_received: what the application could read. Payload only. For
 * AF_PACKET: frame bytes.
 */
struct sl_sock {
	__u64 cookie; /* SO_COOKIE; of the MPTCP socket, not of its subflows */
	__u64 netns_cookie;
	__u64 created_ns;
	__u64 connect_ns;
	__u64 established_ns;
	__u64 closed_ns;
	__u64 bytes_sent;
	__u64 bytes_acked;
	__u64 bytes_received;
	struct sl_owner owner;  /* who connected, bound or first sent; the opener before that */
	struct sl_owner opener; /* who created it */
	struct sl_owner user;   /* whom a hook last saw use it, with SL_SOCK_INHERITED */
	struct sl_owner peer;   /* owner of the other end, with SL_SOCK_PEER_KNOWN */
	struct sl_endpoint local;
	struct sl_endpoint remote;
	struct sl_endpoint original; /* as the application asked, before any redirect */
	__u32 flags;                 /* enum sl_sock_flag */
	__u32 peer_hash[SL_SOCK_PEERS];
	__u32 peers; /* distinct remotes seen, counting at least */
	__u32 ifindex; /* AF_PACKET */
	__u16 family;
	__u16 type;
	__u16 protocol;
	__u8 state;      /* TCP_* when it was closed, or now (include/net/tcp_states.h) */
	__u8 generation; /* times it was connected anew, modulo 256 */
	__s32 error;     /* sk_err or the connection's last soft error, positive errno */
};

/* One slot of the ring of closed sockets; seq is 0 while it is written. */
struct sl_closed {
	__u64 seq;
	struct sl_sock sock;
};

#endif
