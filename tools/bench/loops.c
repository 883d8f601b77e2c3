/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "loops.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define READY_MS 60000
#define LOOK_MS 5
#define END_MS 60000

int sl_loops_new(struct sl_loops **out, const struct sl_world *world, struct sl_err *err)
{
	_cleanup_loops_ struct sl_loops *loops = calloc(1, sizeof(*loops));
	int rc;

	if (!loops)
		return sl_err_sys(err, ENOMEM, "loops");
	loops->world = world;
	loops->memory = -1;
	rc = sl_callers_new(&loops->callers, &loops->memory, err);
	rc = rc ?: sl_caller_server(&loops->server, &loops->port, err);
	rc = rc ?: sl_daemon_start(&loops->daemon, world, err);
	if (rc)
		return rc;
	*out = TAKE_PTR(loops);
	return 0;
}

void sl_loops_free(struct sl_loops **out)
{
	struct sl_loops *loops = TAKE_PTR(*out);

	if (!loops)
		return;
	if (loops->callers)
		__atomic_store_n(&loops->callers->stop, 1, __ATOMIC_RELEASE);
	while (loops->plain_count)
		sl_child_stop(&loops->plain[--loops->plain_count]);
	while (loops->guest_count)
		sl_guest_clear(&loops->guests[--loops->guest_count]);
	sl_daemon_stop(&loops->daemon);
	sl_child_stop(&loops->server);
	if (loops->callers)
		sl_callers_free(&loops->callers, &loops->memory);
	free(loops);
}

/* Slots for the loops of a group, which has all its loops from one call. */
static int take_slots(struct sl_loops *loops, unsigned int group, unsigned int count,
		      unsigned int copies, struct sl_err *err)
{
	if (group >= SL_LOOPS_GROUPS || loops->slots + count * copies > SL_CALLERS_MAX)
		return sl_err_sys(err, ENOSPC, "loops");
	loops->first[group] = loops->slots;
	loops->count[group] = count * copies;
	loops->slots += count * copies;
	return 0;
}

static struct sl_caller_loop loop_of(const struct sl_loops *loops, unsigned int group,
				     unsigned int number, unsigned int pause_us,
				     unsigned int copies)
{
	return (struct sl_caller_loop){
		.fd = loops->memory,
		.slot = loops->first[group] + number * copies,
		.group = group,
		.port = loops->port,
		.pause_us = pause_us,
		.copies = copies,
	};
}

int sl_loops_guests(struct sl_loops *loops, unsigned int group, unsigned int count,
		    unsigned int pause_us, unsigned int copies, struct sl_err *err)
{
	struct sl_guest_spec spec = { .daemon = &loops->daemon,
				      .parent = loops->world->cgroup,
				      .policy = SL_GUEST_HELD,
				      .port = loops->port };
	int rc = take_slots(loops, group, count, copies, err);

	for (unsigned int i = 0; i < count && !rc; i++) {
		struct sl_caller_loop loop = loop_of(loops, group, i, pause_us, copies);
		struct sl_guest *guest = &loops->guests[loops->guest_count];
		struct sl_caller_args args;

		loop.denied = true;
		sl_caller_loop(&args, &loop);
		spec.number = loops->guest_count++;
		rc = sl_guest_open(guest, &spec, err);
		rc = rc ?: sl_guest_start(guest, args.argv, loops->memory, err);
		rc = rc ?: sl_guest_attach(guest, NULL, err);
		rc = rc ?: sl_guest_go(guest, err);
	}
	return rc;
}

int sl_loops_plain(struct sl_loops *loops, unsigned int group, unsigned int count,
		   unsigned int pause_us, unsigned int copies, struct sl_err *err)
{
	int rc = take_slots(loops, group, count, copies, err);

	for (unsigned int i = 0; i < count && !rc; i++) {
		const struct sl_caller_loop loop = loop_of(loops, group, i, pause_us, copies);

		rc = sl_caller_start(&loops->plain[loops->plain_count++], loops->world->plain,
				     &loop, err);
	}
	return rc;
}

int sl_loops_ready(struct sl_loops *loops, struct sl_err *err)
{
	int64_t end_ms = sl_monotonic_ms() + READY_MS;

	while (__atomic_load_n(&loops->callers->ready, __ATOMIC_ACQUIRE) < loops->slots) {
		if (sl_world_stopped() || sl_monotonic_ms() > end_ms)
			return sl_err_set(err, ETIMEDOUT, "%u of %u loops have begun",
					  loops->callers->ready, loops->slots);
		poll(NULL, 0, LOOK_MS);
	}
	return 0;
}

void sl_loops_begin(struct sl_loops *loops, unsigned int groups)
{
	sl_callers_reset(loops->callers);
	__atomic_store_n(&loops->callers->groups, groups, __ATOMIC_RELEASE);
}

unsigned int sl_loops_end(struct sl_loops *loops, unsigned int ms)
{
	int64_t end_ms = sl_monotonic_ms() + ms;
	struct sl_callers_sum sum;

	__atomic_store_n(&loops->callers->groups, 0, __ATOMIC_RELEASE);
	do {
		/* One that has looked just before may yet begin. */
		poll(NULL, 0, LOOK_MS);
		sl_callers_sum(loops->callers, 0, loops->slots, &sum);
	} while (sum.begun != sum.done && sl_monotonic_ms() < end_ms);
	return (unsigned int)(sum.begun - sum.done);
}

unsigned int sl_loops_turn(struct sl_loops *loops, unsigned int groups, unsigned int ms)
{
	int64_t end_ms = sl_monotonic_ms() + ms;

	sl_loops_begin(loops, groups);
	while (sl_monotonic_ms() < end_ms && !sl_world_stopped())
		poll(NULL, 0, LOOK_MS);
	return sl_loops_end(loops, END_MS);
}

void sl_loops_sum(const struct sl_loops *loops, unsigned int group, struct sl_callers_sum *out)
{
	sl_callers_sum(loops->callers, loops->first[group], loops->count[group], out);
}
