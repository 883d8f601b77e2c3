// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes that ask, and their turns. Of all that is bounded a process has its own limit, and
 * never more than half of what is free: who comes later finds room, however many came before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "dns/server_private.h"

#define TURNS_MAX 256 /* queries begun in one run: others have sockets to be read, too */

static void key_of(struct sl_asker_key *key, const struct sl_dns_who *who)
{
	memset(key, 0, sizeof(*key));
	if (!who->known)
		return;
	key->start_ns = who->start_ns;
	key->tgid = who->tgid;
}

struct sl_asker *sl_asker_get(struct sl_dns *dns, const struct sl_dns_who *who)
{
	struct sl_asker **at, *asker;
	struct sl_asker_key key;
	bool added = false;

	key_of(&key, who);
	at = sl_htab_get(dns->askers, &key);
	if (at) {
		(*at)->users++;
		return *at;
	}
	asker = calloc(1, sizeof(*asker));
	at = asker ? sl_htab_add(dns->askers, &key, &added) : NULL;
	if (!at) {
		free(asker);
		return NULL;
	}
	asker->key = key;
	asker->users = 1;
	TAILQ_INIT(&asker->queries);
	TAILQ_INIT(&asker->queue);
	*at = asker;
	return asker;
}

void sl_asker_put(struct sl_dns *dns, struct sl_asker **asker)
{
	struct sl_asker *a = *asker;

	*asker = NULL;
	if (!a || --a->users)
		return;
	sl_htab_del(dns->askers, &a->key);
	free(a);
}

bool sl_asker_share(unsigned int own, unsigned int all, unsigned int own_max, unsigned int all_max)
{
	return all < all_max && own < own_max && own < (all_max - all + 1) / 2;
}

static bool has_turn(const struct sl_dns *dns, const struct sl_asker *asker)
{
	return sl_asker_share(asker->asked, dns->asked, SL_DNS_INFLIGHT_PROCESS, SL_DNS_INFLIGHT);
}

/* Also at the head, for one whose turn has come to nothing. */
static void enqueue(struct sl_query *query, bool first)
{
	struct sl_asker *asker = query->asker;
	struct sl_dns *dns = query->dns;

	if (TAILQ_EMPTY(&asker->queue))
		TAILQ_INSERT_TAIL(&dns->turns, asker, turn);
	if (first)
		TAILQ_INSERT_HEAD(&asker->queue, query, turn);
	else
		TAILQ_INSERT_TAIL(&asker->queue, query, turn);
	query->queued = true;
	asker->queued++;
	dns->queued++;
}

void sl_query_dequeue(struct sl_query *query)
{
	struct sl_asker *asker = query->asker;
	struct sl_dns *dns = query->dns;

	if (!query->queued)
		return;
	query->queued = false;
	TAILQ_REMOVE(&asker->queue, query, turn);
	asker->queued--;
	dns->queued--;
	if (TAILQ_EMPTY(&asker->queue))
		TAILQ_REMOVE(&dns->turns, asker, turn);
}

/* Whether the same datagram came before, and will be answered: clients send it again. */
static bool is_repeated(const struct sl_query *query)
{
	const struct sl_dns_source *source = &query->source;
	const struct sl_query *other;

	TAILQ_FOREACH(other, &query->asker->queries, of_asker)
	{
		if (other != query && other->id == query->id && !other->conn && !query->conn &&
		    !memcmp(&other->source.client, &source->client, sizeof(source->client)) &&
		    !memcmp(&other->source.asked, &source->asked, sizeof(source->asked)) &&
		    !memcmp(&other->question, &query->question, sizeof(query->question)))
			return true;
	}
	return false;
}

void sl_query_await_turn(struct sl_query *query)
{
	struct sl_dns *dns = query->dns;
	struct sl_asker *asker = sl_asker_get(dns, &query->who);
	int ret = -ENOBUFS;

	if (!asker) {
		sl_query_limited(query);
		return;
	}
	query->asker = asker;
	TAILQ_INSERT_TAIL(&asker->queries, query, of_asker);
	if (is_repeated(query)) {
		dns->counts[SL_DNS_COUNT_REPEATED]++;
		sl_query_drop(query);
		return;
	}
	if (TAILQ_EMPTY(&asker->queue) && has_turn(dns, asker))
		ret = sl_query_begin(query);
	if (ret >= 0)
		return;
	if (ret != -ENOBUFS ||
	    !sl_asker_share(asker->queued, dns->queued, SL_DNS_QUEUE_PROCESS, SL_DNS_QUEUE)) {
		sl_query_limited(query);
		return;
	}
	dns->counts[SL_DNS_COUNT_QUEUED]++;
	enqueue(query, false);
	sl_dns_start_ticking(dns);
}

void sl_query_turns(struct sl_dns *dns)
{
	unsigned int begun = 0, passed = 0;
	struct sl_asker *asker, *stop = NULL;

	/* Each in turn; who has used up its share is passed by, and ends it when met again. */
	while (dns->asked < SL_DNS_INFLIGHT && (asker = TAILQ_FIRST(&dns->turns)) &&
	       !(passed && asker == stop)) {
		struct sl_query *query = TAILQ_FIRST(&asker->queue);
		int ret;

		if (begun == TURNS_MAX) {
			(void)eventfd_write(dns->again, 1);
			return;
		}
		TAILQ_REMOVE(&dns->turns, asker, turn);
		TAILQ_INSERT_TAIL(&dns->turns, asker, turn);
		if (!has_turn(dns, asker)) {
			stop = passed++ ? stop : asker;
			continue;
		}
		begun++;
		passed = 0;
		sl_query_dequeue(query);
		ret = sl_query_begin(query);
		if (ret == -ENOBUFS) {
			enqueue(query, true);
			return;
		}
		if (ret < 0)
			sl_query_limited(query);
	}
}

void sl_query_overdue(struct sl_dns *dns)
{
	uint64_t now_ns = sl_boottime_ns();
	struct sl_asker *asker, *next;

	for (asker = TAILQ_FIRST(&dns->turns); asker; asker = next) {
		struct sl_query *query = TAILQ_FIRST(&asker->queue);

		next = TAILQ_NEXT(asker, turn);
		/* The last of them takes the asker with it. */
		while (query && query->start_ns + SL_DNS_QUEUE_MS * 1000000ULL <= now_ns) {
			struct sl_query *after = TAILQ_NEXT(query, turn);

			sl_query_limited(query);
			query = after;
		}
	}
}
