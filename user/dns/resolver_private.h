/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between resolver.c (questions), exchange.c (one question's tries) and addresses.c. */
#ifndef SLUICE_USER_DNS_RESOLVER_PRIVATE_H
#define SLUICE_USER_DNS_RESOLVER_PRIVATE_H

#include <sys/queue.h>

#include "base/htab.h"
#include "dns/ask.h"
#include "dns/cache.h"

#define SL_UPSTREAM_TEXT 64

struct sl_upstream {
	struct sockaddr_storage addr;
	socklen_t size;
	int64_t silent_until_ms; /* asked last until then */
	char text[SL_UPSTREAM_TEXT];
};

struct sl_ask {
	LIST_ENTRY(sl_ask) of_exchange;
	struct sl_exchange *exchange;
	sl_ask_fn fn;
	void *arg;
};

/* One question on its way. It is dead, and only waits to be freed, when it has no resolver. */
struct sl_exchange {
	TAILQ_ENTRY(sl_exchange) all; /* or of the dead */
	LIST_HEAD(, sl_ask) asks;
	struct sl_resolver *resolver;
	struct sl_question question;
	int64_t until_ms;     /* of all tries */
	int64_t try_until_ms; /* of this one */
	unsigned int order[SL_RESOLVER_UPSTREAMS];
	unsigned int tries; /* begun */
	int error;          /* why the last one failed */
	int fd;             /* of the try */
	bool tcp, no_edns;
	uint16_t id;
	uint8_t cased[SL_NAME_WIRE]; /* the name as it was sent */
	uint8_t *buffer;             /* TCP: the query, then the answer, with its length first */
	size_t done, size;           /* bytes of the buffer */
	bool sent;
};

struct sl_resolver {
	struct sl_resolver_config config;
	struct sl_upstream upstreams[SL_RESOLVER_UPSTREAMS];
	int epoll, timer;
	int64_t armed_ms;            /* when the timer fires; INT64_MAX: never */
	struct sl_htab *by_question; /* struct sl_question -> struct sl_exchange * */
	struct sl_cache *cache;      /* NULL: none is kept */
	TAILQ_HEAD(, sl_exchange) exchanges;
	TAILQ_HEAD(, sl_exchange) dead;
	TAILQ_HEAD(, sl_resolver_request) requests; /* not ready yet */
	TAILQ_HEAD(, sl_resolver_request) ready;
	unsigned int count; /* exchanges */
	bool running;
	uint64_t counts[SL_RESOLVER_COUNT_MAX];
};

/* The timer fires at `when_ms` or before. */
void sl_resolver_arm(struct sl_resolver *resolver, int64_t when_ms);

/* Ends an exchange: all who wait get the reply. */
void sl_exchange_end(struct sl_exchange *exchange, const struct sl_reply *reply);

/* Begins the next try, or ends the exchange when there is none. `error` is why. */
void sl_exchange_next(struct sl_exchange *exchange, int error);

void sl_exchange_handle(struct sl_exchange *exchange, unsigned int events);
void sl_exchange_close(struct sl_exchange *exchange); /* the socket of the try */

/* Requests whose time has come are ready. Returns the next time, INT64_MAX: none. */
int64_t sl_requests_expire(struct sl_resolver *resolver, int64_t now_ms);

/* Calls who is ready. */
void sl_requests_deliver(struct sl_resolver *resolver);

#endif
