// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dns/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/htab.h"
#include "dns/resolver.h"

struct entry {
	TAILQ_ENTRY(entry) age;
	struct sl_question question;
	int64_t since_ms, until_ms;
	size_t size;
	uint8_t data[];
};

struct sl_cache {
	struct sl_htab *entries;  /* struct sl_question -> struct entry * */
	TAILQ_HEAD(, entry) ages; /* the oldest first */
};

int sl_cache_new(struct sl_cache **out)
{
	struct sl_cache *cache = calloc(1, sizeof(*cache));
	int ret;

	if (!cache)
		return -ENOMEM;
	ret = sl_htab_new(&cache->entries, sizeof(struct sl_question), sizeof(struct entry *));
	if (ret) {
		free(cache);
		return ret;
	}
	TAILQ_INIT(&cache->ages);
	*out = cache;
	return 0;
}

static void drop(struct sl_cache *cache, struct entry *entry)
{
	sl_htab_del(cache->entries, &entry->question);
	TAILQ_REMOVE(&cache->ages, entry, age);
	free(entry);
}

void sl_cache_free(struct sl_cache **cache)
{
	if (!cache || !*cache)
		return;
	while (!TAILQ_EMPTY(&(*cache)->ages))
		drop(*cache, TAILQ_FIRST(&(*cache)->ages));
	sl_htab_free(&(*cache)->entries);
	free(*cache);
	*cache = NULL;
}

static struct entry *find(const struct sl_cache *cache, const struct sl_question *question)
{
	struct entry **at = sl_htab_get(cache->entries, question);

	return at ? *at : NULL;
}

void sl_cache_put(struct sl_cache *cache, const struct sl_question *question, const uint8_t *data,
		  size_t size, uint32_t ttl_s, int64_t now_ms)
{
	struct entry *entry = find(cache, question), **at;

	if (entry)
		drop(cache, entry);
	if (!ttl_s)
		return;
	if (sl_htab_count(cache->entries) >= SL_RESOLVER_CACHE)
		drop(cache, TAILQ_FIRST(&cache->ages));
	entry = malloc(sizeof(*entry) + size);
	at = entry ? sl_htab_add(cache->entries, question, NULL) : NULL;
	if (!at) {
		free(entry);
		return;
	}
	*at = entry;
	entry->question = *question;
	entry->since_ms = now_ms;
	entry->until_ms =
		now_ms + (ttl_s < SL_RESOLVER_CACHE_S ? ttl_s : SL_RESOLVER_CACHE_S) * 1000LL;
	entry->size = size;
	memcpy(entry->data, data, size);
	TAILQ_INSERT_TAIL(&cache->ages, entry, age);
}

bool sl_cache_has(const struct sl_cache *cache, const struct sl_question *question, int64_t now_ms)
{
	const struct entry *entry = find(cache, question);

	return entry && now_ms < entry->until_ms;
}

ldns_pkt *sl_cache_get(struct sl_cache *cache, const struct sl_question *question, int64_t now_ms)
{
	struct entry *entry = find(cache, question);
	ldns_pkt *message = NULL;

	if (!entry)
		return NULL;
	if (now_ms >= entry->until_ms) {
		drop(cache, entry);
		return NULL;
	}
	if (sl_message_read(&message, entry->data, entry->size, SL_RESOLVER_RECORDS))
		return NULL;
	sl_message_age(message, (uint32_t)((now_ms - entry->since_ms) / 1000));
	return message;
}
