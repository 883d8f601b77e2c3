/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attaching and detaching through the agent, and what the agent is while nothing happens. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bench.h"
#include "guest.h"
#include "proc.h"
#include "report.h"
#include "stats.h"

#define ROUNDS_MAX 1000
#define POLICIES SL_GUEST_HELD /* those that need no process in the sandbox */
#define IDLE_SANDBOXES 100
#define RSS_BUDGET_KIB (16 * 1024)
#define WAKEUPS_BUDGET 1.0 /* a second: one timer */
#define GROWTH_BUDGET 2.0

struct attach_options {
	struct sl_bench_common common;
	uint32_t rounds, idle_s;
};

static const struct sl_option attach_options[] = {
	SL_BENCH_OPTIONS(struct attach_options),
	SL_OPTION(U32, struct attach_options, rounds, "rounds", 'n', "COUNT",
		  "attached and detached under each policy", .min = 1, .max = ROUNDS_MAX,
		  .fallback = "30"),
	SL_OPTION(U32, struct attach_options, idle_s, "idle", 0, "SECONDS",
		  "how long an idle agent is watched", .min = 1, .max = 3600, .fallback = "20"),
	{ 0 },
};

/* --- sandboxes that are there --- */

struct crowd {
	struct sl_guest_spec spec; /* `number` is the next one's */
	struct sl_guest *guests;
	unsigned int count;
};

static int crowd_new(struct crowd *crowd, const struct sl_daemon *daemon,
		     const struct sl_world *world, unsigned int max)
{
	*crowd = (struct crowd){ .spec = { .daemon = daemon, .parent = world->cgroup, .port = 1 } };
	crowd->guests = calloc(max, sizeof(*crowd->guests));
	return crowd->guests ? 0 : -ENOMEM;
}

static void crowd_free(struct crowd *crowd)
{
	while (crowd->count)
		sl_guest_clear(&crowd->guests[--crowd->count]);
	free(crowd->guests);
}

static int attach_one(struct crowd *crowd, struct sl_guest *guest, enum sl_guest_policy policy,
		      double *ms, struct sl_err *err)
{
	int rc;

	crowd->spec.number++;
	crowd->spec.policy = policy;
	rc = sl_guest_open(guest, &crowd->spec, err);
	return rc ?: sl_guest_attach(guest, ms, err);
}

/* `policy` SL_GUEST_POLICY_MAX: each in turn. */
static int crowd_grow(struct crowd *crowd, unsigned int count, enum sl_guest_policy policy,
		      struct sl_err *err)
{
	int rc = 0;

	while (!rc && crowd->count < count) {
		if (sl_world_stopped())
			return sl_err_sys(err, EINTR, "attach");
		rc = attach_one(crowd, &crowd->guests[crowd->count],
				policy < SL_GUEST_POLICY_MAX ? policy : crowd->count % POLICIES,
				NULL, err);
		crowd->count++;
	}
	return rc;
}

/* --- how long it takes --- */

struct times {
	double attach[POLICIES][ROUNDS_MAX], detach[POLICIES][ROUNDS_MAX];
};

static int take_times(struct crowd *crowd, unsigned int rounds, struct times *times,
		      struct sl_err *err)
{
	int rc = 0;

	for (unsigned int i = 0; i < rounds && !rc; i++) {
		for (unsigned int p = 0; p < POLICIES && !rc; p++) {
			struct sl_guest guest = SL_GUEST_NONE;

			rc = attach_one(crowd, &guest, p, &times->attach[p][i], err);
			rc = rc ?: sl_guest_detach(&guest, &times->detach[p][i], err);
			sl_guest_clear(&guest);
		}
	}
	return rc;
}

static void report_times(struct sl_report *report, unsigned int there, unsigned int rounds,
			 struct times *times, double *sum)
{
	double attach, detach;
	char name[64];

	*sum = 0;
	for (unsigned int p = 0; p < POLICIES; p++) {
		snprintf(name, sizeof(name), "%s, %u there", sl_guest_policies[p], there);
		sl_report_row(report, "times", name);
		attach = sl_median(times->attach[p], rounds);
		detach = sl_median(times->detach[p], rounds);
		sl_report_float(report, "attach_ms", attach);
		/* Sorted by the median. */
		sl_report_float(report, "attach_p90_ms", times->attach[p][rounds * 9 / 10]);
		sl_report_float(report, "detach_ms", detach);
		sl_report_float(report, "detach_p90_ms", times->detach[p][rounds * 9 / 10]);
		*sum += attach + detach;
	}
}

static int measure_times(const struct sl_world *world, const struct attach_options *opt,
			 struct sl_report *report, struct sl_err *err)
{
	const unsigned int levels[] = { 1, 100, opt->common.quick ? 120 : 1000 };
	unsigned int rounds = opt->common.quick ? 3 : opt->rounds;
	_cleanup_daemon_ struct sl_daemon daemon = { 0 };
	__attribute__((cleanup(crowd_free))) struct crowd crowd = { 0 };
	_cleanup_free_ struct times *times = malloc(sizeof(*times));
	double sums[ARRAY_SIZE(levels)];
	int rc = sl_daemon_start(&daemon, world, err);

	if (rc)
		return rc;
	if (!times || crowd_new(&crowd, &daemon, world, levels[ARRAY_SIZE(levels) - 1]))
		return sl_err_sys(err, ENOMEM, "sandboxes");
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		rc = crowd_grow(&crowd, levels[i], SL_GUEST_POLICY_MAX, err);
		rc = rc ?: take_times(&crowd, rounds, times, err);
		if (rc)
			return rc;
		report_times(report, levels[i], rounds, times, &sums[i]);
	}
	sl_report_at_most(report, "attach + detach, with the most / with one there",
			  sums[ARRAY_SIZE(levels) - 1] / sums[0], GROWTH_BUDGET);
	return 0;
}

/* --- what it is --- */

static void wait_s(unsigned int seconds)
{
	int64_t end_ms = sl_monotonic_ms() + seconds * 1000LL;

	while (sl_monotonic_ms() < end_ms && !sl_world_stopped())
		poll(NULL, 0, 100);
}

static void watch_idle(const struct sl_daemon *daemon, enum sl_guest_policy policy,
		       unsigned int seconds, struct sl_report *report)
{
	pid_t keeper = daemon->keeper.pid, worker = sl_daemon_worker(daemon);
	uint64_t waits = sl_proc_waits(worker) + sl_proc_waits(keeper);
	double a_second;
	int64_t rss;
	char name[96];

	wait_s(seconds);
	a_second = (double)(sl_proc_waits(worker) + sl_proc_waits(keeper) - waits) / seconds;
	rss = (int64_t)(sl_proc_rss_bytes(worker) + sl_proc_rss_bytes(keeper)) >> 10;
	sl_report_row(report, "idle", sl_guest_policies[policy]);
	sl_report_int(report, "worker_kib", (int64_t)sl_proc_rss_bytes(worker) >> 10);
	sl_report_int(report, "keeper_kib", (int64_t)sl_proc_rss_bytes(keeper) >> 10);
	sl_report_float(report, "wakeups_a_second", a_second);
	snprintf(name, sizeof(name), "%s: RSS of worker and keeper, KiB, %u sandboxes",
		 sl_guest_policies[policy], IDLE_SANDBOXES);
	sl_report_at_most(report, name, (double)rss, RSS_BUDGET_KIB);
	snprintf(name, sizeof(name), "%s: wake-ups a second, %u sandboxes",
		 sl_guest_policies[policy], IDLE_SANDBOXES);
	sl_report_at_most(report, name, a_second, WAKEUPS_BUDGET);
}

static int measure_idle(const struct sl_world *world, enum sl_guest_policy policy,
			unsigned int seconds, struct sl_report *report, struct sl_err *err)
{
	_cleanup_daemon_ struct sl_daemon daemon = { 0 };
	__attribute__((cleanup(crowd_free))) struct crowd crowd = { 0 };
	int rc = sl_daemon_start(&daemon, world, err);

	if (rc)
		return rc;
	if (crowd_new(&crowd, &daemon, world, IDLE_SANDBOXES))
		return sl_err_sys(err, ENOMEM, "sandboxes");
	rc = crowd_grow(&crowd, IDLE_SANDBOXES, policy, err);
	if (!rc)
		watch_idle(&daemon, policy, seconds, report);
	return rc;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	const struct attach_options *opt = options;
	_cleanup_world_ struct sl_world *world = NULL;
	int rc = sl_world_new(&world, err);

	rc = rc ?: measure_times(world, opt, report, err);
	for (enum sl_guest_policy p = 0; p < POLICIES && !rc; p++)
		rc = measure_idle(world, p, opt->common.quick ? 2 : opt->idle_s, report, err);
	if (rc)
		return rc;
	sl_report_note(report, "from the call to its answer, the cgroup made before; the set is "
			       "loaded, another sandbox there");
	return 0;
}

static int attach_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "attach", options, bench);
}

const struct sl_command sl_bench_attach = {
	.name = "attach",
	.summary = "attach and detach with 1, 100 and 1,000 sandboxes; the agent while idle",
	.options = attach_options,
	.options_size = sizeof(struct attach_options),
	.run = attach_run,
};
