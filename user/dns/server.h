/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Policy DNS of one sandbox: takes queries on UDP and TCP sockets, asks the resolver for what
 * the policy lets be asked, takes out the addresses that the policy does not let be answered,
 * has the rest leased, and answers. Knows neither policy nor kernel: `ops` do.
 *
 *	sl_dns_new(&dns, &options, &err);
 *	sl_dns_listen(dns, fd, &err);			for each socket
 *	poll sl_dns_fd(dns), then sl_dns_run(dns);	also runs the resolver
 *	sl_dns_free(&dns);
 *
 * What is answered, for a name that ops->eligible() takes:
 *	A, AAAA		addresses that ops->answer() takes, each leased before it is told; CNAMEs
 *			on the way are told too (SL_DNS_CHAIN at most), unless addresses are synthetic. None left: no data
 *	CNAME, CAA, MX, NAPTR, NS, SOA, SRV, SSHFP, TLSA, TXT
 *			the records of the name, nothing beside them (no address comes along)
 *	HTTPS, SVCB	no data, nothing asked: their hints are addresses that nobody looks up again
 *			(RFC 9460, 7.3), their ECH keys hide the name from whoever inspects, and clients
 *			have to do without them
 *	ANY		one HINFO record (RFC 8482, 4.2)
 *	others		REFUSED: nothing is passed on unread
 * PTR of an address: the name ops->reverse() knows, else NXDOMAIN; never asked upstream.
 * A name that is not eligible: REFUSED. So is one with other bytes than letters, digits, "-" and
 * "_" in a label, unless ops->odd() lets it pass: such a name has no lease. Where the client has
 * EDNS, refusals and removals say why (RFC 8914).
 *
 * Rules
 * 1. Nothing is asked upstream for a name that is not eligible.
 * 2. No address is told that was not leased before (but of an odd name, which has none), and none
 *    is leased that ops->answer() refused. The name asked is what counts: targets of CNAMEs need
 *    no rule of their own.
 * 3. Every query is answered once, in bounded time, or is counted as dropped.
 * 4. A client fails alone: what is bounded is so for each process and for all, and no process
 *    takes more than half of what is free. What can be answered at once does not wait; the rest
 *    does, in a queue of its process, and the processes take turns. A datagram that comes again
 *    before it was answered is answered once. Where a connection is one too many, the one that
 *    was idle for the longest time makes room (RFC 7766, 6.2.3).
 * 5. One thread. Ops are called from sl_dns_run() only, and may not free the server.
 */
#ifndef SLUICE_USER_DNS_SERVER_H
#define SLUICE_USER_DNS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "dns/resolver.h"
#include "policy/addr.h"

struct sl_dns;

#define SL_DNS_INFLIGHT 1024        /* queries that wait for an answer, all together */
#define SL_DNS_INFLIGHT_PROCESS 128 /* of one process */
#define SL_DNS_INFLIGHT_SOCKET 64   /* of one TCP connection, its queue included */
#define SL_DNS_QUEUE 4096           /* queries that wait for their turn, all together */
#define SL_DNS_QUEUE_PROCESS 1024   /* of one process */
#define SL_DNS_QUEUE_MS 10000       /* for so long: clients have given up by then */
#define SL_DNS_TCP_CLIENTS 128      /* connections */
#define SL_DNS_TCP_PROCESS 64       /* of one process */
#define SL_DNS_TCP_MESSAGE_MS 5000  /* to send one query, or to read one answer */
#define SL_DNS_TCP_IDLE_MS 10000    /* without a query */
#define SL_DNS_QUERY_SIZE 4096      /* bytes; longer ones end the connection, or are cut (UDP) */
#define SL_DNS_UDP_SIZE 1232        /* bytes of an answer, however much the client takes */
#define SL_DNS_ADDRESSES 64         /* told and leased of one answer; the others are left out */
#define SL_DNS_LEFT_OUT 8           /* of those left out, told to ops->asked() */
#define SL_DNS_REVERSE_TTL_S 5      /* of PTR records */
#define SL_DNS_ODD 254              /* bytes of an odd name as it is shown, with terminator */

/* Types of services (RFC 2782, 9460, 7553); ldns has no names for some when built without. */
#define SL_DNS_TYPE_SRV 33
#define SL_DNS_TYPE_SVCB 64
#define SL_DNS_TYPE_HTTPS 65
#define SL_DNS_TYPE_URI 256

/* Where a query came from. */
struct sl_dns_source {
	struct sockaddr_storage client; /* family AF_INET or AF_INET6, may be IPv4-mapped */
	struct sockaddr_storage asked;  /* where to */
	bool tcp;
	int fd; /* TCP: the accepted socket, borrowed; UDP: the shared socket */
};

/* The process that asked, as far as known. Process key: (tgid, start). */
struct sl_dns_who {
	uint32_t tgid;
	uint32_t lineage;
	uint64_t start_ns;
	uint64_t cookie; /* of its socket */
	bool known;
};

/* What became of a query, beside the rcode that the client got. */
enum sl_dns_outcome {
	SL_DNS_ANSWERED, /* as upstream, NXDOMAIN and no data too */
	SL_DNS_FILTERED, /* had addresses, and none was left */
	SL_DNS_WITHHELD, /* eligible name, type that is not passed on */
	SL_DNS_REFUSED,  /* name not eligible */
	SL_DNS_LOCAL,    /* PTR, ANY, a search domain: answered without upstream */
	SL_DNS_UPSTREAM, /* SERVFAIL: upstream failed */
	SL_DNS_UNSOUND,  /* SERVFAIL: upstream's answer is looped, too long or contradicts itself */
	SL_DNS_UNLEASED, /* SERVFAIL: ops->lease() or ops->synthetic() failed */
	SL_DNS_LIMITED,  /* SERVFAIL: too many queries wait, or it had no turn in time */
	SL_DNS_MALFORMED, /* FORMERR, NOTIMP, BADVERS, or REFUSED for another class than IN */
	SL_DNS_OUTCOME_MAX
};

/* "answered", "filtered", …; NULL for none. */
const char *sl_dns_outcome_name(enum sl_dns_outcome outcome);

/* One query that was answered. Pointers are valid during the call. */
struct sl_dns_asked {
	const char *name; /* normal form, or escaped as in RFC 1035, 5.1; "" if malformed */
	uint16_t type;    /* RFC 1035, 3.2.2 */
	unsigned int rcode;
	enum sl_dns_outcome outcome;
	const struct sl_dns_source *source;
	const struct sl_dns_who *who;
	const char *upstream; /* "192.0.2.1:53"; NULL: not asked, or from the cache */
	int error; /* errno of a question for A that has failed: ENOENT, ETIMEDOUT, EIO; or 0 */
	unsigned int addresses; /* told */
	unsigned int removed;   /* that ops->answer() refused; the first of these: */
	const struct sl_addr *left_out;
	unsigned int left_out_count;
	uint64_t duration_us;
};

/*
 * Names are in normal form: lower case, no trailing dot, at most 253 bytes. All but `odd`,
 * `synthetic`, `reverse` and `asked` have to be there.
 */
/* What becomes of a query for a name. */
enum sl_dns_say {
	SL_DNS_REFUSE, /* REFUSED; the callee tells the decision */
	SL_DNS_ASK,    /* a rule has it */
	SL_DNS_ABSENT, /* NXDOMAIN without asking: a name that a rule has, and a search domain */
};

struct sl_dns_ops {
	/* Once for a query, and for a TCP connection. Leaves *who as it is (zero) when nobody knows. */
	void (*who)(void *arg, const struct sl_dns_source *source, struct sl_dns_who *who);
	/* Before anything is asked upstream. */
	enum sl_dns_say (*eligible)(void *arg, const char *name, uint16_t type,
				    const struct sl_dns_who *who);
	/*
	 * The same for a name that has no normal form, since a label has other bytes; it is given as
	 * RFC 1035, 5.1 has it, cut to SL_DNS_ODD. NULL: SL_DNS_REFUSE.
	 */
	enum sl_dns_say (*odd)(void *arg, const char *shown, uint16_t type,
			       const struct sl_dns_who *who);
	/* Whether the name may have an address that upstream has for it. */
	bool (*answer)(void *arg, const char *name, const struct sl_addr *addr,
		       const struct sl_dns_who *who);
	/* Each address that will be told, before it is. An error (-errno): SERVFAIL. */
	int (*lease)(void *arg, const char *name, const struct sl_addr *addr, uint32_t ttl_s,
		     const struct sl_dns_who *who);
	/*
	 * The address to tell in place of upstream's; NULL: those are told. Called for a name
	 * with at least one address, of whatever family, that `answer` takes.
	 */
	int (*synthetic)(void *arg, const char *name, int family, struct sl_addr *addr);
	/* The name of an address (254 bytes); false: none. */
	bool (*reverse)(void *arg, const struct sl_addr *addr, const struct sl_dns_who *who,
			char *name);
	void (*asked)(void *arg, const struct sl_dns_asked *asked);
};

struct sl_dns_options {
	const struct sl_dns_ops *ops;
	void *arg;
	/* Borrowed, outlives the server, and is run by it; others may ask it as well. */
	struct sl_resolver *resolver;
};

enum sl_dns_count {
	SL_DNS_COUNT_UDP, /* messages taken */
	SL_DNS_COUNT_TCP,
	SL_DNS_COUNT_CONNECTIONS, /* accepted */
	SL_DNS_COUNT_LOST,        /* dropped by the kernel: they came faster than they were read */
	SL_DNS_COUNT_IGNORED,     /* too short for an answer, or no query */
	SL_DNS_COUNT_TRUNCATED,   /* UDP answers with TC */
	SL_DNS_COUNT_UNSENT,      /* answers that the socket did not take */
	SL_DNS_COUNT_QUEUED,      /* queries that had to wait for their turn */
	SL_DNS_COUNT_REPEATED,    /* that came again meanwhile */
	SL_DNS_COUNT_TCP_LIMIT,   /* connections closed: too many */
	SL_DNS_COUNT_TCP_IDLE,    /* closed to make room */
	SL_DNS_COUNT_TCP_SLOW,    /* ended: query begun and not finished, answer not read */
	SL_DNS_COUNT_NO_FDS,      /* accept() had no descriptor or memory */
	SL_DNS_COUNT_MAX
};

int sl_dns_new(struct sl_dns **out, const struct sl_dns_options *options, struct sl_err *err);
void sl_dns_free(struct sl_dns **dns); /* queries that wait get no answer */

/*
 * A bound UDP or a listening TCP socket, which becomes the server's, also on failure (closed
 * then). Made non-blocking, and told to say where datagrams were sent to, so that answers
 * come from there.
 */
int sl_dns_listen(struct sl_dns *dns, int fd, struct sl_err *err);

/* An epoll fd, readable when there is something to do; timers are in it. */
int sl_dns_fd(const struct sl_dns *dns);
void sl_dns_run(struct sl_dns *dns);

uint64_t sl_dns_count(const struct sl_dns *dns, enum sl_dns_count which);
uint64_t sl_dns_outcomes(const struct sl_dns *dns, enum sl_dns_outcome outcome);
unsigned int sl_dns_waiting(const struct sl_dns *dns); /* queries that have no answer yet */

#endif
