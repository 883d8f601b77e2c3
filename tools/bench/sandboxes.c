/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sandboxes that are made, used once and destroyed, through the agent: what is left of them? */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "bench.h"
#include "caller.h"
#include "guest.h"
#include "proc.h"
#include "report.h"
#include "sandboxes_left.h"

#define JOBS_MAX 32
#define CALLER_MS 60000
#define GROWTH_BUDGET 1.05
/* Of the whole that is counted before the rest is compared with it. */
#define WARM_SHARE 10

struct sandboxes_options {
	struct sl_bench_common common;
	uint32_t count, jobs;
};

static const struct sl_option sandboxes_options[] = {
	SL_BENCH_OPTIONS(struct sandboxes_options),
	SL_OPTION(U32, struct sandboxes_options, count, "count", 'n', "COUNT", "sandboxes",
		  .min = 20, .max = 10000000, .fallback = "10000"),
	SL_OPTION(U32, struct sandboxes_options, jobs, "jobs", 0, "COUNT", "at a time", .min = 1,
		  .max = JOBS_MAX, .fallback = "4"),
	{ 0 },
};

struct progress {
	uint32_t next, limit;
	uint32_t done, failed;
};

struct run {
	struct sl_daemon *daemon;
	const struct sl_world *world;
	struct progress *progress; /* shared */
	uint16_t port;
	unsigned int jobs;
};

/* --- in a job --- */

static int use(struct sl_guest *g, const struct sl_guest_spec *spec, struct sl_err *err)
{
	struct sl_caller_args args;
	int status, rc;

	sl_caller_once(&args, spec->port, spec->policy != SL_GUEST_OBSERVE);
	rc = sl_guest_open(g, spec, err);
	rc = rc ?: sl_guest_start(g, args.argv, -1, err);
	rc = rc ?: sl_guest_attach(g, NULL, err);
	rc = rc ?: sl_guest_go(g, err);
	if (rc)
		return rc;
	if (sl_child_wait(&g->child, CALLER_MS, &status))
		return sl_err_set(err, ETIMEDOUT, "sandbox %u: its process hangs", spec->number);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return sl_err_set(err, EPROTO,
				  "sandbox %u (%s): its connections ended wrongly: status %x",
				  spec->number, sl_guest_policies[spec->policy], status);
	return sl_guest_detach(g, NULL, err);
}

static int job_main(void *arg)
{
	const struct run *run = arg;
	struct progress *p = run->progress;
	struct sl_guest_spec spec = { .daemon = run->daemon,
				      .parent = run->world->cgroup,
				      .port = run->port };
	struct sl_guest guest = SL_GUEST_NONE;
	uint32_t n;

	while ((n = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->limit) {
		struct sl_err err = { 0 };

		spec.number = n;
		spec.policy = n % SL_GUEST_POLICY_MAX;
		if (use(&guest, &spec, &err)) {
			sl_log_err(SL_LOG_ERROR, &err);
			__atomic_add_fetch(&p->failed, 1, __ATOMIC_RELAXED);
		}
		sl_guest_clear(&guest);
		__atomic_add_fetch(&p->done, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

/* --- here --- */

/* Uses sandboxes up to number `limit`, several at a time. */
static int use_until(struct run *run, uint32_t limit, struct sl_err *err)
{
	const struct sl_child_spec spec = { .cpu = -1, .run = job_main, .arg = run };
	struct sl_child jobs[JOBS_MAX] = { 0 };
	struct progress *p = run->progress;
	int status, rc = 0;

	p->next = p->done;
	p->limit = limit;
	for (unsigned int i = 0; i < run->jobs && !rc; i++)
		rc = sl_child_start(&jobs[i], &spec, err);
	for (unsigned int i = 0; i < run->jobs; i++) {
		while (jobs[i].pid && sl_child_wait(&jobs[i], 1000, &status) == -ETIMEDOUT) {
			if (sl_world_stopped())
				p->limit = 0;
		}
	}
	return rc;
}

static void report_memory(struct sl_report *report, const struct sl_left *base,
			  const struct sl_left *end)
{
	const struct {
		const char *name;
		uint64_t base, end;
	} rows[] = { { "worker", base->worker_bytes, end->worker_bytes },
		     { "keeper", base->keeper_bytes, end->keeper_bytes } };
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		sl_report_row(report, "memory", rows[i].name);
		sl_report_int(report, "kib_early", (int64_t)(rows[i].base >> 10));
		sl_report_int(report, "kib_end", (int64_t)(rows[i].end >> 10));
		snprintf(name, sizeof(name), "%s: own memory at the end / early", rows[i].name);
		sl_report_at_most(report, name, (double)rows[i].end / (double)(rows[i].base ?: 1),
				  GROWTH_BUDGET);
	}
}

static int measure(struct run *run, const struct sandboxes_options *opt, struct sl_report *report,
		   struct sl_err *err)
{
	uint32_t count = opt->common.quick ? 200 : opt->count, warm = count / WARM_SHARE;
	struct sl_left base, end;
	int64_t start_ms;
	double seconds;
	int rc = use_until(run, warm, err);

	rc = rc ?: sl_left_read(&base, run->daemon, run->world, NULL, err);
	start_ms = sl_monotonic_ms();
	rc = rc ?: use_until(run, count, err);
	seconds = (double)(sl_monotonic_ms() - start_ms) / 1000;
	rc = rc ?: sl_left_read(&end, run->daemon, run->world, &base, err);
	if (rc)
		return rc;
	sl_report_setting(report, "sandboxes", run->progress->done);
	sl_report_setting(report, "jobs", run->jobs);
	sl_report_note(report,
		       "%u sandboxes, %u at a time, after %u of %u; %.1f a second: a cgroup, a "
		       "process that connects twice, its policy one of four",
		       run->progress->done - warm, run->jobs, warm, count,
		       (double)(run->progress->done - warm) / seconds);
	sl_report_equal(report, "sandboxes that failed", run->progress->failed, 0);
	sl_report_equal(report, "sandboxes used", run->progress->done, count);
	sl_left_report(report, &base, &end);
	report_memory(report, &base, &end);
	return 0;
}

static int run_in(struct sl_world *world, const struct sandboxes_options *opt,
		  struct sl_report *report, struct sl_err *err)
{
	_cleanup_daemon_ struct sl_daemon daemon = { 0 };
	__attribute__((cleanup(sl_guest_clear))) struct sl_guest anchor = SL_GUEST_NONE;
	struct sl_guest_spec spec = { .daemon = &daemon,
				      .parent = world->cgroup,
				      .number = UINT32_MAX };
	struct sl_child server = { 0 };
	struct run run = { .daemon = &daemon, .world = world, .jobs = opt->jobs };
	void *memory = NULL;
	int rc = sl_shared_new(&memory, sizeof(*run.progress));

	if (rc)
		return sl_err_sys(err, -rc, "sandboxes");
	run.progress = memory;
	rc = sl_caller_server(&server, &run.port, err);
	rc = rc ?: sl_daemon_start(&daemon, world, err);
	/* Stays, so that the set does: what is left in it is to be counted. */
	rc = rc ?: sl_guest_open(&anchor, &spec, err);
	rc = rc ?: sl_guest_attach(&anchor, NULL, err);
	rc = rc ?: measure(&run, opt, report, err);
	sl_child_stop(&server);
	sl_shared_free(memory, sizeof(*run.progress));
	return rc;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	int rc = sl_world_new(&world, err);

	return rc ?: run_in(world, options, report, err);
}

static int sandboxes_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "sandboxes", options, bench);
}

const struct sl_command sl_bench_sandboxes = {
	.name = "sandboxes",
	.summary = "thousands of sandboxes, one after the other: what is left of them",
	.options = sandboxes_options,
	.options_size = sizeof(struct sandboxes_options),
	.run = sandboxes_run,
};
