/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rounds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "consumer.h"
#include "faults.h"
#include "stats.h"

#define SETTLE_MS 3000

struct mode {
	const char *name;
	bool boxed;
	unsigned int events;
};

static const struct mode modes[SL_MODE_MAX] = {
	[SL_MODE_UNLOADED] = { "unloaded", false, 0 },
	[SL_MODE_BARE] = { "bare", false, 0 },
	[SL_MODE_ATTACHED] = { "attached, no consumer", true, 0 },
	[SL_MODE_DEFAULT] = { "recording, default events", true,
			      SL_EVENT_BIT(SL_EVENT_EXEC) | SL_EVENT_BIT(SL_EVENT_EXIT) |
				      SL_EVENT_BIT(SL_EVENT_CLOSE) },
	[SL_MODE_ALL] = { "recording, all events", true, SL_EVENT_ALL },
};

/* What a worker answers. */
struct turn {
	int error;
	double ns; /* per operation */
};

struct worker {
	struct sl_child child;
	int go[2], done[2]; /* pipes */
};

struct run {
	const struct sl_rounds *spec;
	struct sl_world *world;
	struct worker workers[SL_MODE_MAX];
	struct sl_consumer consumer;
	double *samples[SL_MODE_MAX];
	unsigned long long events[SL_MODE_MAX];
	unsigned int count;          /* rounds done */
	long long missing;           /* events submitted but never read */
	struct sl_counters counters; /* of all sets that were loaded */
};

struct worker_arg {
	struct worker *worker;
	const struct sl_rounds *spec;
};

static int operate(const struct sl_rounds *spec, unsigned int count)
{
	int rc = 0;

	for (unsigned int i = 0; i < count && !rc; i++)
		rc = spec->op(spec->arg);
	return rc;
}

static int work(void *arg)
{
	const struct worker_arg *a = arg;
	const struct sl_rounds *spec = a->spec;
	struct turn turn;
	uint64_t start;
	char byte;

	close(a->worker->go[1]);
	while (read(a->worker->go[0], &byte, 1) == 1) {
		/* Caches and branch predictors see this mode first. */
		turn.error = operate(spec, spec->per_round / 10 + 1);
		start = sl_bench_now_ns();
		if (!turn.error)
			turn.error = operate(spec, spec->per_round);
		turn.ns = (double)(sl_bench_now_ns() - start) / spec->per_round;
		if (write(a->worker->done[1], &turn, sizeof(turn)) != sizeof(turn))
			return 1;
	}
	return 0;
}

static int worker_start(struct run *run, unsigned int mode, struct sl_err *err)
{
	struct worker *worker = &run->workers[mode];
	struct worker_arg arg = { worker, run->spec };
	struct sl_child_spec spec = {
		.cgroup = modes[mode].boxed ? run->world->box : run->world->plain,
		.cpu = sl_pin_worker(run->spec->pin),
		.run = work,
		.arg = &arg,
	};
	int rc;

	if (pipe2(worker->go, O_CLOEXEC) || pipe2(worker->done, O_CLOEXEC))
		return sl_err_sys(err, errno, "pipe");
	rc = sl_child_start(&worker->child, &spec, err);
	sl_cleanup_fd(&worker->done[1]);
	return rc;
}

static void run_clear(struct run *run)
{
	sl_consumer_clear(&run->consumer);
	for (unsigned int i = 0; i < SL_MODE_MAX; i++) {
		struct worker *worker = &run->workers[i];

		sl_child_stop(&worker->child);
		sl_cleanup_fd(&worker->go[0]);
		sl_cleanup_fd(&worker->go[1]);
		sl_cleanup_fd(&worker->done[0]);
		sl_cleanup_fd(&worker->done[1]);
		free(run->samples[i]);
	}
}

static int take_turn(struct run *run, unsigned int mode, unsigned int round, struct sl_err *err)
{
	struct worker *worker = &run->workers[mode];
	struct turn turn;
	ssize_t len;

	if (write(worker->go[1], "", 1) != 1)
		return sl_err_sys(err, errno, "%s: worker", modes[mode].name);
	len = read(worker->done[0], &turn, sizeof(turn));
	if (len < 0 && errno == EINTR)
		return -EINTR;
	if (len != sizeof(turn))
		return sl_err_set(err, EIO, "%s: the worker ended", modes[mode].name);
	if (turn.error)
		return sl_err_sys(err, -turn.error, "%s", modes[mode].name);
	run->samples[mode][round] = turn.ns;
	return 0;
}

/* A turn with its events; the next mode starts when the consumer has come to rest. */
static int loaded_turn(struct run *run, unsigned int mode, unsigned int round, struct sl_err *err)
{
	unsigned long long before = run->consumer.stats->read;
	int rc;

	rc = sl_set_want_events(run->world->set, modes[mode].events);
	if (rc)
		return sl_err_sys(err, -rc, "can't choose events");
	rc = take_turn(run, mode, round, err);
	if (rc)
		return rc;
	rc = sl_set_want_events(run->world->set, 0);
	if (rc)
		return sl_err_sys(err, -rc, "can't choose events");
	rc = sl_consumer_settle(&run->consumer, SETTLE_MS, &run->missing);
	if (rc && rc != -ETIMEDOUT)
		return sl_err_sys(err, -rc, "can't read counters");
	run->events[mode] += run->consumer.stats->read - before;
	return 0;
}

static int loaded_rounds(struct run *run, unsigned int from, unsigned int to, struct sl_err *err)
{
	struct sl_counters counters;
	unsigned int loaded = SL_MODE_MAX - SL_MODE_BARE;
	int rc;

	rc = sl_world_load(run->world, 0, err);
	if (!rc)
		rc = sl_consumer_start(&run->consumer, run->world, sl_pin_helper(run->spec->pin),
				       err);
	for (unsigned int round = from; round < to && !rc && !sl_world_stopped(); round++) {
		for (unsigned int i = 0; i < loaded && !rc; i++)
			rc = loaded_turn(run, SL_MODE_BARE + (round + i) % loaded, round, err);
		if (!rc)
			run->count = round + 1;
	}
	if (!rc && !sl_counters_total(run->world->set, &counters))
		sl_faults_add(&run->counters, &counters);
	sl_consumer_stop(&run->consumer);
	return rc ?: sl_world_unload(run->world, err);
}

static int segment(struct run *run, unsigned int from, unsigned int to, struct sl_err *err)
{
	int rc = 0;

	for (unsigned int round = from; round < to && !rc; round++) {
		/*
		 * Another worker and a rest come first, as in the rounds below, so that caches
		 * are as cold. Its sample is written over there.
		 */
		rc = take_turn(run, SL_MODE_BARE + round % (SL_MODE_MAX - SL_MODE_BARE), round,
			       err);
		poll(NULL, 0, 1);
		rc = rc ?: take_turn(run, SL_MODE_UNLOADED, round, err);
	}
	return rc ?: loaded_rounds(run, from, to, err);
}

static void report_modes(struct run *run, double budget, struct sl_report *report)
{
	const double *unloaded = run->samples[SL_MODE_UNLOADED];
	const double *bare = run->samples[SL_MODE_BARE];
	double scratch[run->count + 1], ratio, host;
	size_t bytes = run->count * sizeof(double);

	for (unsigned int i = 0; i < SL_MODE_MAX; i++) {
		const double *own = run->samples[i];

		sl_report_row(report, "modes", modes[i].name);
		memcpy(scratch, own, bytes);
		sl_report_float(report, "median_ns", sl_median(scratch, run->count));
		memcpy(scratch, own, bytes);
		sl_report_float(report, "mad_ns", sl_mad(scratch, run->count));
		ratio = sl_paired_ratio(own, bare, scratch, run->count);
		sl_report_float(report, "ratio_bare", ratio);
		host = sl_paired_ratio(own, unloaded, scratch, run->count);
		sl_report_float(report, "ratio_unloaded", host);
		sl_report_int(report, "events", (int64_t)run->events[i]);
		sl_report_samples(report, "samples_ns", own, run->count);
		if (i == SL_MODE_BARE)
			sl_report_at_most(report, "outside of any sandbox / unloaded", host, 1.01);
		if (i == SL_MODE_DEFAULT) {
			sl_report_at_most(report, "recording / bare", ratio, budget);
			sl_report_at_most(report, "recording / unloaded", host, budget);
		}
	}
	sl_report_equal(report, "events submitted but not read", run->missing, 0);
	sl_faults_report(report, &run->counters);
}

int sl_rounds_run(struct sl_world *world, const struct sl_rounds *spec, double budget,
		  struct sl_report *report, struct sl_err *err)
{
	struct run run __attribute__((cleanup(run_clear))) = { .spec = spec,
							       .world = world,
							       .consumer = SL_CONSUMER_NONE };
	int rc = 0;

	for (unsigned int i = 0; i < SL_MODE_MAX; i++) {
		run.workers[i] = (struct worker){ .go = { -1, -1 }, .done = { -1, -1 } };
		run.samples[i] = calloc(spec->rounds, sizeof(double));
		if (!run.samples[i])
			return sl_err_sys(err, ENOMEM, "samples");
	}
	for (unsigned int i = 0; i < SL_MODE_MAX && !rc; i++)
		rc = worker_start(&run, i, err);
	for (unsigned int i = 0; i < spec->segments && !rc && !sl_world_stopped(); i++)
		rc = segment(&run, spec->rounds * i / spec->segments,
			     spec->rounds * (i + 1) / spec->segments, err);
	if (rc && !(rc == -EINTR && sl_world_stopped()))
		return rc;
	sl_report_setting(report, "segments", spec->segments);
	sl_report_setting(report, "rounds", run.count);
	sl_report_setting(report, "per_round", spec->per_round);
	sl_report_setting_text(report, "pin", sl_pin_names[spec->pin]);
	report_modes(&run, budget, report);
	sl_report_note(report, "'unloaded' is measured before the set is loaded, in each segment; "
			       "all others while it is loaded");
	return 0;
}
