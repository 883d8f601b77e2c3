/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sandboxes of the agent in each of which a loop executes programs (caller.h), each exec
 * held and answered, and such loops in no sandbox; they work when their group's turn is.
 *
 *	sl_loops_new(&loops, world, &err);	starts the agent
 *	sl_loops_guests(loops, group, count, pause_us, copies, &err);	as often as needed
 *	sl_loops_plain(loops, group, count, pause_us, copies, &err);
 *	sl_loops_turn(loops, groups, ms);
 *	sl_loops_sum(loops, group, &sum);
 *	sl_loops_free(&loops);
 */
#ifndef SLUICE_BENCH_LOOPS_H
#define SLUICE_BENCH_LOOPS_H

#include "caller.h"
#include "guest.h"

#define SL_LOOPS_GROUPS 8

struct sl_loops {
	const struct sl_world *world;
	struct sl_daemon daemon;
	struct sl_callers *callers;
	int memory;
	struct sl_child server;
	uint16_t port;
	struct sl_guest guests[SL_CALLERS_MAX];
	struct sl_child plain[SL_CALLERS_MAX];
	unsigned int guest_count, plain_count, slots;
	unsigned int first[SL_LOOPS_GROUPS], count[SL_LOOPS_GROUPS]; /* slots of a group */
};

int sl_loops_new(struct sl_loops **out, const struct sl_world *world, struct sl_err *err);
void sl_loops_free(struct sl_loops **loops);
#define _cleanup_loops_ __attribute__((cleanup(sl_loops_free)))

int sl_loops_guests(struct sl_loops *loops, unsigned int group, unsigned int count,
		    unsigned int pause_us, unsigned int copies, struct sl_err *err);
int sl_loops_plain(struct sl_loops *loops, unsigned int group, unsigned int count,
		   unsigned int pause_us, unsigned int copies, struct sl_err *err);

/* Until all loops are there. */
int sl_loops_ready(struct sl_loops *loops, struct sl_err *err);

/* Zeroes the slots and gives `groups`, bits, their turn. */
void sl_loops_begin(struct sl_loops *loops, unsigned int groups);
/*
 * Ends the turn: until what was begun is done, `ms` at most; returns how many have not come
 * back by then.
 */
unsigned int sl_loops_end(struct sl_loops *loops, unsigned int ms);
/* Both, and in between so many milliseconds, or until a signal comes. */
unsigned int sl_loops_turn(struct sl_loops *loops, unsigned int groups, unsigned int ms);

void sl_loops_sum(const struct sl_loops *loops, unsigned int group, struct sl_callers_sum *out);

#endif
