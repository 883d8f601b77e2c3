// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dns/lease_private.h"

/* One client has many leases: each is asked about once a sweep. */
struct sweep {
	struct sl_leases *leases;
	struct sl_htab *known; /* struct sl_lease_client -> bool; may be NULL */
};

static bool alive(struct sweep *sweep, const struct sl_lease_client *client)
{
	const struct sl_leases_options *options = &sweep->leases->options;
	struct sl_lease_client key; /* without stray bytes */
	bool added = true, *known = NULL;

	memset(&key, 0, sizeof(key));
	key.tgid = client->tgid;
	key.start_ns = client->start_ns;
	if (sweep->known)
		known = sl_htab_add(sweep->known, &key, &added);
	if (!known)
		return options->ops->client_alive(options->arg, client);
	if (added)
		*known = options->ops->client_alive(options->arg, client);
	return *known;
}

static bool any_alive(struct sweep *sweep, struct sl_lease_row *lease)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < lease->user_count; i++) {
		if (alive(sweep, &lease->users[i].client))
			lease->users[count++] = lease->users[i];
	}
	lease->user_count = count;
	return count > 0;
}

/* Marks what only a socket may still keep; false: nothing is. */
static bool mark_ending(struct sweep *sweep, int64_t now_ms)
{
	struct sl_lease_holder *holder;
	struct sl_lease_row *lease;
	bool any = false;

	TAILQ_FOREACH(holder, &sweep->leases->holders, all)
	{
		TAILQ_FOREACH(lease, &holder->leases, of_holder)
		{
			lease->ending = lease->expires_ms <= now_ms && !any_alive(sweep, lease);
			any = any || lease->ending;
		}
	}
	return any;
}

static void use(void *ctx, const struct sl_addr *addr)
{
	struct sl_leases *leases = ctx;
	struct sl_lease_holder **at = sl_htab_get(leases->by_addr, addr);

	if (at)
		(*at)->in_use = true;
}

static void mark_used(struct sl_leases *leases)
{
	const struct sl_leases_options *options = &leases->options;
	struct sl_lease_holder *holder;

	TAILQ_FOREACH(holder, &leases->holders, all)
	{
		holder->in_use = false;
	}
	if (!options->ops->addresses_in_use(options->arg, use, leases))
		return;
	TAILQ_FOREACH(holder, &leases->holders, all)
	{
		holder->in_use = true;
	}
}

static void end_leases(struct sl_leases *leases, struct sl_lease_holder *holder)
{
	struct sl_lease_row *lease, *next;
	bool changed = holder->untold;

	for (lease = TAILQ_FIRST(&holder->leases); lease; lease = next) {
		next = TAILQ_NEXT(lease, of_holder);
		if (!lease->ending || holder->in_use)
			continue;
		TAILQ_REMOVE(&holder->leases, lease, of_holder);
		holder->count--;
		sl_leases_made_up(leases, lease, -1);
		free(lease);
		leases->live--;
		leases->counts[SL_LEASES_COUNT_ENDED]++;
		changed = true;
	}
	if (changed)
		sl_leases_changed(leases, holder);
	sl_leases_drop_holder(leases, holder);
}

bool sl_leases_give_up(struct sl_leases *leases, struct sl_lease_holder *holder, int64_t now_ms)
{
	struct sl_lease_row *lease, *first = NULL;

	TAILQ_FOREACH(lease, &holder->leases, of_holder)
	{
		if (!lease->exact && lease->expires_ms <= now_ms)
			first = lease;
	}
	if (!first)
		return false;
	mark_used(leases);
	if (holder->in_use)
		return false;
	TAILQ_REMOVE(&holder->leases, first, of_holder);
	sl_leases_made_up(leases, first, -1);
	free(first);
	holder->count--;
	leases->live--;
	leases->counts[SL_LEASES_COUNT_GIVEN_UP]++;
	holder->untold = true;
	return true;
}

static int next_end(const struct sl_leases *leases, int64_t now_ms)
{
	const struct sl_lease_holder *holder;
	const struct sl_lease_row *lease;
	int64_t soonest = INT64_MAX;

	TAILQ_FOREACH(holder, &leases->holders, all)
	{
		TAILQ_FOREACH(lease, &holder->leases, of_holder)
		{
			if (lease->expires_ms > now_ms && lease->expires_ms < soonest)
				soonest = lease->expires_ms;
		}
	}
	if (soonest == INT64_MAX)
		return -1;
	return soonest - now_ms < INT_MAX ? (int)(soonest - now_ms) : INT_MAX;
}

int sl_leases_sweep(struct sl_leases *leases, int64_t now_ms)
{
	struct sweep sweep = { .leases = leases };
	struct sl_lease_holder *holder, *next;
	bool ending;

	leases->swept_ms = now_ms;
	sl_htab_new(&sweep.known, sizeof(struct sl_lease_client), sizeof(bool));
	ending = mark_ending(&sweep, now_ms);
	sl_htab_free(&sweep.known);
	if (ending)
		mark_used(leases);
	for (holder = TAILQ_FIRST(&leases->holders); holder; holder = next) {
		next = TAILQ_NEXT(holder, all);
		if (ending || holder->untold)
			end_leases(leases, holder);
	}
	return next_end(leases, now_ms);
}
