/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A storm of failures that mean nothing: what does it cost, and what does it leave in the
 * log? The budget is one line a kind of race and interval, and one event a kind of denial.
 */
#define _GNU_SOURCE
#include "storm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "bench.h"
#include "broker/loop.h"
#include "broker/probe.h"
#include "consumer.h"
#include "faults.h"
#include "guard/guard.h"
#include "mediated.h"

#define RULES 10
#define INTERVAL_MS 1000
#define SETTLE_MS 5000
#define HANDOFF_MS 10000
#define DENIED_ADDR 0xc6336401U /* 198.51.100.1 (RFC 5737): no rule has it */
#define EVENTS (SL_CONSUMER_EVENTS | SL_EVENT_BIT(SL_EVENT_DECISION))

struct storm_options {
	struct sl_bench_common common;
	uint32_t calls, targets, denied;
};

static const struct sl_option storm_options[] = {
	SL_BENCH_OPTIONS(struct storm_options),
	SL_OPTION(U32, struct storm_options, calls, "calls", 'n', "COUNT",
		  "calls that fail of themselves", .min = 1, .fallback = "890000"),
	SL_OPTION(U32, struct storm_options, targets, "targets", 0, "COUNT",
		  "processes killed while a call of theirs is held", .min = 1, .fallback = "10000"),
	SL_OPTION(U32, struct storm_options, denied, "denied", 0, "COUNT",
		  "datagrams that the policy denies", .min = 1, .fallback = "100000"),
	{ 0 },
};

struct run {
	struct sl_world *world;
	struct storm *storm; /* shared */
	struct sl_policy *policy;
	struct sl_compiled *compiled;
	struct sl_filter filter;
	unsigned long flags;
	struct sl_handoff handoff;
	struct sl_broker *broker;
	struct sl_consumer consumer;
	struct sl_child workload;
	int log, real_stderr; /* -1: stderr is where it was */
	uint64_t lines;
	uint64_t elapsed_ns, cpu_us;
};

static void restore_stderr(struct run *run)
{
	if (run->real_stderr >= 0)
		dup2(run->real_stderr, STDERR_FILENO);
	sl_cleanup_fd(&run->real_stderr);
}

static void run_clear(struct run *run)
{
	restore_stderr(run);
	sl_child_stop(&run->workload);
	sl_handoff_end(&run->handoff);
	sl_broker_free(&run->broker);
	sl_consumer_clear(&run->consumer);
	sl_compiled_free(&run->compiled);
	sl_policy_free(&run->policy);
	sl_cleanup_fd(&run->log);
	sl_world_free(&run->world);
	sl_shared_free(run->storm, sizeof(*run->storm));
}

/* Kills who waits, and answers when the kernel has forgotten the call. */
static void held(void *ctx, const struct sl_call *call, struct sl_answer *answer)
{
	(void)ctx;
	kill(call->tid, SIGKILL);
	while (sl_notify_valid(call->listener, call->id) != -ENOENT)
		sched_yield();
	answer->go_on = true;
}

static void fault(void *ctx, enum sl_broker_kind kind, uint64_t tag, pid_t tid, int code)
{
	(void)ctx;
	(void)tag;
	sl_log_error("broker: %s: task %d, %d", sl_broker_kind_help(kind), tid, code);
}

static void races(void *ctx, const struct sl_race_line *line)
{
	struct run *run = ctx;

	run->lines++;
	sl_log_notice("races, all harmless: %s, %llu times", sl_broker_kind_help(line->kind),
		      (unsigned long long)line->count);
}

static int load(struct run *run, struct sl_err *err)
{
	struct sl_guard_options options = { .mode = SL_GUARD_ENFORCE };
	__u32 policy_id;
	int rc;

	rc = sl_world_load(run->world, EVENTS, err);
	rc = rc ?: sl_mediated_policy(&run->policy, &run->compiled, RULES, "tcp", 443, err);
	rc = rc
		     ?: sl_guard_load(run->world->set, run->world->sandbox, run->compiled, &options,
				      &policy_id, err);
	return rc ?: sl_consumer_start(&run->consumer, run->world, -1, err);
}

static int make_broker(struct run *run, struct sl_err *err)
{
	const struct sl_filter_options filter = { .hold = SL_HOLD_CONNECT };
	const struct sl_broker_options options = {
		.ops = { .held = held, .fault = fault, .races = races },
		.ctx = run,
		.race_interval_ms = INTERVAL_MS,
	};
	const char *why = NULL;
	int rc;

	sl_probe_listener_flags(&run->flags, &why);
	rc = sl_filter_make(&run->filter, &filter, err);
	rc = rc ?: sl_broker_new(&run->broker, &options, err);
	return rc ?: sl_handoff_new(&run->handoff, err);
}

static int start(struct run *run, struct sl_err *err)
{
	struct storm_work work = { run->storm, &run->handoff, &run->filter, run->flags };
	const struct sl_child_spec spec = {
		.cgroup = run->world->box,
		.cpu = -1,
		.run = storm_workload,
		.arg = &work,
	};
	_cleanup_fd_ int listener = -1;
	int rc = sl_child_start(&run->workload, &spec, err);

	rc = rc ?: sl_handoff_take(&run->handoff, HANDOFF_MS, &listener, err);
	rc = rc ?: sl_broker_add(run->broker, listener, 1, err);
	if (rc)
		return rc;
	listener = -1;
	rc = sl_broker_start(run->broker, err);
	return rc ?: sl_handoff_release(&run->handoff, err);
}

/* What the product would write to stderr goes to memory, to be counted. */
static int catch_log(struct run *run, struct sl_err *err)
{
	run->log = memfd_create("storm-log", MFD_CLOEXEC);
	run->real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (run->log < 0 || run->real_stderr < 0 || dup2(run->log, STDERR_FILENO) < 0)
		return sl_err_sys(err, errno, "can't redirect the log");
	return 0;
}

static uint64_t own_cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int watch(struct run *run, struct sl_err *err)
{
	uint64_t begin_ns = sl_bench_now_ns(), begin_us = own_cpu_us();
	int status = 0, rc;

	do {
		rc = sl_child_wait(&run->workload, INTERVAL_MS, &status);
		sl_broker_tick(run->broker);
	} while (rc == -ETIMEDOUT && !sl_world_stopped());
	run->elapsed_ns = sl_bench_now_ns() - begin_ns;
	run->cpu_us = own_cpu_us() - begin_us;
	if (rc || status)
		return sl_err_set(err, EIO, "the workload ended early, status %d", status);
	return 0;
}

static uint64_t count_lines(int fd)
{
	uint64_t lines = 0;
	char buf[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			lines += buf[i] == '\n';
		at += n;
	}
	return lines;
}

static void report_rows(struct run *run, const struct sl_counters *counters, uint64_t told,
			struct sl_report *report)
{
	/* Whatever is in the log beside the summaries of races. */
	uint64_t others = count_lines(run->log) - run->lines;

	sl_report_row(report, "storm", "failed calls");
	sl_report_int(report, "count", (int64_t)run->storm->calls);
	sl_report_int(report, "told", (int64_t)others);
	sl_report_row(report, "storm", "killed while held");
	sl_report_int(report, "count",
		      (int64_t)sl_broker_count(run->broker, SL_BROKER_GONE_ANSWER));
	sl_report_int(report, "told", (int64_t)run->lines);
	sl_report_row(report, "storm", "denied");
	sl_report_int(report, "count", (int64_t)counters->n[SL_COUNTER_DENIED]);
	sl_report_int(report, "told", (int64_t)told);
	sl_report_equal(report, "lines beside those of races", (int64_t)others, 0);
}

static int report_run(struct run *run, struct sl_report *report, struct sl_err *err)
{
	const struct sl_consumer_stats *stats = run->consumer.stats;
	uint64_t intervals = run->elapsed_ns / (INTERVAL_MS * 1000000ULL) + 1;
	uint64_t told = stats->by_kind[SL_EVENT_DECISION], gone;
	struct storm *storm = run->storm;
	struct sl_counters counters;
	struct stat log;

	if (sl_counters_total(run->world->set, &counters) || fstat(run->log, &log))
		return sl_err_set(err, EIO, "can't read counters");
	gone = sl_broker_count(run->broker, SL_BROKER_GONE_ANSWER);
	report_rows(run, &counters, told, report);
	sl_report_setting(report, "elapsed_ms", (int64_t)(run->elapsed_ns / 1000000));
	sl_report_setting(report, "cpu_us", (int64_t)run->cpu_us);
	sl_report_setting(report, "log_bytes", log.st_size);
	sl_report_note(report, "%.1f s, %lld bytes in the log, %.3f s of CPU for who answers",
		       (double)run->elapsed_ns / 1e9, (long long)log.st_size,
		       (double)run->cpu_us / 1e6);
	sl_report_at_most(report, "lines of killed targets, one an interval", (double)run->lines,
			  (double)intervals);
	sl_report_at_most(report, "events of one denial, one an interval", (double)told,
			  (double)intervals);
	sl_report_equal(report, "calls with another outcome", (int64_t)storm->wrong, 0);
	sl_report_equal(report, "targets gone before their answer", (int64_t)gone,
			(int64_t)storm->targets);
	sl_report_equal(report, "calls denied", (int64_t)counters.n[SL_COUNTER_DENIED],
			(int64_t)storm->denied);
	sl_faults_report(report, &counters);
	return 0;
}

static int measure(struct run *run, const struct storm_options *opt, struct sl_report *report,
		   struct sl_err *err)
{
	unsigned int less = opt->common.quick ? 100 : 1;
	long long missing = 0;
	void *memory;
	int rc;

	if (sl_shared_new(&memory, sizeof(*run->storm)))
		return sl_err_sys(err, ENOMEM, "storm");
	run->storm = memory;
	run->storm->calls = opt->calls / less;
	run->storm->targets = opt->targets / less;
	run->storm->denied = opt->denied / less;
	run->storm->to = (struct sockaddr_in){ .sin_family = AF_INET,
					       .sin_port = htons(443),
					       .sin_addr.s_addr = htonl(DENIED_ADDR) };
	rc = sl_world_new(&run->world, err);
	rc = rc ?: load(run, err);
	rc = rc ?: make_broker(run, err);
	rc = rc ?: catch_log(run, err);
	rc = rc ?: start(run, err);
	rc = rc ?: watch(run, err);
	restore_stderr(run);
	if (rc)
		return rc;
	sl_consumer_settle(&run->consumer, SETTLE_MS, &missing);
	sl_report_equal(report, "events submitted - read", missing, 0);
	return report_run(run, report, err);
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	__attribute__((cleanup(run_clear))) struct run run = {
		.consumer = SL_CONSUMER_NONE, .handoff = { -1, -1 }, .log = -1, .real_stderr = -1
	};

	return measure(&run, options, report, err);
}

static int storm_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "storm", options, bench);
}

const struct sl_command sl_bench_storm = {
	.name = "storm",
	.summary = "a million failures, races and denials: what they cost, what the log gets",
	.options = storm_options,
	.options_size = sizeof(struct storm_options),
	.run = storm_run,
};
