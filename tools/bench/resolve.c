/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is at the other end? Asked for clients that connect, say a word and are gone. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "bench.h"
#include "child.h"
#include "faults.h"
#include "report.h"
#include "resolve.h"
#include "stats.h"
#include "world.h"

#define P99_BUDGET_NS 3000
#define RATIO_BUDGET 1000

struct resolve_options {
	struct sl_bench_common common;
	uint32_t clients, jobs, proc_samples;
	enum sl_pin pin;
};

static const struct sl_option resolve_options[] = {
	SL_BENCH_OPTIONS(struct resolve_options),
	SL_OPTION(U32, struct resolve_options, clients, "clients", 'n', "COUNT",
		  "clients that connect and exit", .min = 1, .max = 100000000,
		  .fallback = "1000000"),
	SL_OPTION(U32, struct resolve_options, jobs, "jobs", 0, "COUNT", "processes that make them",
		  .min = 1, .max = RESOLVE_JOBS_MAX, .fallback = "2"),
	SL_OPTION(U32, struct resolve_options, proc_samples, "proc-sample", 0, "COUNT",
		  "clients that are looked for in /proc as well", .max = 1000000,
		  .fallback = "2000"),
	SL_OPTION(CHOICE, struct resolve_options, pin, "pin", 0, NULL,
		  "CPUs to use; two: one for the server alone", .choices = sl_pin_names,
		  .fallback = "two"),
	{ 0 },
};

static const char *const method_names[RESOLVE_METHOD_MAX] = {
	[RESOLVE_ACCEPT] = "descriptor, at accept",    [RESOLVE_EXITED] = "descriptor, client gone",
	[RESOLVE_QUIET] = "descriptor, others paused", [RESOLVE_PROC] = "/proc, others paused",
	[RESOLVE_PROC_ALIVE] = "/proc, client waits",
};

struct run {
	struct resolve *resolve; /* shared */
	struct sl_child server, sampler, crowd[RESOLVE_JOBS_MAX];
};

static void run_clear(struct run *run)
{
	struct resolve *resolve = run->resolve;

	for (unsigned int i = 0; i < RESOLVE_JOBS_MAX; i++)
		sl_child_stop(&run->crowd[i]);
	sl_child_stop(&run->sampler);
	sl_child_stop(&run->server);
	if (!resolve)
		return;
	for (unsigned int i = 0; i < RESOLVE_METHOD_MAX; i++)
		sl_shared_free(resolve->results[i].times,
			       resolve->results[i].room * sizeof(uint32_t));
	sl_cleanup_fd(&resolve->command[0]);
	sl_cleanup_fd(&resolve->command[1]);
	sl_shared_free(resolve, sizeof(*resolve));
}

static int run_init(struct run *run, const struct resolve_options *opt, struct sl_err *err)
{
	struct resolve *resolve;
	void *memory;
	ssize_t len;

	if (sl_shared_new(&memory, sizeof(*resolve))) {
		sl_err_sys(err, ENOMEM, "resolve");
		return -ENOMEM;
	}
	run->resolve = resolve = memory;
	resolve->command[0] = resolve->command[1] = -1;
	resolve->clients = opt->common.quick ? 3000 : opt->clients;
	resolve->proc_samples = opt->common.quick ? 30 : opt->proc_samples;
	resolve->jobs = opt->jobs;
	for (unsigned int i = 0; i < RESOLVE_METHOD_MAX; i++) {
		struct resolve_result *result = &resolve->results[i];
		uint64_t room = i < RESOLVE_QUIET ? resolve->clients : 2 * resolve->proc_samples;

		/* One more than ever used: a mapping has no size 0. */
		if (sl_shared_new(&memory, (room + 1) * sizeof(uint32_t)))
			return sl_err_sys(err, ENOMEM, "samples");
		result->times = memory;
		result->room = room + 1;
	}
	len = readlink("/proc/self/exe", resolve->exe, sizeof(resolve->exe) - 1);
	if (len < 0 || len == sizeof(resolve->exe) - 1)
		return sl_err_set(err, ENAMETOOLONG, "this program's path is too long");
	if (pipe2(resolve->command, O_CLOEXEC))
		return sl_err_sys(err, errno, "pipe");
	return 0;
}

/* Sleeps until the process has ended or `flag` is set. */
static int wait_flag(const int *flag, struct sl_child *child, int *status)
{
	for (;;) {
		if (flag && __atomic_load_n(flag, __ATOMIC_ACQUIRE))
			return 0;
		if (sl_world_stopped())
			return -EINTR;
		if (!sl_child_wait(child, 20, status))
			return -ECHILD;
	}
}

static int server_failed(int status, struct sl_err *err)
{
	if (!WIFEXITED(status))
		return sl_err_set(err, EIO, "the server was killed");
	if (WEXITSTATUS(status) == SL_CHILD_LOST)
		return sl_err_set(err, EIO, "the server could not start");
	return sl_err_sys(err, WEXITSTATUS(status), "server");
}

static int start(struct run *run, const struct sl_world *world, enum sl_pin pin, struct sl_err *err)
{
	struct sl_child_spec spec = { .cgroup = world->box,
				      .cpu = sl_pin_helper(pin),
				      .arg = run->resolve };
	struct resolve_job job = { .resolve = run->resolve };
	int rc, status;

	run->resolve->set = world->set;
	spec.run = resolve_server;
	rc = sl_child_start(&run->server, &spec, err);
	if (rc)
		return rc;
	rc = wait_flag(&run->resolve->ready, &run->server, &status);
	if (rc)
		return rc == -ECHILD ? server_failed(status, err) : rc;
	spec.run = resolve_sampler;
	spec.cpu = sl_pin_worker(pin);
	rc = sl_child_start(&run->sampler, &spec, err);
	spec.run = resolve_crowd;
	spec.arg = &job;
	for (job.index = 0; job.index < run->resolve->jobs && !rc; job.index++)
		rc = sl_child_start(&run->crowd[job.index], &spec, err);
	return rc;
}

/* Until the server has served all. An interrupt has it end early. */
static int finish(struct run *run, struct sl_err *err)
{
	int status = 0, rc = wait_flag(NULL, &run->server, &status);

	if (rc == -EINTR) {
		__atomic_store_n(&run->resolve->stop, 1, __ATOMIC_RELEASE);
		rc = sl_child_wait(&run->server, 10000, &status) ? -ETIMEDOUT : -ECHILD;
	}
	if (rc != -ECHILD)
		return sl_err_sys(err, -rc, "server");
	return status ? server_failed(status, err) : 0;
}

/* What asking costs at least: two readings of the clock, and a bpf(2) that only fails. */
static void report_floor(struct sl_report *report)
{
	enum { COUNT = 20000 };
	static uint32_t empty[COUNT], syscall_ns[COUNT];
	__u32 key = 0, value;
	uint64_t start;

	for (unsigned int i = 0; i < COUNT; i++) {
		start = sl_bench_now_ns();
		empty[i] = (uint32_t)(sl_bench_now_ns() - start);
		start = sl_bench_now_ns();
		(void)bpf_map_lookup_elem(-1, &key, &value);
		syscall_ns[i] = (uint32_t)(sl_bench_now_ns() - start);
	}
	sl_sort_u32(empty, COUNT);
	sl_sort_u32(syscall_ns, COUNT);
	sl_report_setting(report, "clock_p50_ns", sl_rank(empty, COUNT, 0.5));
	sl_report_setting(report, "empty_bpf_call_p50_ns", sl_rank(syscall_ns, COUNT, 0.5));
}

static void report_right(struct sl_report *report, const struct resolve_result *result,
			 const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "%s: unresolved", name);
	sl_report_equal(report, text, (int64_t)result->unresolved, 0);
	snprintf(text, sizeof(text), "%s: wrong", name);
	sl_report_equal(report, text, (int64_t)result->wrong, 0);
}

static void report_methods(struct resolve *resolve, struct sl_report *report)
{
	double p50[RESOLVE_METHOD_MAX], p99[RESOLVE_METHOD_MAX], base;

	for (unsigned int i = 0; i < RESOLVE_METHOD_MAX; i++) {
		struct resolve_result *result = &resolve->results[i];
		size_t count = result->asked < result->room ? result->asked : result->room;

		sl_sort_u32(result->times, count);
		p50[i] = sl_rank(result->times, count, 0.5);
		p99[i] = sl_rank(result->times, count, 0.99);
		base = p50[i < RESOLVE_QUIET ? RESOLVE_ACCEPT : RESOLVE_QUIET];
		sl_report_row(report, "methods", method_names[i]);
		sl_report_int(report, "clients", (int64_t)result->asked);
		sl_report_int(report, "unresolved", (int64_t)result->unresolved);
		sl_report_int(report, "wrong", (int64_t)result->wrong);
		sl_report_int(report, "p50_ns", (int64_t)p50[i]);
		sl_report_int(report, "p99_ns", (int64_t)p99[i]);
		sl_report_int(report, "max_ns", sl_rank(result->times, count, 1));
		sl_report_float(report, "ratio", base > 0 ? p50[i] / base : 0);
		if (i < RESOLVE_PROC)
			report_right(report, result, method_names[i]);
	}
	sl_report_at_most(report, "descriptor, at accept: p99 ns", p99[RESOLVE_ACCEPT],
			  P99_BUDGET_NS);
	if (!resolve->results[RESOLVE_PROC_ALIVE].asked)
		return;
	sl_report_at_least(report, "/proc, client waits / descriptor, others paused: p50",
			   p50[RESOLVE_PROC_ALIVE] / p50[RESOLVE_QUIET], RATIO_BUDGET);
}

static void report_run(struct resolve *resolve, struct sl_report *report)
{
	double seconds = (double)resolve->elapsed_ns / 1e9;

	sl_report_setting(report, "clients", (int64_t)resolve->clients);
	sl_report_setting(report, "jobs", resolve->jobs);
	sl_report_setting(report, "seconds", (int64_t)seconds);
	sl_report_setting(report, "clients_per_second",
			  seconds > 0 ? (int64_t)((double)resolve->served / seconds) : 0);
	sl_report_setting(report, "proc_entries_read", (int64_t)resolve->proc_entries);
	report_floor(report);
	report_methods(resolve, report);
	if (!sl_world_stopped())
		sl_report_equal(report, "clients served", (int64_t)resolve->served,
				(int64_t)resolve->clients);
	sl_report_equal(report, "clients asked for twice",
			(int64_t)resolve->results[RESOLVE_EXITED].asked, (int64_t)resolve->served);
	if (resolve->failed)
		sl_report_note(report, "%llu clients could not connect: %s",
			       (unsigned long long)resolve->failed,
			       strerror(resolve->failed_errno));
	sl_report_note(report, "%.0f clients a second, in %.1f s",
		       seconds > 0 ? (double)resolve->served / seconds : 0, seconds);
	sl_report_note(report, "right is: pid, start time to the clock tick (as the client read it "
			       "in /proc/self/stat), executable");
	sl_report_note(report,
		       "for /proc the others pause, so that the client is accepted at once; "
		       "a search that finds no socket ends early");
	sl_report_note(report, "times are of the wall clock, its own reading included (see "
			       "clock_p50_ns): others preempt the server");
}

static int measure(struct run *run, const struct resolve_options *opt, struct sl_report *report,
		   struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	struct sl_counters counters;
	int rc;

	rc = run_init(run, opt, err);
	if (rc)
		return rc;
	rc = sl_world_new(&world, err);
	/* As an agent records; nobody need consume for the answers to be right. */
	if (!rc)
		rc = sl_world_load(world, 0, err);
	if (!rc)
		rc = start(run, world, opt->pin, err);
	if (!rc)
		rc = finish(run, err);
	if (rc && !(rc == -EINTR && sl_world_stopped()))
		return rc;
	sl_report_setting_text(report, "pin", sl_pin_names[opt->pin]);
	report_run(run->resolve, report);
	rc = sl_counters_total(world->set, &counters);
	if (rc)
		return sl_err_sys(err, -rc, "can't read counters");
	sl_faults_report(report, &counters);
	return 0;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	__attribute__((cleanup(run_clear))) struct run run = { 0 };

	return measure(&run, options, report, err);
}

static int resolve_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "resolve", options, bench);
}

const struct sl_command sl_bench_resolve = {
	.name = "resolve",
	.summary = "who is at the other end, for clients that connect and exit",
	.options = resolve_options,
	.options_size = sizeof(struct resolve_options),
	.run = resolve_run,
};
