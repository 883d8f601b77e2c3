/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Workers of the agent that are killed, over and over, while calls are held. */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench.h"
#include "loops.h"
#include "report.h"

#define SANDBOXES 20
#define GROUP 0
#define LAST_MS 60000 /* for what is held at the end */
#define LOOK_MS 1

struct kill_options {
	struct sl_bench_common common;
	uint32_t seconds, every_ms;
};

static const struct sl_option kill_options[] = {
	SL_BENCH_OPTIONS(struct kill_options),
	SL_OPTION(U32, struct kill_options, seconds, "seconds", 's', "COUNT", "how long", .min = 1,
		  .max = 86400, .fallback = "10"),
	SL_OPTION(U32, struct kill_options, every_ms, "every", 0, "MS",
		  "a worker is killed when it is so old", .min = 1, .max = 60000,
		  .fallback = "100"),
	{ 0 },
};

/* Each, so long after it was first seen. */
static unsigned int kill_workers(const struct sl_loops *loops, unsigned int ms,
				 unsigned int every_ms)
{
	int64_t now_ms = sl_monotonic_ms(), end_ms = now_ms + ms, seen_ms = now_ms;
	pid_t seen = 0, worker;
	unsigned int killed = 0;

	for (; now_ms < end_ms && !sl_world_stopped(); now_ms = sl_monotonic_ms()) {
		worker = sl_daemon_worker(&loops->daemon);
		if (worker != seen) {
			seen = worker;
			seen_ms = now_ms;
		}
		if (worker > 0 && now_ms >= seen_ms + every_ms && !kill(worker, SIGKILL)) {
			killed++;
			seen_ms = end_ms;
		}
		poll(NULL, 0, LOOK_MS);
	}
	return killed;
}

static int measure(const struct sl_world *world, const struct kill_options *opt,
		   struct sl_report *report, struct sl_err *err)
{
	unsigned int ms = opt->common.quick ? 1000 : opt->seconds * 1000, killed, lost;
	_cleanup_loops_ struct sl_loops *loops = NULL;
	struct sl_callers_sum sum;
	int rc = sl_loops_new(&loops, world, err);

	rc = rc ?: sl_loops_guests(loops, GROUP, SANDBOXES, 0, 1, err);
	rc = rc ?: sl_loops_ready(loops, err);
	if (rc)
		return rc;
	sl_loops_begin(loops, 1U << GROUP);
	killed = kill_workers(loops, ms, opt->every_ms);
	lost = sl_loops_end(loops, LAST_MS);
	sl_loops_sum(loops, GROUP, &sum);
	sl_report_setting(report, "every_ms", opt->every_ms);
	sl_report_row(report, "calls", "held execs");
	sl_report_int(report, "workers_killed", killed);
	sl_report_int(report, "answered", (int64_t)sum.done);
	sl_report_int(report, "p50_us", sum.p50_us);
	sl_report_int(report, "p99_us", sum.p99_us);
	sl_report_int(report, "longest_us", (int64_t)sum.max_us);
	sl_report_equal(report, "lost: not answered in a minute", lost, 0);
	sl_report_equal(report, "wrong: ENOSYS, or what the policy does not say",
			(int64_t)sum.wrong, 0);
	if (sum.why)
		sl_report_setting(report, "why_the_latest_was_wrong", sum.why);
	sl_report_note(report,
		       "%d sandboxes; each exec is followed by a connection that is allowed "
		       "and one that is denied. The keeper waits longer from worker to "
		       "worker when they die young",
		       SANDBOXES);
	return 0;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	int rc = sl_world_new(&world, err);

	return rc ?: measure(world, options, report, err);
}

static int kill_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "kill", options, bench);
}

const struct sl_command sl_bench_kill = {
	.name = "kill",
	.summary = "kill the agent's worker over and over: held calls are answered",
	.options = kill_options,
	.options_size = sizeof(struct kill_options),
	.run = kill_run,
};
