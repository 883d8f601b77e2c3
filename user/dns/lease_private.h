/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between lease.c (the table) and lease_sweep.c (what ends). */
#ifndef SLUICE_USER_DNS_LEASE_PRIVATE_H
#define SLUICE_USER_DNS_LEASE_PRIVATE_H

#include <sys/queue.h>

#include "base/htab.h"
#include "dns/lease.h"

struct sl_lease_user {
	struct sl_lease_client client;
	uint64_t asked; /* when, as sl_leases.asked */
};

struct sl_lease_row {
	TAILQ_ENTRY(sl_lease_row) of_holder;
	struct sl_lease_holder *holder;
	int64_t expires_ms;
	uint64_t asked;
	unsigned int user_count;
	struct sl_lease_client maker; /* who asked for it first; zero: nobody known */
	bool exact;                   /* as ops->exact() said last */
	bool ending; /* found by a sweep that runs: past its TTL, and no client lives */
	struct sl_lease_user users[SL_LEASE_CLIENTS];
	char name[];
};

/* An address and its names, whoever asked last first. */
struct sl_lease_holder {
	TAILQ_ENTRY(sl_lease_holder) all;
	TAILQ_HEAD(, sl_lease_row) leases;
	struct sl_addr addr;
	size_t count, made_up; /* names; of these, not exact */
	bool in_use;           /* by a socket, at the last sweep that asked */
	bool untold; /* `changed` failed: stays, until a sweep has told that the names are gone */
};

struct sl_leases {
	struct sl_leases_options options;
	struct sl_htab *by_addr; /* struct sl_addr -> struct sl_lease_holder * */
	TAILQ_HEAD(, sl_lease_holder) holders;
	struct sl_htab *makers; /* struct sl_lease_client -> size_t: its leases that are not exact */
	size_t live;
	int64_t swept_ms;
	uint64_t asked; /* counts all that was added or renewed */
	uint64_t counts[SL_LEASES_COUNT_MAX];
};

/* One more (1) or less (-1) of the address and of who made it, if it is not exact. */
void sl_leases_made_up(struct sl_leases *leases, const struct sl_lease_row *lease, int by);

/* Tells the names that an address has now. */
int sl_leases_changed(struct sl_leases *leases, struct sl_lease_holder *holder);

/*
 * Gives up one name of an address that has too many; false: all are within their TTL, or the
 * address is in use. The guard is told with the name that comes in its place.
 */
bool sl_leases_give_up(struct sl_leases *leases, struct sl_lease_holder *holder, int64_t now_ms);

/* Frees it if it is empty and that was told. */
void sl_leases_drop_holder(struct sl_leases *leases, struct sl_lease_holder *holder);

#endif
