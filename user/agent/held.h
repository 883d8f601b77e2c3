/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The held calls of all sandboxes: which policy goes with which listener, and the broker that
 * answers them (broker/loop.h).
 *
 *	sl_held_new(&held, link, &err);
 *	sl_held_adopt(held, use_of, ctx);	listeners of the worker before
 *	sl_held_start(held, &err);		answers what that one left
 *	sl_held_listen(held, fd, tag, use, &err);
 *	sl_held_add(held, fd, tag, use, &err);	one more of the same sandbox
 *	sl_held_next(), sl_held_switch()	around a change of policy
 *	poll sl_held_fd(held), then while (sl_held_drained(held, &tag)) …
 *	sl_held_tick(held);
 *	sl_held_free(&held);
 *
 * Rules
 * 1. A listener is the keeper's before it is answered for, so that no worker is the last to
 *    have it; it ends with its last task, and the keeper is told then.
 * 2. Around a change of policy files are prepared for both: the guard may decide by either.
 * 3. Without a policy (its sandbox was detached) calls go on: the guard decides, if any.
 * 4. All but tag, listen, add, adopt and free are for any thread.
 * 5. A tag stands for all listeners of its sandbox: those that are added get tags of their own
 *    in the same group (broker/loop.h). So a tag that is chosen for a sandbox has no
 *    SL_BROKER_TAG_MEMBERS.
 */
#ifndef SLUICE_USER_AGENT_HELD_H
#define SLUICE_USER_AGENT_HELD_H

#include "agent/use.h"
#include "broker/keeper.h"
#include "broker/loop.h"

struct sl_held;

int sl_held_new(struct sl_held **out, struct sl_keeper_link *link, struct sl_err *err);
void sl_held_free(struct sl_held **out);

/*
 * Takes what the keeper holds. `use_of` gives the policy (counted) of a tag, NULL: none;
 * and false if the listener is to be given up.
 */
void sl_held_adopt(struct sl_held *held,
		   bool (*use_of)(void *ctx, uint64_t tag, struct sl_use **use), void *ctx);

int sl_held_start(struct sl_held *held, struct sl_err *err);

/* One that was not used since the host was started, by no worker. */
uint64_t sl_held_tag(struct sl_held *held);

/* All or nothing; *listener is taken over on success. */
int sl_held_listen(struct sl_held *held, int *listener, uint64_t tag, struct sl_use *use,
		   struct sl_err *err);

/*
 * The same for a sandbox that has one, or had: `use` is for when none is left. -ENOSPC: as
 * many as a group has room for.
 */
int sl_held_add(struct sl_held *held, int *listener, uint64_t tag, struct sl_use *use,
		struct sl_err *err);

/* Unknown tags (0, or a listener that has ended) are no error in all of these. */
void sl_held_next(struct sl_held *held, uint64_t tag, struct sl_use *use);
void sl_held_switch(struct sl_held *held, uint64_t tag, bool done); /* or back to before */
void sl_held_release(struct sl_held *held, uint64_t tag);           /* rule 3 */
bool sl_held_known(struct sl_held *held, uint64_t tag);

/* Begins a drain: how many calls are in hand, 0 for unknown tags; rest as loop.h says. */
unsigned int sl_held_drain(struct sl_held *held, uint64_t tag);
void sl_held_deny_rest(struct sl_held *held, uint64_t tag);
void sl_held_resume(struct sl_held *held, uint64_t tag);
int sl_held_fd(const struct sl_held *held);
bool sl_held_drained(struct sl_held *held, uint64_t *tag);

void sl_held_tick(struct sl_held *held);

struct sl_held_stats {
	unsigned int listeners;
	uint64_t calls, recovered, faults;
};
void sl_held_stats(struct sl_held *held, struct sl_held_stats *out);

#endif
