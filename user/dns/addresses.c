// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A and AAAA of a name, asked at once, told together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dns/resolver_private.h"

static const uint16_t types[] = { LDNS_RR_TYPE_AAAA, LDNS_RR_TYPE_A };

#define TYPES 2

struct half {
	struct sl_resolver_request *request;
	struct sl_question question;
	struct sl_ask *ask;
	bool done;
	int error; /* when done */
	size_t count;
	struct sl_addr addresses[SL_RESOLVER_ADDRESSES];
};

struct sl_resolver_request {
	TAILQ_ENTRY(sl_resolver_request) all;
	struct sl_resolver *resolver;
	sl_resolver_addresses_fn fn;
	void *arg;
	int64_t until_ms; /* for the second half; INT64_MAX before the first is there */
	bool ready;
	struct half halves[TYPES];
};

static void set_ready(struct sl_resolver_request *request)
{
	struct sl_resolver *resolver = request->resolver;

	if (request->ready)
		return;
	request->ready = true;
	TAILQ_REMOVE(&resolver->requests, request, all);
	TAILQ_INSERT_TAIL(&resolver->ready, request, all);
	if (!resolver->running)
		sl_resolver_arm(resolver, 0);
}

static int take_addresses(struct half *half, const ldns_pkt *message)
{
	const ldns_rr_list *answer = ldns_pkt_answer(message);
	ldns_rdf *name;
	struct sl_chain chain;
	int ret;

	if (ldns_pkt_get_rcode(message) == LDNS_RCODE_NXDOMAIN)
		return -ENOENT;
	name = sl_question_dname(&half->question);
	if (!name)
		return -ENOMEM;
	ret = sl_chain_follow(&chain, message, name, half->question.type);
	for (size_t i = 0; !ret && i < ldns_rr_list_rr_count(answer); i++) {
		const ldns_rr *record = ldns_rr_list_rr(answer, i);

		if (half->count < SL_RESOLVER_ADDRESSES &&
		    sl_chain_has(&chain, record, half->question.type) &&
		    sl_record_addr(record, &half->addresses[half->count]))
			half->count++;
	}
	ldns_rdf_deep_free(name);
	if (ret)
		return ret == -ENOMEM ? ret : -EIO;
	return half->count ? 0 : -ENODATA;
}

static void answered(void *arg, const struct sl_reply *reply)
{
	struct half *half = arg;
	struct sl_resolver_request *request = half->request;

	half->ask = NULL;
	half->done = true;
	half->error = reply->error ?: take_addresses(half, reply->message);
	if (request->halves[0].done && request->halves[1].done) {
		set_ready(request);
	} else if (half->count) {
		request->until_ms = sl_monotonic_ms() + SL_RESOLVER_GRACE_MS;
		sl_resolver_arm(request->resolver, request->until_ms);
	}
}

int sl_resolver_addresses(struct sl_resolver *resolver, const char *name,
			  sl_resolver_addresses_fn fn, void *arg, struct sl_resolver_request **out)
{
	struct sl_resolver_request *request = calloc(1, sizeof(*request));
	int ret = 0;

	if (!request)
		return -ENOMEM;
	request->resolver = resolver;
	request->fn = fn;
	request->arg = arg;
	request->until_ms = INT64_MAX;
	TAILQ_INSERT_TAIL(&resolver->requests, request, all);
	for (unsigned int i = 0; !ret && i < TYPES; i++) {
		struct half *half = &request->halves[i];

		half->request = request;
		ret = sl_question_make(&half->question, name, types[i]);
		if (!ret)
			ret = sl_ask(resolver, &half->question, answered, half, &half->ask);
		if (ret > 0)
			ret = 0;
	}
	if (ret) {
		sl_resolver_cancel(&request);
		return ret;
	}
	*out = request;
	return 0;
}

void sl_resolver_cancel(struct sl_resolver_request **request)
{
	struct sl_resolver_request *r;

	if (!request || !*request)
		return;
	r = *request;
	for (unsigned int i = 0; i < TYPES; i++)
		sl_ask_cancel(&r->halves[i].ask);
	if (r->ready)
		TAILQ_REMOVE(&r->resolver->ready, r, all);
	else
		TAILQ_REMOVE(&r->resolver->requests, r, all);
	free(r);
	*request = NULL;
}

int64_t sl_requests_expire(struct sl_resolver *resolver, int64_t now_ms)
{
	struct sl_resolver_request *request, *next;
	int64_t soonest = INT64_MAX;

	for (request = TAILQ_FIRST(&resolver->requests); request; request = next) {
		next = TAILQ_NEXT(request, all);
		if (request->until_ms <= now_ms)
			set_ready(request);
		else if (request->until_ms < soonest)
			soonest = request->until_ms;
	}
	return soonest;
}

static void deliver(struct sl_resolver_request *request)
{
	struct sl_addr addresses[TYPES * SL_RESOLVER_ADDRESSES];
	sl_resolver_addresses_fn fn = request->fn;
	void *arg = request->arg;
	size_t count = 0;
	int error = 0;

	for (unsigned int i = 0; i < TYPES; i++) {
		const struct half *half = &request->halves[i];

		memcpy(addresses + count, half->addresses, half->count * sizeof(addresses[0]));
		count += half->count;
		/* "It failed" says more than "it has none of these". */
		if (!error || error == -ENODATA)
			error = half->error;
	}
	sl_resolver_cancel(&request);
	fn(arg, count ? 0 : error, addresses, count);
}

void sl_requests_deliver(struct sl_resolver *resolver)
{
	struct sl_resolver_request *request;
	size_t count = 0;

	/* Who is called may ask for what is at hand: that is for the next turn. */
	TAILQ_FOREACH(request, &resolver->ready, all)
	{
		count++;
	}
	while (count-- && (request = TAILQ_FIRST(&resolver->ready)))
		deliver(request);
	if (!TAILQ_EMPTY(&resolver->ready))
		sl_resolver_arm(resolver, 0);
}
