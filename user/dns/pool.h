/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Synthetic addresses of one sandbox: names get one each, of either family, that no host has,
 * and keep it as long as the pool lives: 198.18.0.0/15 (RFC 2544) and fd73:6c75:6963:ID::/64
 * (RFC 4193), where ID is the sandbox'. Both families of a name have the same number.
 *
 *	sl_pool_new(&pool, sandbox, 0);
 *	sl_pool_address(pool, name, AF_INET, &addr);
 *	sl_pool_name(pool, &addr);
 *	sl_pool_free(&pool);
 *
 * Nothing is ever given to another name: who holds an old address would reach the new name.
 * An exhausted pool refuses new names (-ENOSPC, counted). Not locked.
 */
#ifndef SLUICE_USER_DNS_POOL_H
#define SLUICE_USER_DNS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/addr.h"

struct sl_pool;

#define SL_POOL_NAMES 131070 /* of 198.18.0.0/15, all but the first and the last address */

/* `max` names, 0: SL_POOL_NAMES, which is also the most. */
int sl_pool_new(struct sl_pool **out, uint16_t sandbox, size_t max);
void sl_pool_free(struct sl_pool **pool);

/* AF_INET or AF_INET6, else -EAFNOSUPPORT; -ENOSPC: exhausted; -ENOMEM. */
int sl_pool_address(struct sl_pool *pool, const char *name, int family, struct sl_addr *addr);

/* NULL: of no name. Valid as long as the pool. */
const char *sl_pool_name(const struct sl_pool *pool, const struct sl_addr *addr);

/* Whether it is in one of the two ranges, given to a name or not. */
bool sl_pool_has(const struct sl_pool *pool, const struct sl_addr *addr);

/* Place of an address in its range, from 1 on; 0: it is in none, or no name can have it. */
uint32_t sl_pool_number(const struct sl_pool *pool, const struct sl_addr *addr);

/*
 * Gives a name the address that it had in a pool before this one, lower numbers first; those
 * left out are no other name's. -EINVAL: number 0; -EEXIST: the name or the address has
 * another one; -ENOMEM.
 */
int sl_pool_restore(struct sl_pool *pool, const char *name, const struct sl_addr *addr);

/* With those left out. */
size_t sl_pool_count(const struct sl_pool *pool);
uint64_t sl_pool_refused(const struct sl_pool *pool);

#endif
