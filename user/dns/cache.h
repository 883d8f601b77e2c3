/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers of upstreams, kept for their TTL: at most SL_RESOLVER_CACHE, of which the oldest
 * goes when there is no room. Only what sl_message_read() takes may be put in. Not locked.
 */
#ifndef SLUICE_USER_DNS_CACHE_H
#define SLUICE_USER_DNS_CACHE_H

#include "dns/message.h"

struct sl_cache;

int sl_cache_new(struct sl_cache **out);
void sl_cache_free(struct sl_cache **cache);

/* Keeps a copy of the message; what can't be kept is not, and that is no error. */
void sl_cache_put(struct sl_cache *cache, const struct sl_question *question, const uint8_t *data,
		  size_t size, uint32_t ttl_s, int64_t now_ms);

/* Whether there is an answer. */
bool sl_cache_has(const struct sl_cache *cache, const struct sl_question *question, int64_t now_ms);

/* The answer, its TTLs as they are by now, to be freed with ldns_pkt_free(). NULL: none. */
ldns_pkt *sl_cache_get(struct sl_cache *cache, const struct sl_question *question, int64_t now_ms);

#endif
