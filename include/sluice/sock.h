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

/* One side of a connection, seen from that side: key of map `tuples`. */
struct sl_tuple {
	__u64 netns_cookie;
	struct sl_endpoint local;
	struct sl_endpoint remote;
	__u32 protocol; /* IPPROTO_TCP */
	__u32 pad;
};

/* Value of map `tuples`. */
struct sl_tuple_owner {
	struct sl_owner owner;
	__u64 cookie;
};

enum sl_sock_flag {
	SL_SOCK_CONNECTED = 1 << 0, /* connect() ran; for UDP also without any datagram */
	SL_SOCK_ACCEPTED = 1 << 1,  /* made by the kernel for a listener */
	SL_SOCK_LISTENING = 1 << 2,
	SL_SOCK_BOUND = 1 << 3,        /* the application chose the local address */
	SL_SOCK_PREEXISTING = 1 << 4,  /* found by the iterator when the sandbox was attached */
	SL_SOCK_FOREIGN = 1 << 5,      /* its opener is not known: made outside the sandbox */
	SL_SOCK_INHERITED = 1 << 6,    /* `user` differs from `opener` */
	SL_SOCK_ESTABLISHED = 1 << 7,  /* a TCP handshake completed */
	SL_SOCK_RELEASED = 1 << 8,     /* closed by its last holder */
	SL_SOCK_PEER_KNOWN = 1 << 9,   /* `peer` holds the owner of the other end */
	SL_SOCK_TUPLE = 1 << 10,       /* its ends are published */
	SL_SOCK_SENT = 1 << 11,        /* something was sent (UDP, raw, ping, packet) */
	SL_SOCK_COUNTED_SKB = 1 << 12, /* bytes come from cgroup_skb: packets, not calls */
	SL_SOCK_MORE = 1 << 13,        /* has a row in map `sock_more` */
	SL_SOCK_OWN = 1 << 15,         /* its remote end is the sandbox's own loopback */
	SL_SOCK_PROBE = 1 << 16,       /* connected to try an address: its packets are decided */
	SL_SOCK_TUPLE_ROW = 1 << 14,   /* with SL_SOCK_TUPLE: in map `tuples`, not in a bucket */
	SL_SOCK_REDIRECTED = 1 << 18,  /* the policy DNS has it; `original` is what was asked */
	SL_SOCK_OPENER_LOST = 1 << 17, /* it is another than `owner`, and there was no room */
	SL_SOCK_PROXIED = 1 << 19,     /* the proxy has it; `original` is what was allowed */
	SL_SOCK_ASKED = 1 << 20,       /* it asked a relay's explicit proxy for `original` */
};

/* Whose record is in the socket's own storage while it is open. */
#define SL_SOCK_ADOPTED (SL_SOCK_ACCEPTED | SL_SOCK_FOREIGN | SL_SOCK_PREEXISTING)

/*
 * Remote ends of one datagram socket that are remembered in its record: each is told once,
 * and may answer. More of them are in map `peers`.
 */
#define SL_SOCK_PEERS 4

/* Key of LRU hash `peers`: a remote end that a datagram socket has sent to earlier. */
struct sl_peer_key {
	__u64 cookie;
	__u64 hash; /* of the remote end, as in the record */
};

/*
 * The record of a socket, and the body of socket events. Where it lives depends on who
 * tells when the socket ends:
 *
 * - array `socks`, in one of the slots that sl_sock_slot() tells: sockets that members
 *   created (their sock_release hook runs because their sock_create hook did), and all
 *   closed ones until another socket takes the slot.
 * - hash `socks_over`, by cookie: live ones whose slots are taken by live ones.
 * - socket storage `adopted`: all others (accepted, found when the sandbox was attached,
 *   received from outside), since no hook may see their end. A storage costs three times
 *   as much as the rest of a record.
 *
 * These rows are the authority; all else are copies of them.
 *
 * bytes_sent: accepted from the application; bytes_acked: acknowledged by the peer
 * (TCP only); bytes_received: what the application could read. Payload only. For
 * AF_PACKET: frame bytes.
 */
struct sl_sock {
	/*
	 * SO_COOKIE; of the MPTCP socket, not of its subflows. In a slot, 0: never used;
	 * SL_SOCK_BUSY: being written.
	 */
	__u64 cookie;
	__u64 netns_cookie;
	__u64 since_ns; /* first use: connect, bind, listen, datagram, accept; 0: none yet */
	__u64 closed_ns;
	__u64 bytes_sent;
	__u64 bytes_acked;
	__u64 bytes_received;
	struct sl_owner owner; /* who connected, bound or first sent; the opener before that */
	struct sl_endpoint local;
	struct sl_endpoint remote;
	__u32 flags; /* enum sl_sock_flag */
	__s32 error; /* sk_err or the connection's last soft error, positive errno */
	__u16 family;
	__u16 type;
	__u16 protocol;
	__u8 state;      /* TCP_* when it was closed, or now (include/net/tcp_states.h) */
	__u8 generation; /* times it was connected anew, modulo 256 */
	__u64 peer_hash[SL_SOCK_PEERS]; /* the latest remotes, 0: none (bpf/peer.h) */
	__u32 peers;                    /* distinct remotes seen, counting at least */
	__u32 ifindex;                  /* AF_PACKET */
	__u32 policy;         /* id of the policy that allowed its remote end; 0: none had to */
	__u32 name;           /* id of the name that it was meant for; 0: not known */
	__u64 allowed;        /* hash of the datagram that was allowed last (bpf/call.h); 0: none */
	struct sl_owner peer; /* owner of the other end, valid with SL_SOCK_PEER_KNOWN only */
};

#define SL_SOCK_BUSY (~(__u64)0)

#define SL_SOCK_WAYS 2

/*
 * The slots that a record may be in, of `slots`, a power of two. Cookies are given out in
 * sequence, but to each CPU a batch of 4,096 at a time (net/core/sock_diag.c,
 * linux/cookie.h): way 0, the cookie modulo the slots, comes round again only after as
 * many sockets as there are slots, unless two CPUs are in batches that fall on the same
 * slots. Then way 1 has those that are the furthest away.
 */
static inline __u32 sl_sock_slot(__u64 cookie, unsigned int way, __u32 slots)
{
	return (cookie + way * (slots / 2)) & (slots - 1);
}

/*
 * What few sockets have, with SL_SOCK_MORE: value of map `sock_more`, by cookie. A member
 * that does not apply is zero.
 */
struct sl_sock_more {
	struct sl_owner opener;      /* who created it, when another process owns it */
	struct sl_owner user;        /* whom a hook last saw use it, with SL_SOCK_INHERITED */
	struct sl_endpoint original; /* as the application asked: a redirect, or a proxy */
	__u32 pad;
};

/*
 * Element of array `tuple_buckets`: cookies of connections whose tuple has this hash, 0
 * for none. The tuple itself is in the sockets' records. When all live places are taken,
 * and for sockets whose record is not found by cookie, a row of `tuples` stands in.
 */
#define SL_TUPLE_LIVE 6   /* places of live connections */
#define SL_TUPLE_CLOSED 2 /* the latest closed ones, for an accepting side that is late */
struct sl_tuple_bucket {
	__u64 cookie[SL_TUPLE_LIVE + SL_TUPLE_CLOSED];
};

/* Hash of a connection's ends; user space must find the bucket that BPF has chosen. */
static inline __u32 sl_tuple_hash(__u64 netns_cookie, const struct sl_endpoint *local,
				  const struct sl_endpoint *remote, __u64 seed)
{
	__u64 addresses = (__u64)local->addr_be[3] << 32 | remote->addr_be[3];
	__u64 rest = (__u64)(local->addr_be[0] ^ local->addr_be[1] ^ local->addr_be[2]) << 32 |
		     (remote->addr_be[0] ^ remote->addr_be[1] ^ remote->addr_be[2]);
	__u64 ports = (__u64)local->port_be << 16 | remote->port_be;
	__u64 hash = (addresses ^ seed) * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ hash >> 29 ^ rest ^ netns_cookie) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 32 ^ ports) * 0x94d049bb133111ebULL;
	return (__u32)(hash >> 32);
}

#endif
