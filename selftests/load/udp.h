/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One UDP flow, and the ways to send and to receive datagrams by name. */
#ifndef SLUICE_LOAD_UDP_H
#define SLUICE_LOAD_UDP_H

#include "chan.h"
#include "load.h"

#define SL_UDP_MAX 65507 /* payload of one IPv4 datagram */

struct sl_flow {
	const struct sl_opts *o;
	struct sl_chan chan; /* its fd is the flow's own */
	struct sl_addr peers[SL_SERVERS_MAX];
	unsigned int n_peers;
	size_t bytes;       /* of one datagram */
	uint64_t datagrams; /* sent */
	uint64_t sent;
	uint64_t replies;
	uint64_t received;
	uint64_t truncated;
	const char *step;
	int err;
};

struct sl_udp_via {
	const char *name;
	bool connected;   /* the way has no place for an address */
	bool has_control; /* can carry a control message of --cmsg */
	/* Sends 1 to `n` datagrams, number flow->datagrams first; how many, or -errno. */
	int (*send)(struct sl_flow *flow, uint64_t n);
};

struct sl_udp_take {
	const char *name;
	/* Bytes of one datagram that were kept; -1 with errno set. */
	ssize_t (*recv)(struct sl_flow *flow, char *buf, size_t len);
};

/* NULL name: sendto. NULL for a name that there is not. */
const struct sl_udp_via *sl_udp_via_find(const char *name);
const struct sl_udp_take *sl_udp_take_find(const char *name);

#endif
