/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fifty busy sandboxes of the agent, and one that floods it. */
#include <errno.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "bench.h"
#include "loops.h"
#include "report.h"
#include "stats.h"

#define SANDBOXES 50
#define OTHERS 12
#define OTHERS_PAUSE_US 20000
#define FLOOD 8 /* processes of the one that floods */
#define ROUNDS_MAX 100
#define BUSY_BUDGET 1.5
#define FLOOD_BUDGET 1.5

enum group { GROUP_GUESTS, GROUP_PLAIN, GROUP_OTHERS, GROUP_FLOOD, GROUP_FLOOD_PLAIN, GROUP_MAX };

struct busy_options {
	struct sl_bench_common common;
	uint32_t rounds, turn_ms;
};

static const struct sl_option busy_options[] = {
	SL_BENCH_OPTIONS(struct busy_options),
	SL_OPTION(U32, struct busy_options, rounds, "rounds", 'n', "COUNT", "turns of each kind",
		  .min = 1, .max = ROUNDS_MAX, .fallback = "7"),
	SL_OPTION(U32, struct busy_options, turn_ms, "turn", 0, "MS", "how long a turn is",
		  .min = 100, .max = 600000, .fallback = "2000"),
	{ 0 },
};

/* Turns, in this order in each round. */
enum turn { TURN_PLAIN, TURN_GUESTS, TURN_QUIET, TURN_FLOOD_PLAIN, TURN_FLOOD, TURN_MAX };

static const struct {
	const char *name;
	unsigned int groups;
	enum group shown;
} turns[TURN_MAX] = {
	[TURN_PLAIN] = { "50 loops, in no sandbox", 1U << GROUP_PLAIN, GROUP_PLAIN },
	[TURN_GUESTS] = { "50 loops, a sandbox each", 1U << GROUP_GUESTS, GROUP_GUESTS },
	[TURN_QUIET] = { "12 at times, nobody else", 1U << GROUP_OTHERS, GROUP_OTHERS },
	[TURN_FLOOD_PLAIN] = { "12 at times, 8 loops in no sandbox",
			       1U << GROUP_OTHERS | 1U << GROUP_FLOOD_PLAIN, GROUP_OTHERS },
	[TURN_FLOOD] = { "12 at times, 8 loops in a sandbox",
			 1U << GROUP_OTHERS | 1U << GROUP_FLOOD, GROUP_OTHERS },
};

struct result {
	double rate[TURN_MAX][ROUNDS_MAX], p50[TURN_MAX][ROUNDS_MAX], p99[TURN_MAX][ROUNDS_MAX];
	double max[TURN_MAX];
	uint64_t done, wrong, lost;
	unsigned int rounds;
	int why;
};

static void take_turn(struct sl_loops *loops, enum turn turn, unsigned int ms, struct result *r)
{
	uint64_t start = sl_bench_now_ns();
	struct sl_callers_sum sum, all;
	double seconds;

	r->lost += sl_loops_turn(loops, turns[turn].groups, ms);
	seconds = (double)(sl_bench_now_ns() - start) / 1e9;
	sl_loops_sum(loops, turns[turn].shown, &sum);
	r->rate[turn][r->rounds] = (double)sum.done / seconds;
	r->p50[turn][r->rounds] = sum.p50_us;
	r->p99[turn][r->rounds] = sum.p99_us;
	if ((double)sum.max_us > r->max[turn])
		r->max[turn] = (double)sum.max_us;
	sl_callers_sum(loops->callers, 0, loops->slots, &all);
	r->done += all.done;
	r->wrong += all.wrong;
	r->why = all.why ? all.why : r->why;
}

static int start(struct sl_loops *loops, struct sl_err *err)
{
	int rc = sl_loops_guests(loops, GROUP_GUESTS, SANDBOXES, 0, 1, err);

	rc = rc ?: sl_loops_plain(loops, GROUP_PLAIN, SANDBOXES, 0, 1, err);
	rc = rc ?: sl_loops_guests(loops, GROUP_OTHERS, OTHERS, OTHERS_PAUSE_US, 1, err);
	rc = rc ?: sl_loops_guests(loops, GROUP_FLOOD, 1, 0, FLOOD, err);
	rc = rc ?: sl_loops_plain(loops, GROUP_FLOOD_PLAIN, 1, 0, FLOOD, err);
	return rc ?: sl_loops_ready(loops, err);
}

static void report_result(struct sl_report *report, struct result *r)
{
	double scratch[ROUNDS_MAX];
	double slower =
		sl_paired_ratio(r->rate[TURN_PLAIN], r->rate[TURN_GUESTS], scratch, r->rounds);
	double later =
		sl_paired_ratio(r->p99[TURN_FLOOD], r->p99[TURN_FLOOD_PLAIN], scratch, r->rounds);

	for (enum turn t = 0; t < TURN_MAX; t++) {
		sl_report_row(report, "turns", turns[t].name);
		sl_report_float(report, "a_second", sl_median(r->rate[t], r->rounds));
		sl_report_float(report, "p50_us", sl_median(r->p50[t], r->rounds));
		sl_report_float(report, "p99_us", sl_median(r->p99[t], r->rounds));
		sl_report_float(report, "longest_us", r->max[t]);
	}
	sl_report_at_most(report, "time of one, in 50 sandboxes / in none", slower, BUSY_BUDGET);
	sl_report_at_most(report, "p99 of the others, flood in a sandbox / in none", later,
			  FLOOD_BUDGET);
	sl_report_equal(report, "executions that did not come back", (int64_t)r->lost, 0);
	sl_report_equal(report, "executions that ended wrongly", (int64_t)r->wrong, 0);
	if (r->why)
		sl_report_setting(report, "why_the_latest_was_wrong", r->why);
	sl_report_setting(report, "executions", (int64_t)r->done);
	sl_report_note(report,
		       "one execution: an exec that the agent holds and answers, a connection "
		       "that is allowed and one that is denied, and told");
}

static int measure(const struct sl_world *world, const struct busy_options *opt,
		   struct sl_report *report, struct sl_err *err)
{
	unsigned int rounds = opt->common.quick ? 1 : opt->rounds;
	unsigned int ms = opt->common.quick ? 300 : opt->turn_ms;
	_cleanup_free_ struct result *result = calloc(1, sizeof(*result));
	_cleanup_loops_ struct sl_loops *loops = NULL;
	int rc = result ? sl_loops_new(&loops, world, err) : sl_err_sys(err, ENOMEM, "busy");

	rc = rc ?: start(loops, err);
	if (rc)
		return rc;
	for (; result->rounds < rounds && !sl_world_stopped(); result->rounds++) {
		for (enum turn t = 0; t < TURN_MAX; t++)
			take_turn(loops, t, ms, result);
	}
	report_result(report, result);
	return 0;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	int rc = sl_world_new(&world, err);

	return rc ?: measure(world, options, report, err);
}

static int busy_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "busy", options, bench);
}

const struct sl_command sl_bench_busy = {
	.name = "busy",
	.summary = "50 sandboxes whose execs the agent answers, and one that floods it",
	.options = busy_options,
	.options_size = sizeof(struct busy_options),
	.run = busy_run,
};
