/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of a policy as addresses: looked up by this process' resolver and told to the guard
 * as leases, since the kernel knows addresses only. Names with a wildcard can't be looked
 * up: they match when a policy DNS hands out the leases.
 *
 *	sl_names_new(&names, compiled);
 *	sl_names_refresh(names, set, policy_id, &err);	now, and from time to time
 *	sl_names_free(&names);
 *
 * Takes as long as the resolver does: not for a loop that others wait for. The compiled
 * policy is changed (classes of leases), so its user holds a lock over refresh.
 */
#ifndef SLUICE_USER_GUARD_NAMES_H
#define SLUICE_USER_GUARD_NAMES_H

#include "guard/guard.h"

/* A name whose look-up failed keeps the addresses it had. */
struct sl_names_report {
	size_t names;     /* that can be looked up */
	size_t failed;    /* of those, this time */
	size_t wildcards; /* that can't be */
	size_t addresses; /* that they have */
	size_t withheld;  /* of those, that no rule lets the name have (enum sl_withheld) */
	const char *first_withheld; /* of the compiled policy, as `policy` is */
	struct sl_addr first_addr;
	const struct sl_policy *policy;
	char first_failed[256];
	char first_error[128];
};

struct sl_names;

int sl_names_new(struct sl_names **out, struct sl_compiled *compiled);
void sl_names_free(struct sl_names **names);

/* That can be looked up: those without a wildcard. */
size_t sl_names_count(const struct sl_names *names);
/* Those with one. */
size_t sl_names_wildcards(const struct sl_names *names);

/* Looks up, without touching compiled policy or guard: may take long. 0 or -errno with err. */
int sl_names_resolve(struct sl_names *names, struct sl_names_report *report, struct sl_err *err);

/* Warns of what a report says did not work. */
void sl_names_tell(const struct sl_names_report *report);

/* Tells the guard what has changed since the last time. 0 or -errno with err. */
int sl_names_apply(struct sl_names *names, struct sl_set *set, __u32 policy_id, struct sl_err *err);

/* How often it is worth it. */
#define SL_NAMES_REFRESH_MS 30000

#endif
