/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Very many short connections: does anything grow, does every count add up? */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "bench.h"
#include "child.h"
#include "churn.h"
#include "consumer.h"
#include "faults.h"
#include "report.h"
#include "world.h"

#define JOBS_MAX 64
#define SAMPLES_MAX 600
#define SETTLE_MS 5000

struct churn_options {
	struct sl_bench_common common;
	uint32_t connections, seconds, jobs;
};

static const struct sl_option churn_options[] = {
	SL_BENCH_OPTIONS(struct churn_options),
	SL_OPTION(U32, struct churn_options, connections, "connections", 'n', "COUNT",
		  "stop after so many", .min = 1, .fallback = "10000000"),
	SL_OPTION(U32, struct churn_options, seconds, "seconds", 's', "COUNT",
		  "stop after this time at the latest", .min = 1, .max = 604800, .fallback = "600"),
	SL_OPTION(U32, struct churn_options, jobs, "jobs", 0, "COUNT", "processes that connect",
		  .min = 1, .max = JOBS_MAX, .fallback = "2"),
	{ 0 },
};

struct run {
	struct churn *churn; /* shared */
	struct sl_child server, workers[JOBS_MAX];
	unsigned int jobs;
	int refuser; /* holds the port that refuses */
	struct sl_consumer consumer;
	double *samples;
	size_t count;
	uint64_t limit_ns, elapsed_ns;
};

static void run_clear(struct run *run)
{
	for (unsigned int i = 0; i < JOBS_MAX; i++)
		sl_child_stop(&run->workers[i]);
	sl_child_stop(&run->server);
	sl_consumer_clear(&run->consumer);
	sl_cleanup_fd(&run->refuser);
	free(run->samples);
	sl_shared_free(run->churn, sizeof(*run->churn));
}

static int run_init(struct run *run, const struct churn_options *opt, struct sl_err *err)
{
	void *memory;

	run->samples = calloc(SAMPLES_MAX * CHURN_MAX, sizeof(double));
	if (!run->samples || sl_shared_new(&memory, sizeof(*run->churn)))
		return sl_err_sys(err, ENOMEM, "churn");
	run->churn = memory;
	run->churn->target = opt->common.quick ? 20000 : opt->connections;
	run->limit_ns = (opt->common.quick ? 2 : opt->seconds) * 1000000000ULL;
	run->jobs = opt->jobs;
	return 0;
}

/* A port that answers with RST, whatever happens: bound, never listening. */
static int open_refuser(struct run *run, struct sl_err *err)
{
	socklen_t len = sizeof(run->churn->closed);
	struct sockaddr *addr = (struct sockaddr *)&run->churn->closed;

	run->churn->closed = (struct sockaddr_in){ .sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	run->refuser = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (run->refuser < 0 || bind(run->refuser, addr, len) ||
	    getsockname(run->refuser, addr, &len))
		return sl_err_sys(err, errno, "can't bind on loopback");
	return 0;
}

static int start(struct run *run, struct sl_world *world, struct sl_err *err)
{
	struct sl_child_spec spec = { .cgroup = world->box, .cpu = -1, .arg = run->churn };
	int rc;

	rc = open_refuser(run, err);
	if (!rc)
		rc = sl_consumer_start(&run->consumer, world, -1, err);
	if (rc)
		return rc;
	spec.run = churn_server;
	rc = sl_child_start(&run->server, &spec, err);
	while (!rc && !__atomic_load_n(&run->churn->ready, __ATOMIC_ACQUIRE)) {
		if (!sl_child_wait(&run->server, 5, &(int){ 0 }))
			return sl_err_set(err, EIO, "the server did not start");
	}
	spec.run = churn_worker;
	for (unsigned int i = 0; i < run->jobs && !rc; i++)
		rc = sl_child_start(&run->workers[i], &spec, err);
	return rc;
}

/* Samples evenly until the target or the time is reached. */
static int watch(struct run *run, struct sl_world *world, struct sl_err *err)
{
	uint64_t step = run->limit_ns / SAMPLES_MAX > 100000000ULL ? run->limit_ns / SAMPLES_MAX
								   : 100000000ULL;
	uint64_t start_ns = sl_bench_now_ns(), next = start_ns;
	int rc = 0;

	while (!rc && !sl_world_stopped() && churn_done(run->churn) < run->churn->target &&
	       sl_bench_now_ns() - start_ns < run->limit_ns) {
		if (sl_bench_now_ns() >= next && run->count < SAMPLES_MAX) {
			rc = churn_sample(world->set, run->consumer.child.pid,
					  run->samples + run->count * CHURN_MAX);
			run->count++;
			next += step;
		}
		poll(NULL, 0, 10);
	}
	run->elapsed_ns = sl_bench_now_ns() - start_ns;
	return rc ? sl_err_sys(err, -rc, "can't read the set's maps") : 0;
}

/* Everything that is a member ends; what is in flight comes to rest. */
static void quiesce(struct run *run)
{
	__atomic_store_n(&run->churn->stop, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < run->jobs; i++) {
		if (sl_child_wait(&run->workers[i], SETTLE_MS, &(int){ 0 }))
			sl_child_stop(&run->workers[i]);
	}
	if (sl_child_wait(&run->server, SETTLE_MS, &(int){ 0 }))
		sl_child_stop(&run->server);
}

/* Counters once no socket is left, or as they are when some stay. */
static int settled_counters(struct run *run, struct sl_counters *counters)
{
	uint64_t deadline = sl_bench_now_ns() + SETTLE_MS * 1000000ULL;
	int rc;

	do {
		poll(NULL, 0, 10);
		rc = sl_counters_total(run->consumer.set, counters);
	} while (!rc &&
		 counters->n[SL_COUNTER_SOCK_CREATED] != counters->n[SL_COUNTER_SOCK_DELETED] &&
		 sl_bench_now_ns() < deadline);
	return rc;
}

static int add_closed(const struct sl_sock *sock, void *sum)
{
	(void)sock;
	++*(long long *)sum;
	return 0;
}

/* Records of closed sockets that are still there, -errno. */
static long long count_closed(struct sl_set *set)
{
	long long sum = 0;
	int rc = sl_closed_each(set, add_closed, &sum);

	return rc ? rc : sum;
}

/* Sockets, at rest: created, closed, and where the records of the closed ones went. */
static int report_sockets(struct run *run, const __u64 *n, struct sl_report *report,
			  struct sl_err *err)
{
	long long closed = count_closed(run->consumer.set);

	if (closed < 0)
		return sl_err_set(err, EIO, "can't read the set's maps");
	sl_report_equal(report, "sockets created - deleted, at rest",
			(int64_t)(n[SL_COUNTER_SOCK_CREATED] - n[SL_COUNTER_SOCK_DELETED]), 0);
	/* Each closed one is kept in its slot, unless a live one has that. */
	sl_report_equal(report, "sockets deleted - kept - not kept",
			(int64_t)(n[SL_COUNTER_SOCK_DELETED] - n[SL_COUNTER_CLOSED_KEPT] -
				  n[SL_COUNTER_CLOSED_DROPPED]),
			0);
	sl_report_equal(report, "sockets kept - made room - still there",
			(int64_t)(n[SL_COUNTER_CLOSED_KEPT] - n[SL_COUNTER_SOCK_EVICTED]) - closed,
			0);
	/* One more for the listener. */
	sl_report_equal(report, "sockets created - connections - accepted",
			(int64_t)(n[SL_COUNTER_SOCK_CREATED] - churn_done(run->churn) -
				  n[SL_COUNTER_SOCK_ACCEPT]),
			1);
	sl_report_equal(report, "accepted without a known peer",
			(int64_t)(n[SL_COUNTER_SOCK_ACCEPT] - n[SL_COUNTER_SOCK_PEER_KNOWN]), 0);
	sl_report_setting(report, "closed_still_there", closed);
	return 0;
}

/* Exact sums, at rest: nothing was forgotten and nothing was counted twice. */
static int report_sums(struct run *run, struct sl_report *report, struct sl_err *err)
{
	struct sl_counters counters;
	const __u64 *n = counters.n;
	long long tuples, procs, missing = 0;
	int rc = settled_counters(run, &counters);

	if (rc)
		return sl_err_sys(err, -rc, "can't read counters");
	sl_consumer_settle(&run->consumer, SETTLE_MS, &missing);
	tuples = sl_tuples_count(run->consumer.set);
	procs = sl_map_count_rows(sl_set_map_fd(run->consumer.set, SL_MAP_PROCS));
	if (tuples < 0 || procs < 0)
		return sl_err_set(err, EIO, "can't read the set's maps");
	rc = report_sockets(run, n, report, err);
	if (rc)
		return rc;
	sl_report_equal(report, "tuples created - deleted",
			(int64_t)(n[SL_COUNTER_TUPLE_CREATED] - n[SL_COUNTER_TUPLE_DELETED]),
			tuples);
	sl_report_equal(report, "tuples left", tuples, 0);
	sl_report_equal(report, "processes left", procs, 0);
	sl_report_equal(report, "processes entered + forked - exited",
			(int64_t)(n[SL_COUNTER_PROC_ENTERED] + n[SL_COUNTER_PROC_FORKED] -
				  n[SL_COUNTER_PROC_EXITED]),
			0);
	sl_report_equal(report, "events submitted - read", missing, 0);
	/* A client may close before its handshake has ended: accepted can be less. */
	sl_report_setting(report, "accepted", (int64_t)n[SL_COUNTER_SOCK_ACCEPT]);
	sl_report_setting(report, "events_read", (int64_t)run->consumer.stats->read);
	sl_report_setting(report, "wakeups", (int64_t)n[SL_COUNTER_EVENT_WAKEUP]);
	sl_faults_report(report, &counters);
	return 0;
}

static int report_run(struct run *run, struct sl_report *report, struct sl_err *err)
{
	const struct churn *churn = run->churn;
	double seconds = (double)run->elapsed_ns / 1e9;

	sl_report_setting(report, "jobs", run->jobs);
	sl_report_setting(report, "connected", (int64_t)churn->connected);
	sl_report_setting(report, "refused", (int64_t)churn->refused);
	sl_report_setting(report, "failed", (int64_t)churn->failed);
	sl_report_setting(report, "processes", (int64_t)churn->processes);
	sl_report_setting(report, "seconds", (int64_t)seconds);
	sl_report_note(report,
		       "%llu connections by %llu processes in %.1f s, %llu of them refused, "
		       "%llu failed; recording exec, exit and close events",
		       (unsigned long long)churn_done(churn), (unsigned long long)churn->processes,
		       seconds, (unsigned long long)churn->refused,
		       (unsigned long long)churn->failed);
	if (churn_report_samples(report, run->samples, run->count))
		return sl_err_sys(err, ENOMEM, "samples");
	return report_sums(run, report, err);
}

static int measure(struct run *run, const struct churn_options *opt, struct sl_report *report,
		   struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	int rc;

	rc = run_init(run, opt, err);
	if (!rc)
		rc = sl_world_new(&world, err);
	if (!rc)
		rc = sl_world_load(world, SL_CONSUMER_EVENTS, err);
	if (!rc)
		rc = start(run, world, err);
	if (!rc)
		rc = watch(run, world, err);
	if (rc)
		return rc;
	quiesce(run);
	rc = report_run(run, report, err);
	sl_consumer_stop(&run->consumer);
	return rc;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	__attribute__((cleanup(run_clear))) struct run run = { .refuser = -1,
							       .consumer = SL_CONSUMER_NONE };

	return measure(&run, options, report, err);
}

static int churn_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "churn", options, bench);
}

const struct sl_command sl_bench_churn = {
	.name = "churn",
	.summary = "millions of short connections: what grows, what does not add up",
	.options = churn_options,
	.options_size = sizeof(struct churn_options),
	.run = churn_run,
};
