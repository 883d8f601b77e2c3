/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between server.c (sockets), server_tcp.c (connections), query.c (what becomes of a query),
 * asker.c (whose turn it is) and reply.c (the message).
 */
#ifndef SLUICE_USER_DNS_SERVER_PRIVATE_H
#define SLUICE_USER_DNS_SERVER_PRIVATE_H

#include <sys/queue.h>

#include "base/htab.h"
#include "dns/ask.h"
#include "dns/server.h"

/* Extended DNS errors, RFC 8914: the EDNS option, and the codes in use. */
#define SL_EDE_OPTION 15
enum sl_ede {
	SL_EDE_NONE = -1,
	SL_EDE_OTHER = 0,
	SL_EDE_BLOCKED = 15,
	SL_EDE_FILTERED = 17,
	SL_EDE_NO_UPSTREAM = 22,
	SL_EDE_NETWORK = 23,
};

/* What an event of the epoll fd is about; first in what it belongs to. */
enum sl_watch_kind {
	SL_WATCH_RESOLVER,
	SL_WATCH_TIMER,
	SL_WATCH_AGAIN,
	SL_WATCH_UDP,
	SL_WATCH_TCP,
	SL_WATCH_CONN
};

struct sl_watch {
	enum sl_watch_kind kind;
};

struct sl_listener {
	struct sl_watch watch;
	LIST_ENTRY(sl_listener) all;
	struct sockaddr_storage addr;
	int fd;
	uint32_t dropped; /* of its datagrams, as the kernel counts */
	bool paused;      /* no descriptor was left to accept with */
};

/* A process; all that are not known are one, of key zero. */
struct sl_asker_key {
	uint64_t start_ns;
	uint32_t tgid;
	uint32_t zero;
};

struct sl_asker {
	TAILQ_ENTRY(sl_asker) turn; /* while it has a queue */
	struct sl_asker_key key;
	unsigned int users;             /* queries and connections that point here */
	unsigned int asked, queued;     /* its queries on their way, and those before their turn */
	unsigned int conns;             /* its TCP connections */
	TAILQ_HEAD(, sl_query) queries; /* both kinds */
	TAILQ_HEAD(, sl_query) queue;   /* the oldest first */
};

/* A TCP client. Without descriptor it is dead and only waits to be freed. */
struct sl_conn {
	struct sl_watch watch;
	TAILQ_ENTRY(sl_conn) all; /* or of the dead */
	struct sl_dns *dns;
	struct sl_dns_source source;
	struct sl_asker *asker;
	int fd;
	unsigned int watched; /* EPOLL* */
	unsigned int waiting; /* its queries without an answer */
	bool ended;           /* sends no more */
	int64_t since_ms;     /* the last time that it did not keep us waiting */
	size_t got;           /* bytes of `in` */
	uint8_t *out;         /* answers that it has not read */
	size_t out_size, out_done;
	uint8_t in[2 + SL_DNS_QUERY_SIZE];
};

/* What is answered; lists are owned, NULL is none. */
struct sl_dns_reply {
	unsigned int rcode; /* 12 bits */
	ldns_rr_list *answer, *authority;
	enum sl_ede ede;
	const char *text; /* with it */
	bool cut;
};

struct sl_query {
	TAILQ_ENTRY(sl_query) all;
	TAILQ_ENTRY(sl_query) of_asker, turn;
	struct sl_dns *dns;
	struct sl_conn *conn; /* NULL: UDP */
	struct sl_dns_source source;
	struct sl_dns_who who;
	uint64_t start_ns;
	/* As it came. */
	uint16_t id;
	bool asks;                 /* has a question; below only then */
	bool recursion, unchecked; /* RD, CD */
	bool edns;
	uint16_t udp_size;
	uint16_t class;
	struct sl_question question;
	uint8_t cased[SL_NAME_WIRE];
	char name[SL_NAME_TEXT]; /* "": not in normal form */
	/* On its way. */
	struct sl_asker *asker; /* NULL: it needs no turn */
	bool queued, begun;
	struct sl_ask *ask;
	bool other_family; /* asked upstream for the other one too */
	const char *upstream;
	unsigned int addresses, removed;
	struct sl_addr left_out[SL_DNS_LEFT_OUT]; /* the first of `removed` */
	struct sl_dns_reply reply;
};

struct sl_dns {
	struct sl_dns_options options;
	int epoll, timer;
	int again; /* eventfd: there is more to do than one run did */
	bool ticking;
	struct sl_watch resolver_watch, timer_watch, again_watch;
	LIST_HEAD(, sl_listener) listeners;
	TAILQ_HEAD(, sl_conn) conns;
	TAILQ_HEAD(, sl_conn) dead;
	unsigned int conn_count;
	size_t unread;                  /* bytes of answers that TCP clients have not read */
	TAILQ_HEAD(, sl_query) queries; /* that have no answer yet */
	unsigned int waiting;
	struct sl_htab *askers;       /* struct sl_asker_key -> struct sl_asker * */
	TAILQ_HEAD(, sl_asker) turns; /* who has a queue; whose turn is next comes first */
	unsigned int asked, queued;   /* queries on their way, and before their turn */
	uint64_t counts[SL_DNS_COUNT_MAX];
	uint64_t outcomes[SL_DNS_OUTCOME_MAX];
};

/* One message of a client. `conn` NULL: a datagram. */
void sl_query_take(struct sl_dns *dns, struct sl_conn *conn, const struct sl_dns_source *source,
		   const uint8_t *data, size_t size);

/* Forgets it, unanswered. */
void sl_query_drop(struct sl_query *query);

/*
 * Asks upstream: -errno of sl_ask(), and it is as it was before; else it is answered by now or
 * will be, and no longer the caller's.
 */
int sl_query_begin(struct sl_query *query);

/* Answers that it was one too many. */
void sl_query_limited(struct sl_query *query);

/* Of the process, to be given back with sl_asker_put(), which nulls it; NULL: no memory. */
struct sl_asker *sl_asker_get(struct sl_dns *dns, const struct sl_dns_who *who);
void sl_asker_put(struct sl_dns *dns, struct sl_asker **asker);

/* Whether who has `own` of the `all` that are taken may have one more. */
bool sl_asker_share(unsigned int own, unsigned int all, unsigned int own_max, unsigned int all_max);

/* Begins it, or queues it, or answers that it is one too many. */
void sl_query_await_turn(struct sl_query *query);
/* No error when it is in no queue. */
void sl_query_dequeue(struct sl_query *query);
/* Begins those whose turn it is. */
void sl_query_turns(struct sl_dns *dns);
/* Answers those that have waited for too long. */
void sl_query_overdue(struct sl_dns *dns);

/* Fills query->reply from what upstream said; returns what became of it. */
enum sl_dns_outcome sl_reply_fill(struct sl_query *query, const struct sl_reply *upstream);

/*
 * The message, at most `limit` bytes, to be freed with free(); records that don't fit are
 * left out, reply.cut says so. -ENOMEM.
 */
int sl_reply_write(struct sl_query *query, size_t limit, uint8_t **wire, size_t *size);
void sl_reply_clear(struct sl_dns_reply *reply);

/* Adds what ANY is answered with, or a PTR record. -ENOMEM. */
int sl_reply_any(struct sl_query *query);
int sl_reply_name(struct sl_query *query, const char *name);

/* Sends to where the query came from; what can't be sent is counted. */
void sl_udp_send(struct sl_dns *dns, const struct sl_dns_source *source, const uint8_t *data,
		 size_t size);
void sl_conn_send(struct sl_conn *conn, const uint8_t *data, size_t size);

/* One of its queries is no longer there; may close it (it is freed later). */
void sl_conn_answered(struct sl_conn *conn);

void sl_conn_accept(struct sl_dns *dns, struct sl_listener *listener);
void sl_conn_handle(struct sl_conn *conn, unsigned int events);
void sl_conn_close(struct sl_conn *conn);
/* Ends who is late, and frees the dead. */
void sl_conn_tick(struct sl_dns *dns, int64_t now_ms);
void sl_conn_free_dead(struct sl_dns *dns);

/* Once a second, as long as somebody may be late. */
void sl_dns_start_ticking(struct sl_dns *dns);

#endif
