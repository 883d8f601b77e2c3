/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stub resolver (RFC 1034, 5.3.1): asks recursive upstreams, over UDP and, for what does not
 * fit, TCP. Equal questions share one exchange; answers are kept for their TTL.
 *
 *	sl_resolver_config_read(&config, "/etc/resolv.conf", &err);	or filled in
 *	sl_resolver_new(&resolver, &config, &err);
 *	sl_resolver_addresses(resolver, name, fn, arg, &request);
 *	poll sl_resolver_fd(resolver), then sl_resolver_run(resolver);	calls fn
 *	sl_resolver_free(&resolver);
 *
 * Rules
 * 1. Each try has a socket of its own, connected, with a port that the kernel chose at random,
 *    and an id from getrandom(): what comes from elsewhere, with another id or with another
 *    question is not looked at (RFC 5452), and the try goes on.
 * 2. A question is answered or has failed after `timeout_ms` for each try, twice as much in each
 *    further round, and SL_RESOLVER_MS in all, whatever upstreams do. An upstream that was silent
 *    is asked last for a while.
 * 3. An answer is read whole, or not at all.
 * 4. One thread. `fn` may ask again, and may cancel others; it may not free the resolver.
 */
#ifndef SLUICE_USER_DNS_RESOLVER_H
#define SLUICE_USER_DNS_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "policy/addr.h"

struct sl_resolver;
struct sl_resolver_request; /* somebody waits */

#define SL_RESOLVER_UPSTREAMS 3       /* as resolv.conf(5) */
#define SL_RESOLVER_MS 10000          /* for a question, all tries together */
#define SL_RESOLVER_TIMEOUT_MS 2000   /* for a try, by default */
#define SL_RESOLVER_ATTEMPTS 2        /* rounds, by default */
#define SL_RESOLVER_INFLIGHT 1024     /* exchanges */
#define SL_RESOLVER_UDP_SIZE 1232     /* bytes that upstreams may send as a datagram */
#define SL_RESOLVER_ANSWER_SIZE 16384 /* bytes of an answer over TCP */
#define SL_RESOLVER_RECORDS 512       /* of an answer */
#define SL_RESOLVER_CACHE 1024        /* answers kept */
#define SL_RESOLVER_CACHE_S 3600      /* the longest */
#define SL_DNS_CHAIN 12               /* CNAMEs to an answer */
#define SL_RESOLVER_ADDRESSES 32      /* of a name, for sl_resolver_addresses() */
#define SL_RESOLVER_GRACE_MS 250      /* what the second family may take once the first is there */

struct sl_resolver_config {
	struct sockaddr_storage upstreams[SL_RESOLVER_UPSTREAMS];
	unsigned int count;
	unsigned int timeout_ms; /* 0: default; at most SL_RESOLVER_MS */
	unsigned int attempts;   /* 0: default */
	bool mix_case;           /* 0x20: letters in random case in the first round */
	bool no_cache;
	uint32_t mark; /* SO_MARK of sockets; 0: none */
};

/*
 * "192.0.2.1", "2001:db8::1", either with a port ("192.0.2.1:5353", "[2001:db8::1]:5353").
 * -EINVAL, -ERANGE with err, -ENOSPC: there are SL_RESOLVER_UPSTREAMS already.
 */
int sl_resolver_config_add(struct sl_resolver_config *config, const char *text, struct sl_err *err);

/*
 * nameserver lines and the options timeout: and attempts: of a resolv.conf(5) of at most 64
 * KiB; all else is the client's. No nameserver: 127.0.0.1, as there. *config untouched on
 * failure.
 */
int sl_resolver_config_read(struct sl_resolver_config *config, const char *path,
			    struct sl_err *err);

int sl_resolver_new(struct sl_resolver **out, const struct sl_resolver_config *config,
		    struct sl_err *err);
void sl_resolver_free(struct sl_resolver **resolver); /* who waits is not told */

/* An epoll fd, readable when there is something to do; timers are in it. */
int sl_resolver_fd(const struct sl_resolver *resolver);
void sl_resolver_run(struct sl_resolver *resolver);

/*
 * `error`: 0 with one address or more; -ENOENT: no such name; -ENODATA: a name without
 * addresses; -ETIMEDOUT: no upstream answered; -EIO: they failed, or answered nonsense;
 * -ENOBUFS: too many exchanges; -ENOMEM. Addresses are in the order of upstream, IPv6 first,
 * unchecked by any policy, valid during the call.
 */
typedef void (*sl_resolver_addresses_fn)(void *arg, int error, const struct sl_addr *addresses,
					 size_t count);

/*
 * A and AAAA of a name in normal form. `fn` is called once, from sl_resolver_run(), never from
 * here, unless this fails: -EINVAL (no name), -ENOMEM, -ENOBUFS.
 */
int sl_resolver_addresses(struct sl_resolver *resolver, const char *name,
			  sl_resolver_addresses_fn fn, void *arg, struct sl_resolver_request **out);

/* `fn` is not called. *request becomes NULL; not after `fn` was called. */
void sl_resolver_cancel(struct sl_resolver_request **request);

enum sl_resolver_count {
	SL_RESOLVER_COUNT_ASKED,    /* questions */
	SL_RESOLVER_COUNT_SHARED,   /* that joined another's exchange */
	SL_RESOLVER_COUNT_CACHED,   /* answered from the cache */
	SL_RESOLVER_COUNT_TRIES,    /* sent to an upstream */
	SL_RESOLVER_COUNT_TCP,      /* of these over TCP */
	SL_RESOLVER_COUNT_IGNORED,  /* messages that were no answer to what was asked */
	SL_RESOLVER_COUNT_TIMEOUTS, /* tries */
	SL_RESOLVER_COUNT_FAILED,   /* questions */
	SL_RESOLVER_COUNT_LIMITED,  /* questions not asked: SL_RESOLVER_INFLIGHT */
	SL_RESOLVER_COUNT_MAX
};

uint64_t sl_resolver_count(const struct sl_resolver *resolver, enum sl_resolver_count which);

#endif
