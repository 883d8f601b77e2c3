/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the benchmark of policy DNS is made of: an upstream, those that stand between it and
 * its clients, and the clients' load. All in the world's namespace, on SL_WORLD_ADDR.
 *
 * A name is "n<number>.<kind>.example"; its one address is dns_address() of its bytes, so
 * each answer can be told right from wrong.
 */
#ifndef SLUICE_BENCH_DNS_H
#define SLUICE_BENCH_DNS_H

#include "bench.h"
#include "child.h"

enum dns_between { DNS_DIRECT, DNS_SLUICE, DNS_DNSMASQ, DNS_UNBOUND, DNS_BETWEEN_MAX };

/* The first letter of a name's second label. */
#define DNS_WORLD 'w'  /* the name's address is SL_WORLD_ADDR */
#define DNS_CACHED 'c' /* few names, of a long TTL */
#define DNS_FRESH 'f'  /* each is asked once */

#define DNS_QUERY_MAX 64 /* bytes */
#define DNS_HEAD 12      /* RFC 1035, 4.1.1 */

struct dns_party {
	struct sl_child child;
	uint16_t port; /* 0: nobody is there */
};

struct dns_load {
	unsigned int sockets, inflight; /* queries of each socket that wait for their answer */
	unsigned int ms;
	char kind;
	unsigned int next;    /* number of the next fresh name; goes on from turn to turn */
	uint32_t *latency_ns; /* of answers; room for `room` */
	size_t room;
	/* What came of it. */
	size_t answered;
	unsigned int wrong, lost;
	double seconds;
};

/* dns_server.c */
int dns_server_start(struct dns_party *server, struct sl_err *err);
/* A UDP socket on SL_WORLD_ADDR and `*port`, 0 for any. */
int dns_bind(int *out, uint16_t *port, struct sl_err *err);
/* The address, in host order, of the name that the question of a message asks for. */
uint32_t dns_address(const uint8_t *message, size_t size);
/* Where the first question of a message ends; 0: it has none. */
size_t dns_question_end(const uint8_t *message, size_t size);

/* dns_party.c: `upstream` is the server's port. -ENOENT: the program is not installed. */
int dns_sluice_start(struct dns_party *party, uint16_t upstream, struct sl_err *err);
int dns_dnsmasq_start(struct dns_party *party, uint16_t upstream, struct sl_err *err);
int dns_unbound_start(struct dns_party *party, uint16_t upstream, struct sl_err *err);

/* dns_load.c */
size_t dns_query(uint8_t query[DNS_QUERY_MAX], uint16_t id, char kind, unsigned int number);
int dns_load_run(struct dns_load *load, uint16_t port, struct sl_err *err);

#endif
