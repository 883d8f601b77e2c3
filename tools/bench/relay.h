/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the benchmark of the relay is made of: a server, those that stand between it and its
 * clients, and the clients' load. All in the world's namespace, on SL_WORLD_ADDR.
 */
#ifndef SLUICE_BENCH_RELAY_H
#define SLUICE_BENCH_RELAY_H

#include <stdatomic.h>

#include "bench.h"
#include "child.h"

enum relay_between { RELAY_DIRECT, RELAY_SLUICE, RELAY_HAPROXY, RELAY_BETWEEN_MAX };

/* First byte of a connection: what the server does with it. */
#define RELAY_SINK 'b'  /* reads and counts */
#define RELAY_ECHO 'e'  /* sends it back, and ends */
#define RELAY_STALL 's' /* reads no more */

/* Shared with the server. */
struct relay_shared {
	_Atomic uint64_t bytes; /* that it has read */
};

struct relay_party {
	struct sl_child child;
	int listener;  /* -1: none, or the child's own */
	uint16_t port; /* 0: nobody is there */
};

/* relay_server.c */
int relay_server_start(struct relay_party *server, struct relay_shared *shared, struct sl_err *err);
/* A socket listening on `*port`, 0 for any. */
int relay_listen(int *out, uint16_t *port, struct sl_err *err);

/* relay_party.c: `to` is the server's port. -ENOENT: there is no HAProxy. */
int relay_sluice_start(struct relay_party *party, unsigned int threads, uint16_t to,
		       unsigned int pipe_bytes, struct sl_err *err);
int relay_haproxy_start(struct relay_party *party, unsigned int threads, uint16_t to,
			struct sl_err *err);
void relay_party_stop(struct relay_party *party);

/* relay_load.c */
int relay_connect(uint16_t port, char what);
/* Bytes a second that the server read from `streams` that send all they can. */
int relay_bulk(uint16_t port, unsigned int streams, uint64_t ms, struct relay_shared *shared,
	       double *rate, struct sl_err *err);
/* Nanoseconds of one connection that sends a byte and gets it back. */
int relay_setup(uint16_t port, unsigned int count, double *ns, struct sl_err *err);

#endif
