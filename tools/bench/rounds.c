/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rounds.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "consumer.h"
#include "faults.h"
#include "guard/guard.h"
#include "stats.h"

#define SETTLE_MS 3000

struct mode {
	const char *name;
	bool boxed;
	bool guarded;
	enum sl_filtering filtering;
	unsigned int events;
};

static const struct mode modes[SL_MODE_MAX] = {
	[SL_MODE_UNLOADED] = { .name = "unloaded" },
	[SL_MODE_BARE] = { .name = "bare" },
	[SL_MODE_ATTACHED] = { .name = "attached, no consumer", .boxed = true },
	[SL_MODE_DEFAULT] = { .name = "recording, default events",
			      .boxed = true,
			      .events = SL_CONSUMER_EVENTS },
	[SL_MODE_ALL] = { .name = "recording, all events", .boxed = true, .events = SL_EVENT_ALL },
	[SL_MODE_ENFORCED] = { .name = "enforced",
			       .boxed = true,
			       .guarded = true,
			       .events = SL_CONSUMER_EVENTS },
	[SL_MODE_FILTERED] = { .name = "enforced, filter",
			       .boxed = true,
			       .guarded = true,
			       .filtering = SL_FILTERING_PLAIN,
			       .events = SL_CONSUMER_EVENTS },
	[SL_MODE_HELD] = { .name = "enforced, held",
			   .boxed = true,
			   .guarded = true,
			   .filtering = SL_FILTERING_HELD,
			   .events = SL_CONSUMER_EVENTS },
	[SL_MODE_MINIMAL] = { .name = "bare, minimal hold", .filtering = SL_FILTERING_MINIMAL },
};

struct run {
	const struct sl_rounds *spec;
	struct sl_world *world;
	struct sl_mediated *mediated; /* NULL: no mode enforces */
	struct sl_worker workers[SL_MODE_MAX];
	enum sl_bench_mode loaded[SL_MODE_MAX]; /* those of spec that need the set */
	unsigned int loaded_count;
	struct sl_consumer consumer;
	double *samples[SL_MODE_MAX];
	unsigned long long events[SL_MODE_MAX];
	unsigned int count;          /* rounds done */
	long long missing;           /* events submitted but never read */
	struct sl_counters counters; /* of all sets that were loaded */
};

static bool has_mode(const struct run *run, unsigned int mode)
{
	return run->spec->modes & SL_MODE_BIT(mode);
}

static int start_worker(struct run *run, unsigned int mode, struct sl_err *err)
{
	enum sl_filtering filtering = modes[mode].filtering;
	struct sl_worker_spec spec = {
		.name = modes[mode].name,
		.cgroup = modes[mode].boxed ? run->world->box : run->world->plain,
		.cpu = sl_pin_worker(run->spec->pin),
		.op = run->spec->op,
		.arg = run->spec->arg,
		.arg_size = run->spec->arg_size,
		.per_turn = run->spec->per_turn,
	};
	int rc;

	if (filtering != SL_FILTERING_NONE) {
		spec.filter = sl_mediated_filter(run->mediated, filtering);
		spec.filter_flags = sl_mediated_flags(run->mediated);
	}
	rc = sl_worker_start(&run->workers[mode], &spec, err);
	if (rc || filtering == SL_FILTERING_NONE)
		return rc;
	return sl_mediated_listen(run->mediated, filtering, &run->workers[mode].listener, err);
}

static void run_clear(struct run *run)
{
	sl_consumer_clear(&run->consumer);
	for (unsigned int i = 0; i < SL_MODE_MAX; i++) {
		sl_worker_clear(&run->workers[i]);
		free(run->samples[i]);
	}
	sl_mediated_free(&run->mediated);
}

static int take_turn(struct run *run, unsigned int mode, unsigned int round, struct sl_err *err)
{
	return sl_worker_turn(&run->workers[mode], &run->samples[mode][round], err);
}

static int set_guard(struct run *run, unsigned int mode, enum sl_guard_mode to, struct sl_err *err)
{
	if (!modes[mode].guarded)
		return 0;
	return sl_guard_mode(run->world->set, run->world->sandbox, to, err);
}

/* A turn with its events; the next mode starts when the consumer has come to rest. */
static int loaded_turn(struct run *run, unsigned int mode, unsigned int round, struct sl_err *err)
{
	unsigned long long before = run->consumer.stats->read;
	int rc;

	rc = sl_set_want_events(run->world->set, modes[mode].events);
	if (rc)
		return sl_err_sys(err, -rc, "can't choose events");
	rc = set_guard(run, mode, SL_GUARD_ENFORCE, err);
	rc = rc ?: take_turn(run, mode, round, err);
	rc = rc ?: set_guard(run, mode, SL_GUARD_OBSERVE, err);
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
	unsigned int loaded = run->loaded_count;
	struct sl_counters counters;
	int rc;

	rc = sl_world_load(run->world, 0, err);
	if (!rc && run->mediated)
		rc = sl_mediated_load(run->mediated, run->world, err);
	for (unsigned int i = 0; i < loaded && !rc; i++)
		rc = sl_worker_renew(&run->workers[run->loaded[i]], err);
	if (!rc)
		rc = sl_consumer_start(&run->consumer, run->world, sl_pin_helper(run->spec->pin),
				       err);
	for (unsigned int round = from; round < to && !rc && !sl_world_stopped(); round++) {
		for (unsigned int i = 0; i < loaded && !rc; i++)
			rc = loaded_turn(run, run->loaded[(round + i) % loaded], round, err);
		if (!rc)
			run->count = round + 1;
	}
	if (!rc && !sl_counters_total(run->world->set, &counters))
		sl_faults_add(&run->counters, &counters);
	sl_consumer_stop(&run->consumer);
	if (run->mediated)
		sl_mediated_unload(run->mediated);
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
		rc = take_turn(run, run->loaded[round % run->loaded_count], round, err);
		poll(NULL, 0, 1);
		rc = rc ?: take_turn(run, SL_MODE_UNLOADED, round, err);
	}
	return rc ?: loaded_rounds(run, from, to, err);
}

static void report_mode(struct run *run, unsigned int mode, struct sl_report *report)
{
	const double *own = run->samples[mode];
	double scratch[run->count + 1], ratio, host, limit = run->spec->budgets[mode];
	size_t bytes = run->count * sizeof(double);
	char name[64];

	sl_report_row(report, "modes", modes[mode].name);
	memcpy(scratch, own, bytes);
	sl_report_float(report, "median_ns", sl_median(scratch, run->count));
	memcpy(scratch, own, bytes);
	sl_report_float(report, "mad_ns", sl_mad(scratch, run->count));
	ratio = sl_paired_ratio(own, run->samples[SL_MODE_BARE], scratch, run->count);
	sl_report_float(report, "ratio_bare", ratio);
	host = sl_paired_ratio(own, run->samples[SL_MODE_UNLOADED], scratch, run->count);
	sl_report_float(report, "ratio_unloaded", host);
	sl_report_int(report, "events", (int64_t)run->events[mode]);
	sl_report_samples(report, "samples_ns", own, run->count);
	if (mode == SL_MODE_BARE)
		sl_report_at_most(report, "outside of any sandbox / unloaded", host, 1.01);
	if (limit <= 0)
		return;
	snprintf(name, sizeof(name), "%s / bare", modes[mode].name);
	sl_report_at_most(report, name, ratio, limit);
	if (mode == SL_MODE_DEFAULT)
		sl_report_at_most(report, "recording, default events / unloaded", host, limit);
}

/* Modes that were to decide or to hold did: a ratio is nothing without it. */
static void report_work(struct run *run, struct sl_report *report)
{
	unsigned int per_turn = run->spec->per_turn;
	/* Each turn warms up, and is taken once more in a round with nothing loaded. */
	uint64_t turns = run->count, each = per_turn + per_turn / 10 + 1;

	sl_report_equal(report, "events submitted but not read", run->missing, 0);
	sl_report_equal(report, "calls denied", (int64_t)run->counters.n[SL_COUNTER_DENIED], 0);
	if (has_mode(run, SL_MODE_HELD)) {
		sl_report_equal(report, "each held call went on",
				sl_mediated_held(run->mediated) >= turns * each, 1);
		sl_report_equal(report, "faults of the broker",
				(int64_t)sl_mediated_faults(run->mediated), 0);
	}
	if (has_mode(run, SL_MODE_MINIMAL))
		sl_report_equal(report, "each call held by the minimal loop went on",
				sl_mediated_minimal(run->mediated) >= turns * each, 1);
	sl_faults_report(report, &run->counters);
}

static int run_init(struct run *run, struct sl_err *err)
{
	bool mediated = false;

	for (unsigned int i = 0; i < SL_MODE_MAX; i++) {
		run->workers[i] = (struct sl_worker)SL_WORKER_NONE;
		if (!has_mode(run, i))
			continue;
		if (i != SL_MODE_UNLOADED)
			run->loaded[run->loaded_count++] = i;
		mediated |= modes[i].guarded || modes[i].filtering != SL_FILTERING_NONE;
		run->samples[i] = calloc(run->spec->rounds, sizeof(double));
		if (!run->samples[i])
			return sl_err_sys(err, ENOMEM, "samples");
	}
	return mediated ? sl_mediated_new(&run->mediated, &run->spec->mediated, err) : 0;
}

static int start(struct run *run, struct sl_err *err)
{
	int rc = 0;

	for (unsigned int i = 0; i < SL_MODE_MAX && !rc; i++) {
		if (has_mode(run, i))
			rc = start_worker(run, i, err);
	}
	return rc || !run->mediated ? rc : sl_mediated_start(run->mediated, err);
}

int sl_rounds_run(struct sl_world *world, const struct sl_rounds *spec, struct sl_report *report,
		  struct sl_err *err)
{
	struct run run __attribute__((cleanup(run_clear))) = { .spec = spec,
							       .world = world,
							       .consumer = SL_CONSUMER_NONE };
	int rc = run_init(&run, err);

	rc = rc ?: start(&run, err);
	for (unsigned int i = 0; i < spec->segments && !rc && !sl_world_stopped(); i++)
		rc = segment(&run, spec->rounds * i / spec->segments,
			     spec->rounds * (i + 1) / spec->segments, err);
	if (rc && !(rc == -EINTR && sl_world_stopped()))
		return rc;
	sl_report_setting(report, "segments", spec->segments);
	sl_report_setting(report, "rounds", run.count);
	sl_report_setting(report, "per_round", spec->per_turn);
	sl_report_setting_text(report, "pin", sl_pin_names[spec->pin]);
	for (unsigned int i = 0; i < SL_MODE_MAX; i++) {
		if (has_mode(&run, i))
			report_mode(&run, i, report);
	}
	report_work(&run, report);
	sl_report_note(report, "'unloaded' is measured before the set is loaded, in each segment; "
			       "all others while it is loaded");
	return 0;
}
