/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Policy DNS with scripted upstreams on loopback, all driven by the test's one thread: nothing
 * happens but in dns_world_until(), which works until the test has what it waits for.
 *
 *	dns_world_start(&world, upstreams);	then set up zone, ways and ops
 *	reply = dns_world_ask(&world, &(struct dns_ask){ … });
 *	dns_world_stop(&world);
 */
#ifndef SLUICE_TEST_DNS_WORLD_H
#define SLUICE_TEST_DNS_WORLD_H

#include <netinet/in.h>

#include <ldns/ldns.h>

#include "dns/pool.h"
#include "dns/server.h"

enum dns_way {
	DNS_GOOD,
	DNS_SILENT,
	DNS_DEAD,       /* nobody there */
	DNS_CUT,        /* TC over UDP, good over TCP */
	DNS_CUT_ALWAYS, /* TC over TCP too */
	DNS_HANG_UP,    /* TC; then takes the connection and closes it */
	DNS_WRONG_ID,
	DNS_WRONG_NAME,
	DNS_GARBAGE,    /* the header is good, the rest is not */
	DNS_JUNK_FIRST, /* several wrong ones, then a good one */
	DNS_FAIL,       /* SERVFAIL */
	DNS_NO_EDNS,    /* FORMERR for what has an OPT record */
	DNS_LOWER,      /* answers in lower case */
	DNS_PREFIX,     /* the first `prefix` bytes of a good one */
};

#define DNS_ZONE_MAX 80

struct dns_fake {
	enum dns_way way;
	int udp, listener, conn;
	struct sockaddr_in addr;
	const char *zone[DNS_ZONE_MAX]; /* records as text, NULL at the end */
	size_t prefix;
	bool hold; /* UDP queries are left unread */
	unsigned int udp_asked, tcp_asked;
	uint16_t type; /* last asked */
	char name[256];
};

#define DNS_LEASES_MAX 256

struct dns_lease {
	char name[256];
	struct sl_addr addr;
	uint32_t ttl_s;
};

/* A name that the policy has, with a search domain behind it. */
#define SEARCHED "one.test.search.example"

struct dns_world {
	struct dns_fake fakes[SL_RESOLVER_UPSTREAMS];
	unsigned int fake_count;
	struct sl_resolver_config config;
	struct sl_resolver *resolver;
	struct sl_dns_ops ops;
	struct sl_dns *dns; /* NULL until the first dns_world_ask() or _listen() */
	struct sockaddr_storage udp[2], tcp[2]; /* v4, v6 */
	/* Of the ops. */
	struct sl_pool *pool; /* not NULL: synthetic addresses */
	const char *host;     /* eligible with all below it; NULL: "test" */
	struct sl_dns_who who;
	bool odd_passes;      /* names with bytes that no host has */
	char odd[SL_DNS_ODD]; /* the last one */
	int lease_error;
	struct dns_lease leases[DNS_LEASES_MAX];
	size_t lease_count;
	unsigned int asked;
	struct sl_dns_asked last; /* pointers but `name` are NULL */
	char last_name[1100];
};

void dns_world_start(struct dns_world *world, unsigned int upstreams);
void dns_world_stop(struct dns_world *world);

/* Starts and listens, with one upstream that knows the address 192.0.2.4 of four.test. */
void dns_world_four(struct dns_world *world);
/* Expects that it is told, whatever is left of its TTL. */
void dns_world_expect_four(struct dns_world *world);

/* With world->config and world->ops as they are now. */
void dns_world_resolver(struct dns_world *world);
void dns_world_listen(struct dns_world *world);

/* Works until `done`; fails the test when that takes far too long. */
void dns_world_until(struct dns_world *world, bool (*done)(void *arg), void *arg);
/* Until a descriptor is readable. */
void dns_world_until_readable(struct dns_world *world, int fd);

struct dns_ask {
	const char *name;
	uint16_t type;
	bool tcp, v6;
	uint16_t edns_size; /* 0: none */
	uint16_t class;     /* 0: IN */
};

/* A client's socket, connected to the server. */
int dns_world_client(struct dns_world *world, bool tcp, bool v6);
size_t dns_world_query(const struct dns_ask *ask, uint16_t id, uint8_t *wire, size_t size);
void dns_world_send(int fd, bool tcp, const uint8_t *data, size_t size);
ldns_pkt *dns_world_receive(struct dns_world *world, int fd, bool tcp);

/* Asks and waits for the answer, to be freed with ldns_pkt_free(). */
ldns_pkt *dns_world_ask(struct dns_world *world, const struct dns_ask *ask);

/* The records of a section as text, sorted as they came, joined by "; ": "a.test. 60 A …". */
const char *dns_world_text(const ldns_rr_list *list);

#endif
