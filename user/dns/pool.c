// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dns/pool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <sluice/dns.h>

#include "base/intern.h"

#define V4_BASE SL_SYNTHETIC_V4
#define V4_MASK (~0u << (32 - SL_SYNTHETIC_V4_BITS))

/* No name begins with a dot: these keep numbers from being given out. */
#define GAP '.'

struct sl_pool {
	struct sl_intern *names; /* number n has the address n + 1 of either range */
	struct sl_addr v6;       /* the prefix */
	size_t max;
	uint64_t refused;
};

int sl_pool_new(struct sl_pool **out, uint16_t sandbox, size_t max)
{
	struct sl_pool *pool = calloc(1, sizeof(*pool));
	int ret;

	if (!pool)
		return -ENOMEM;
	ret = sl_intern_new(&pool->names);
	if (ret) {
		free(pool);
		return ret;
	}
	pool->v6.be[0] = htonl(SL_SYNTHETIC_V6_0);
	pool->v6.be[1] = htonl(SL_SYNTHETIC_V6_1 | sandbox);
	pool->max = max && max < SL_POOL_NAMES ? max : SL_POOL_NAMES;
	*out = pool;
	return 0;
}

void sl_pool_free(struct sl_pool **pool)
{
	if (!pool || !*pool)
		return;
	sl_intern_free(&(*pool)->names);
	free(*pool);
	*pool = NULL;
}

int sl_pool_address(struct sl_pool *pool, const char *name, int family, struct sl_addr *addr)
{
	uint32_t id = sl_intern_find(pool->names, name, strlen(name));

	if (family != AF_INET && family != AF_INET6)
		return -EAFNOSUPPORT;
	if (id == SL_INTERN_NONE) {
		if (sl_intern_count(pool->names) >= pool->max) {
			pool->refused++;
			return -ENOSPC;
		}
		id = sl_intern_add(pool->names, name, strlen(name), NULL);
		if (id == SL_INTERN_NONE)
			return -ENOMEM;
	}
	if (family == AF_INET)
		*addr = (struct sl_addr){ { 0, 0, htonl(0xffff), htonl(V4_BASE + id + 1) } };
	else
		*addr = (struct sl_addr){ { pool->v6.be[0], pool->v6.be[1], 0, htonl(id + 1) } };
	return 0;
}

/* Whether it is in one of the ranges, and its number there; 0: no name can have it. */
static bool host_part(const struct sl_pool *pool, const struct sl_addr *addr, uint32_t *host)
{
	uint32_t word = ntohl(addr->be[3]);

	if (sl_addr_is_v4(addr)) {
		*host = word & ~V4_MASK;
		return (word & V4_MASK) == V4_BASE;
	}
	*host = addr->be[2] ? 0 : word;
	return addr->be[0] == pool->v6.be[0] && addr->be[1] == pool->v6.be[1];
}

const char *sl_pool_name(const struct sl_pool *pool, const struct sl_addr *addr)
{
	uint32_t number = sl_pool_number(pool, addr);
	const char *name;

	if (!number || number > sl_intern_count(pool->names))
		return NULL;
	name = sl_intern_at(pool->names, number - 1, NULL);
	return *name == GAP ? NULL : name;
}

uint32_t sl_pool_number(const struct sl_pool *pool, const struct sl_addr *addr)
{
	uint32_t host;

	return host_part(pool, addr, &host) && host <= SL_POOL_NAMES ? host : 0;
}

/* The next number is this text's. */
static int add_next(struct sl_pool *pool, const char *text)
{
	uint32_t next = sl_intern_count(pool->names);
	uint32_t id = sl_intern_add(pool->names, text, strlen(text), NULL);

	if (id == SL_INTERN_NONE)
		return -ENOMEM;
	return id == next ? 0 : -EEXIST;
}

int sl_pool_restore(struct sl_pool *pool, const char *name, const struct sl_addr *addr)
{
	uint32_t number = sl_pool_number(pool, addr);
	char gap[16];
	int rc = 0;

	if (!number || number > pool->max)
		return -EINVAL;
	while (!rc && sl_intern_count(pool->names) < number - 1) {
		snprintf(gap, sizeof(gap), "%c%u", GAP, sl_intern_count(pool->names));
		rc = add_next(pool, gap);
	}
	if (rc || sl_intern_count(pool->names) < number)
		return rc ?: add_next(pool, name);
	return strcmp(sl_intern_at(pool->names, number - 1, NULL), name) ? -EEXIST : 0;
}

bool sl_pool_has(const struct sl_pool *pool, const struct sl_addr *addr)
{
	uint32_t host;

	return host_part(pool, addr, &host);
}

size_t sl_pool_count(const struct sl_pool *pool)
{
	return sl_intern_count(pool->names);
}

uint64_t sl_pool_refused(const struct sl_pool *pool)
{
	return pool->refused;
}
