/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set that is open, and a policy in use in one of its sandboxes, both counted: the broker's
 * threads go on with what they began while the loop puts another in its place.
 *
 *	sl_agent_set_open(&set, dir, &err);	count 1
 *	sl_use_new(&use, set, apply, sandbox);	count 1, takes over apply, has a count of the set
 *	sl_use_get(use) … sl_use_put(&use)
 */
#ifndef SLUICE_USER_AGENT_USE_H
#define SLUICE_USER_AGENT_USE_H

#include <stdatomic.h>

#include "guard/apply.h"
#include "run/members.h"

struct sl_agent_set {
	atomic_uint count;
	struct sl_set *set;
	struct sl_members *members;
};

/* Errors as of sl_set_open(). */
int sl_agent_set_open(struct sl_agent_set **out, const char *dir, struct sl_err *err);
struct sl_agent_set *sl_agent_set_get(struct sl_agent_set *set);
void sl_agent_set_put(struct sl_agent_set **set);

struct sl_use {
	atomic_uint count;
	struct sl_agent_set *set;
	unsigned int sandbox;
	struct sl_apply *apply; /* NULL: it has neither names nor files to be looked at */
	bool kept;              /* it has more to be asked for: not trimmed */
};

/* -ENOMEM, and `apply` stays the caller's. */
int sl_use_new(struct sl_use **out, struct sl_agent_set *set, struct sl_apply *apply,
	       unsigned int sandbox);
/* Once the policy is in force: gives up what nobody will ask for. Before others have it. */
void sl_use_trim(struct sl_use *use);
/* What held calls are looked at by, NULL: they need not be. */
struct sl_files *sl_use_files(const struct sl_use *use);
struct sl_use *sl_use_get(struct sl_use *use); /* NULL is NULL */
void sl_use_put(struct sl_use **use);

#endif
