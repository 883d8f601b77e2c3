// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dns/resolver.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "dns/resolver_private.h"

#define EVENTS 64

static void free_dead(struct sl_resolver *resolver)
{
	struct sl_exchange *exchange;

	while ((exchange = TAILQ_FIRST(&resolver->dead))) {
		TAILQ_REMOVE(&resolver->dead, exchange, all);
		free(exchange);
	}
}

/* Events of the run that goes on may still point to it, so it is freed later. */
static void bury(struct sl_exchange *exchange)
{
	struct sl_resolver *resolver = exchange->resolver;

	sl_exchange_close(exchange);
	sl_htab_del(resolver->by_question, &exchange->question);
	TAILQ_REMOVE(&resolver->exchanges, exchange, all);
	TAILQ_INSERT_TAIL(&resolver->dead, exchange, all);
	exchange->resolver = NULL;
	resolver->count--;
}

void sl_exchange_end(struct sl_exchange *exchange, const struct sl_reply *reply)
{
	struct sl_resolver *resolver = exchange->resolver;
	struct sl_ask *ask;

	if (reply->error)
		resolver->counts[SL_RESOLVER_COUNT_FAILED]++;
	bury(exchange);
	/* Each call may cancel others that wait here. */
	while ((ask = LIST_FIRST(&exchange->asks))) {
		const struct sl_ask taken = *ask;

		LIST_REMOVE(ask, of_exchange);
		free(ask);
		taken.fn(taken.arg, reply);
	}
}

void sl_ask_cancel(struct sl_ask **ask)
{
	struct sl_exchange *exchange;

	if (!ask || !*ask)
		return;
	exchange = (*ask)->exchange;
	LIST_REMOVE(*ask, of_exchange);
	free(*ask);
	*ask = NULL;
	if (exchange->resolver && LIST_EMPTY(&exchange->asks))
		bury(exchange);
}

/* Those that were silent lately come last, all else as configured. */
static void order_upstreams(const struct sl_resolver *resolver, unsigned int *order, int64_t now_ms)
{
	unsigned int count = 0;

	for (int silent = 0; silent < 2; silent++) {
		for (unsigned int i = 0; i < resolver->config.count; i++) {
			if ((resolver->upstreams[i].silent_until_ms > now_ms) == silent)
				order[count++] = i;
		}
	}
}

static struct sl_exchange *find_exchange(const struct sl_resolver *resolver,
					 const struct sl_question *question)
{
	struct sl_exchange **at = sl_htab_get(resolver->by_question, question);

	return at ? *at : NULL;
}

static struct sl_exchange *new_exchange(struct sl_resolver *resolver,
					const struct sl_question *question)
{
	struct sl_exchange *exchange = calloc(1, sizeof(*exchange)), **at;

	if (!exchange)
		return NULL;
	at = sl_htab_add(resolver->by_question, question, NULL);
	if (!at) {
		free(exchange);
		return NULL;
	}
	*at = exchange;
	exchange->resolver = resolver;
	exchange->question = *question;
	exchange->fd = -1;
	exchange->until_ms = sl_monotonic_ms() + SL_RESOLVER_MS;
	LIST_INIT(&exchange->asks);
	order_upstreams(resolver, exchange->order, exchange->until_ms - SL_RESOLVER_MS);
	TAILQ_INSERT_TAIL(&resolver->exchanges, exchange, all);
	resolver->count++;
	return exchange;
}

/* 1: answered from the cache. */
static int ask_cache(struct sl_resolver *resolver, const struct sl_question *question, sl_ask_fn fn,
		     void *arg)
{
	ldns_pkt *message =
		resolver->cache ? sl_cache_get(resolver->cache, question, sl_monotonic_ms()) : NULL;

	if (!message)
		return 0;
	resolver->counts[SL_RESOLVER_COUNT_CACHED]++;
	fn(arg, &(struct sl_reply){ .message = message });
	ldns_pkt_free(message);
	return 1;
}

bool sl_ask_at_hand(const struct sl_resolver *resolver, const struct sl_question *question)
{
	return resolver->cache && !find_exchange(resolver, question) &&
	       sl_cache_has(resolver->cache, question, sl_monotonic_ms());
}

int sl_ask(struct sl_resolver *resolver, const struct sl_question *question, sl_ask_fn fn,
	   void *arg, struct sl_ask **ask)
{
	struct sl_exchange *exchange = find_exchange(resolver, question);
	struct sl_ask *new;
	bool first = !exchange;

	resolver->counts[SL_RESOLVER_COUNT_ASKED]++;
	if (first && ask_cache(resolver, question, fn, arg))
		return 1;
	if (first && resolver->count >= SL_RESOLVER_INFLIGHT) {
		resolver->counts[SL_RESOLVER_COUNT_LIMITED]++;
		return -ENOBUFS;
	}
	new = calloc(1, sizeof(*new));
	if (new &&first)
		exchange = new_exchange(resolver, question);
	if (!new || !exchange) {
		free(new);
		return -ENOMEM;
	}
	*new = (struct sl_ask){ .exchange = exchange, .fn = fn, .arg = arg };
	LIST_INSERT_HEAD(&exchange->asks, new, of_exchange);
	*ask = new;
	if (first)
		sl_exchange_next(exchange, 0);
	else
		resolver->counts[SL_RESOLVER_COUNT_SHARED]++;
	return 0;
}

void sl_resolver_arm(struct sl_resolver *resolver, int64_t when_ms)
{
	struct itimerspec spec = { 0 };

	if (when_ms >= resolver->armed_ms)
		return;
	resolver->armed_ms = when_ms;
	spec.it_value.tv_sec = when_ms > 0 ? when_ms / 1000 : 0;
	/* All zero would be "never". */
	spec.it_value.tv_nsec = when_ms > 0 ? when_ms % 1000 * 1000000 + 1 : 1;
	timerfd_settime(resolver->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void expire(struct sl_resolver *resolver)
{
	struct sl_exchange *exchange, *next;
	int64_t now_ms = sl_monotonic_ms(), soonest;
	uint64_t fired;

	if (read(resolver->timer, &fired, sizeof(fired)) < 0 && errno != EAGAIN)
		return;
	resolver->armed_ms = INT64_MAX;
	for (exchange = TAILQ_FIRST(&resolver->exchanges); exchange; exchange = next) {
		next = TAILQ_NEXT(exchange, all);
		if (exchange->try_until_ms > now_ms)
			continue;
		sl_exchange_next(exchange, -ETIMEDOUT);
		/* Who was called may have ended the next one: start over, it gets shorter. */
		if (!exchange->resolver)
			next = TAILQ_FIRST(&resolver->exchanges);
	}
	soonest = sl_requests_expire(resolver, now_ms);
	TAILQ_FOREACH(exchange, &resolver->exchanges, all)
	{
		if (exchange->try_until_ms < soonest)
			soonest = exchange->try_until_ms;
	}
	if (soonest != INT64_MAX)
		sl_resolver_arm(resolver, soonest);
}

void sl_resolver_run(struct sl_resolver *resolver)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(resolver->epoll, events, EVENTS, 0);

	resolver->running = true;
	for (int i = 0; i < n; i++) {
		struct sl_exchange *exchange = events[i].data.ptr;

		if (!exchange)
			expire(resolver);
		else if (exchange->resolver)
			sl_exchange_handle(exchange, events[i].events);
	}
	sl_requests_deliver(resolver);
	resolver->running = false;
	free_dead(resolver);
}

static int open_epoll(struct sl_resolver *resolver)
{
	struct epoll_event event = { .events = EPOLLIN };

	resolver->epoll = epoll_create1(EPOLL_CLOEXEC);
	resolver->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (resolver->epoll < 0 || resolver->timer < 0 ||
	    epoll_ctl(resolver->epoll, EPOLL_CTL_ADD, resolver->timer, &event))
		return -errno;
	return 0;
}

static void set_upstream(struct sl_upstream *upstream, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	struct sl_endpoint endpoint = { .addr_be = { 0, 0, SL_BE32(0xffff), 0 } };

	upstream->addr = *addr;
	if (addr->ss_family == AF_INET) {
		upstream->size = sizeof(*in);
		endpoint.addr_be[3] = in->sin_addr.s_addr;
		endpoint.port_be = in->sin_port;
	} else {
		upstream->size = sizeof(*in6);
		memcpy(endpoint.addr_be, &in6->sin6_addr, sizeof(endpoint.addr_be));
		endpoint.port_be = in6->sin6_port;
	}
	sl_format_endpoint(upstream->text, sizeof(upstream->text), &endpoint);
}

int sl_resolver_new(struct sl_resolver **out, const struct sl_resolver_config *config,
		    struct sl_err *err)
{
	struct sl_resolver *resolver;
	int ret;

	if (!config->count || config->count > SL_RESOLVER_UPSTREAMS)
		return sl_err_set(err, EINVAL, "no DNS server to ask");
	resolver = calloc(1, sizeof(*resolver));
	if (!resolver)
		return sl_err_sys(err, ENOMEM, "DNS resolver");
	resolver->config = *config;
	resolver->epoll = resolver->timer = -1;
	resolver->armed_ms = INT64_MAX;
	TAILQ_INIT(&resolver->exchanges);
	TAILQ_INIT(&resolver->dead);
	TAILQ_INIT(&resolver->requests);
	TAILQ_INIT(&resolver->ready);
	if (!config->timeout_ms)
		resolver->config.timeout_ms = SL_RESOLVER_TIMEOUT_MS;
	if (config->timeout_ms > SL_RESOLVER_MS)
		resolver->config.timeout_ms = SL_RESOLVER_MS;
	if (!config->attempts)
		resolver->config.attempts = SL_RESOLVER_ATTEMPTS;
	for (unsigned int i = 0; i < config->count; i++)
		set_upstream(&resolver->upstreams[i], &config->upstreams[i]);
	ret = open_epoll(resolver);
	if (!ret)
		ret = sl_htab_new(&resolver->by_question, sizeof(struct sl_question),
				  sizeof(struct sl_exchange *));
	if (!ret && !config->no_cache)
		ret = sl_cache_new(&resolver->cache);
	if (ret) {
		sl_resolver_free(&resolver);
		return sl_err_sys(err, -ret, "DNS resolver");
	}
	*out = resolver;
	return 0;
}

void sl_resolver_free(struct sl_resolver **resolver)
{
	struct sl_resolver *r;
	struct sl_resolver_request *request;
	struct sl_exchange *exchange;

	if (!resolver || !*resolver)
		return;
	r = *resolver;
	while ((request = TAILQ_FIRST(&r->ready)) || (request = TAILQ_FIRST(&r->requests)))
		sl_resolver_cancel(&request);
	while ((exchange = TAILQ_FIRST(&r->exchanges))) {
		struct sl_ask *ask = LIST_FIRST(&exchange->asks);

		sl_ask_cancel(&ask);
	}
	free_dead(r);
	sl_cache_free(&r->cache);
	sl_htab_free(&r->by_question);
	sl_cleanup_fd(&r->timer);
	sl_cleanup_fd(&r->epoll);
	free(r);
	*resolver = NULL;
}

int sl_resolver_fd(const struct sl_resolver *resolver)
{
	return resolver->epoll;
}

uint64_t sl_resolver_count(const struct sl_resolver *resolver, enum sl_resolver_count which)
{
	return which < SL_RESOLVER_COUNT_MAX ? resolver->counts[which] : 0;
}
