// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dns/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dns/lease_private.h"

/* A full table is not swept for each name that finds no room. */
#define SWEEP_MS 250

/*
 * How many names that are not exact a process may have for each that is free: alone three
 * quarters of all, and the next one as much of the rest.
 */
#define SHARE 3

int sl_leases_new(struct sl_leases **out, const struct sl_leases_options *options)
{
	struct sl_leases *leases = calloc(1, sizeof(*leases));
	int ret;

	if (!leases)
		return -ENOMEM;
	ret = sl_htab_new(&leases->by_addr, sizeof(struct sl_addr),
			  sizeof(struct sl_lease_holder *));
	ret = ret ?: sl_htab_new(&leases->makers, sizeof(struct sl_lease_client), sizeof(size_t));
	if (ret) {
		sl_htab_free(&leases->by_addr);
		free(leases);
		return ret;
	}
	leases->swept_ms = -SWEEP_MS;
	leases->options = *options;
	if (!leases->options.max)
		leases->options.max = SL_LEASES;
	TAILQ_INIT(&leases->holders);
	*out = leases;
	return 0;
}

void sl_leases_free(struct sl_leases **leases)
{
	struct sl_lease_holder *holder;
	struct sl_lease_row *lease;

	if (!leases || !*leases)
		return;
	while ((holder = TAILQ_FIRST(&(*leases)->holders))) {
		TAILQ_REMOVE(&(*leases)->holders, holder, all);
		while ((lease = TAILQ_FIRST(&holder->leases))) {
			TAILQ_REMOVE(&holder->leases, lease, of_holder);
			free(lease);
		}
		free(holder);
	}
	sl_htab_free(&(*leases)->by_addr);
	sl_htab_free(&(*leases)->makers);
	free(*leases);
	*leases = NULL;
}

int sl_leases_changed(struct sl_leases *leases, struct sl_lease_holder *holder)
{
	_cleanup_free_ const char **names = NULL;
	size_t room = 1, count = 0;
	struct sl_lease_row *lease;
	int ret = -ENOMEM;

	TAILQ_FOREACH(lease, &holder->leases, of_holder)
	{
		room++;
	}
	names = calloc(room, sizeof(*names));
	if (names) {
		TAILQ_FOREACH(lease, &holder->leases, of_holder)
		{
			names[count++] = lease->name;
		}
		ret = leases->options.ops->changed(leases->options.arg, &holder->addr, names,
						   count);
	}
	holder->untold = ret != 0;
	return ret;
}

static struct sl_lease_holder *find_holder(const struct sl_leases *leases,
					   const struct sl_addr *addr)
{
	struct sl_lease_holder **at = sl_htab_get(leases->by_addr, addr);

	return at ? *at : NULL;
}

static struct sl_lease_holder *get_holder(struct sl_leases *leases, const struct sl_addr *addr)
{
	struct sl_lease_holder *holder = find_holder(leases, addr), **at;

	if (holder)
		return holder;
	holder = calloc(1, sizeof(*holder));
	if (!holder)
		return NULL;
	at = sl_htab_add(leases->by_addr, addr, NULL);
	if (!at) {
		free(holder);
		return NULL;
	}
	*at = holder;
	holder->addr = *addr;
	TAILQ_INIT(&holder->leases);
	TAILQ_INSERT_TAIL(&leases->holders, holder, all);
	return holder;
}

void sl_leases_drop_holder(struct sl_leases *leases, struct sl_lease_holder *holder)
{
	if (!TAILQ_EMPTY(&holder->leases) || holder->untold)
		return;
	sl_htab_del(leases->by_addr, &holder->addr);
	TAILQ_REMOVE(&leases->holders, holder, all);
	free(holder);
}

static struct sl_lease_row *find_lease(const struct sl_lease_holder *holder, const char *name)
{
	struct sl_lease_row *lease;

	TAILQ_FOREACH(lease, &holder->leases, of_holder)
	{
		if (!strcmp(lease->name, name))
			return lease;
	}
	return NULL;
}

static bool same_client(const struct sl_lease_client *a, const struct sl_lease_client *b)
{
	return a->tgid == b->tgid && a->start_ns == b->start_ns;
}

/* The place of a client: its own, a free one, one of the dead, or that of who asked first. */
static struct sl_lease_user *place_of(struct sl_leases *leases, struct sl_lease_row *lease,
				      const struct sl_lease_client *client)
{
	const struct sl_leases_options *options = &leases->options;
	struct sl_lease_user *oldest = &lease->users[0];

	for (unsigned int i = 0; i < lease->user_count; i++) {
		if (same_client(&lease->users[i].client, client))
			return &lease->users[i];
		if (lease->users[i].asked < oldest->asked)
			oldest = &lease->users[i];
	}
	if (lease->user_count < SL_LEASE_CLIENTS)
		return &lease->users[lease->user_count++];
	for (unsigned int i = 0; i < lease->user_count; i++) {
		if (!options->ops->client_alive(options->arg, &lease->users[i].client))
			return &lease->users[i];
	}
	leases->counts[SL_LEASES_COUNT_FORGOT]++;
	return oldest;
}

static void renew(struct sl_leases *leases, struct sl_lease_row *lease, int64_t expires_ms,
		  const struct sl_lease_client *client)
{
	struct sl_lease_holder *holder = lease->holder;

	if (expires_ms > lease->expires_ms)
		lease->expires_ms = expires_ms;
	lease->asked = ++leases->asked;
	if (client && client->tgid)
		*place_of(leases, lease, client) =
			(struct sl_lease_user){ .client = *client, .asked = lease->asked };
	TAILQ_REMOVE(&holder->leases, lease, of_holder);
	TAILQ_INSERT_HEAD(&holder->leases, lease, of_holder);
}

void sl_leases_made_up(struct sl_leases *leases, const struct sl_lease_row *lease, int by)
{
	size_t *own;

	if (lease->exact)
		return;
	lease->holder->made_up += (size_t)by;
	if (!lease->maker.tgid)
		return;
	/* Without memory it is not counted, up or down. */
	own = by > 0 ? sl_htab_add(leases->makers, &lease->maker, NULL)
		     : sl_htab_get(leases->makers, &lease->maker);
	if (own && (by > 0 || *own))
		*own += (size_t)by;
	if (own && !*own)
		sl_htab_del(leases->makers, &lease->maker);
}

static int add_lease(struct sl_leases *leases, const char *name, const struct sl_addr *addr,
		     bool exact, const struct sl_lease_client *client, struct sl_lease_row **out)
{
	size_t len = strlen(name) + 1;
	struct sl_lease_holder *holder = get_holder(leases, addr);
	struct sl_lease_row *lease;
	int ret = -ENOMEM;

	if (!holder)
		return -ENOMEM;
	lease = calloc(1, sizeof(*lease) + len);
	if (!lease)
		goto out;
	memcpy(lease->name, name, len);
	lease->exact = exact;
	lease->holder = holder;
	if (client) {
		lease->maker.tgid = client->tgid;
		lease->maker.start_ns = client->start_ns;
	}
	TAILQ_INSERT_HEAD(&holder->leases, lease, of_holder);
	ret = sl_leases_changed(leases, holder);
	if (ret) {
		TAILQ_REMOVE(&holder->leases, lease, of_holder);
		goto out;
	}
	holder->count++;
	sl_leases_made_up(leases, lease, 1);
	leases->live++;
	*out = lease;
	return 0;
out:
	free(lease);
	sl_leases_drop_holder(leases, holder);
	return ret;
}

static bool is_exact(const struct sl_leases *leases, const char *name)
{
	const struct sl_leases_options *options = &leases->options;

	return options->ops->exact && options->ops->exact(options->arg, name);
}

static bool has_share(const struct sl_leases *leases, const struct sl_lease_client *client,
		      size_t left)
{
	struct sl_lease_client key; /* without stray bytes */
	const size_t *own;

	if (!client || !client->tgid)
		return true;
	memset(&key, 0, sizeof(key));
	key.tgid = client->tgid;
	key.start_ns = client->start_ns;
	own = sl_htab_get(leases->makers, &key);
	return !own || *own < SHARE * left;
}

/* Whether there is room for one more name, in all and of the address, which may have none. */
static bool has_room(const struct sl_leases *leases, const struct sl_lease_holder *holder,
		     bool exact, const struct sl_lease_client *client)
{
	size_t max = leases->options.max, made_up = max - max / 8;

	if (exact)
		return leases->live < max;
	return leases->live < made_up && (!holder || holder->made_up < SL_LEASE_NAMES) &&
	       has_share(leases, client, made_up - leases->live);
}

/* The same, once what may go is gone: -EDQUOT when the address has too many, else -ENOSPC. */
static int make_room(struct sl_leases *leases, const struct sl_addr *addr, bool exact,
		     const struct sl_lease_client *client, int64_t now_ms)
{
	struct sl_lease_holder *holder = find_holder(leases, addr);

	if (has_room(leases, holder, exact, client))
		return 0;
	if (now_ms - leases->swept_ms >= SWEEP_MS)
		sl_leases_sweep(leases, now_ms);
	holder = find_holder(leases, addr);
	if (has_room(leases, holder, exact, client))
		return 0;
	if (exact || !holder || holder->made_up < SL_LEASE_NAMES)
		return -ENOSPC;
	if (!sl_leases_give_up(leases, holder, now_ms))
		return -EDQUOT;
	return has_room(leases, holder, exact, client) ? 0 : -ENOSPC;
}

int sl_leases_add(struct sl_leases *leases, const char *name, const struct sl_addr *addr,
		  uint32_t ttl_s, const struct sl_lease_client *client, int64_t now_ms)
{
	int64_t expires_ms = now_ms + (ttl_s < SL_LEASE_MAX_S ? ttl_s : SL_LEASE_MAX_S) * 1000LL;
	struct sl_lease_holder *holder = find_holder(leases, addr);
	struct sl_lease_row *lease = holder ? find_lease(holder, name) : NULL;
	bool exact;
	int ret;

	if (strlen(name) >= SL_LEASE_NAME)
		return -ENAMETOOLONG;
	if (expires_ms < now_ms + SL_LEASE_MIN_MS)
		expires_ms = now_ms + SL_LEASE_MIN_MS;
	exact = is_exact(leases, name);
	if (!lease) {
		ret = make_room(leases, addr, exact, client, now_ms);
		ret = ret ?: add_lease(leases, name, addr, exact, client, &lease);
		if (ret) {
			leases->counts[SL_LEASES_COUNT_FULL] += ret == -ENOSPC || ret == -EDQUOT;
			return ret;
		}
		leases->counts[SL_LEASES_COUNT_ADDED]++;
	} else {
		leases->counts[SL_LEASES_COUNT_RENEWED]++;
		sl_leases_made_up(leases, lease, -1);
		lease->exact = exact;
		sl_leases_made_up(leases, lease, 1);
	}
	renew(leases, lease, expires_ms, client);
	return 0;
}

bool sl_leases_name(const struct sl_leases *leases, const struct sl_addr *addr,
		    const struct sl_lease_client *client, char *name)
{
	const struct sl_lease_holder *holder = find_holder(leases, addr);
	const struct sl_lease_row *lease, *best = holder ? TAILQ_FIRST(&holder->leases) : NULL;
	uint64_t asked = 0;

	if (!best)
		return false;
	TAILQ_FOREACH(lease, &holder->leases, of_holder)
	{
		for (unsigned int i = 0; client && i < lease->user_count; i++) {
			if (!same_client(&lease->users[i].client, client) ||
			    lease->users[i].asked <= asked)
				continue;
			asked = lease->users[i].asked;
			best = lease;
		}
	}
	memcpy(name, best->name, strlen(best->name) + 1);
	return true;
}

int sl_leases_tell(struct sl_leases *leases)
{
	struct sl_lease_holder *holder;
	int first = 0, ret;

	TAILQ_FOREACH(holder, &leases->holders, all)
	{
		ret = sl_leases_changed(leases, holder);
		first = first ?: ret;
	}
	return first;
}

int sl_leases_each(const struct sl_leases *leases,
		   int (*row)(const struct sl_lease *lease, void *arg), void *arg)
{
	const struct sl_lease_holder *holder;
	const struct sl_lease_row *lease;
	int ret;

	TAILQ_FOREACH(holder, &leases->holders, all)
	{
		TAILQ_FOREACH(lease, &holder->leases, of_holder)
		{
			ret = row(&(struct sl_lease){ .name = lease->name,
						      .addr = holder->addr,
						      .expires_ms = lease->expires_ms,
						      .clients = lease->user_count,
						      .in_use = holder->in_use },
				  arg);
			if (ret)
				return ret;
		}
	}
	return 0;
}

uint64_t sl_leases_count(const struct sl_leases *leases, enum sl_leases_count which)
{
	return which < SL_LEASES_COUNT_MAX ? leases->counts[which] : 0;
}

size_t sl_leases_live(const struct sl_leases *leases)
{
	return leases->live;
}
