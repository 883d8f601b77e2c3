/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The relay of `sluice run --net relay`, with policy DNS before it, under load for minutes:
 * whether every byte is right, whether a reader that stands still slows the others, and what
 * is left in the process afterwards.
 */
#define _GNU_SOURCE
#include "soak.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/start.h"
#include "proc.h"
#include "program.h"
#include "relay/pipes.h"
#include "report.h"
#include "world.h"

#define HOST "n0." SOAK_KIND ".example" /* as dns_query() makes it */
#define SOAK_KIND "w"                   /* DNS_WORLD */
#define ANSWER_MS 600000                /* an order takes no longer */
#define SETTLE_MS 5000
#define SETTLE_POLL_MS 20
#define END_MS 20000
#define BUDGET_SLOWER 1.10
#define BUDGET_RSS_MIB 2.0

struct soak_options {
	struct sl_bench_common common;
	uint32_t connections, streams, mib, stall_s;
};

static const struct sl_option soak_options[] = {
	SL_BENCH_OPTIONS(struct soak_options),
	SL_OPTION(U32, struct soak_options, connections, "connections", 'n', "COUNT",
		  "connections that are opened and closed", .min = 1, .max = 10000000,
		  .fallback = "5000"),
	SL_OPTION(U32, struct soak_options, streams, "streams", 0, "COUNT",
		  "streams at once, half of them each way", .min = 2, .max = 1000,
		  .fallback = "50"),
	SL_OPTION(U32, struct soak_options, mib, "mib", 0, "MIB", "what each carries", .min = 1,
		  .max = 100000, .fallback = "200"),
	SL_OPTION(U32, struct soak_options, stall_s, "stall", 0, "SECONDS",
		  "how long one more reader stands still", .min = 1, .max = 86400,
		  .fallback = "120"),
	{ 0 },
};

/* What the process has. */
struct sample {
	struct sl_proc_kinds fds;
	unsigned int threads;
	double rss_mib;
};

struct bench {
	const struct soak_options *options;
	struct soak_shared *shared;
	struct dns_party dns;
	struct sl_child server, sluice;
	uint16_t port;
	int orders, results; /* pipes to the program in the sandbox */
	uint64_t bytes;      /* of a stream */
	uint64_t expected;   /* of all streams so far */
	struct soak_result sum;
	double alone_s[2], beside_s;
	struct sample before, between, after;
};

/* --- the process and the program in its sandbox --- */

struct start {
	char sluice[PATH_MAX], self[PATH_MAX], upstream[64], policy[64], port[16];
	int in, out, policy_fd;
};

static int start_main(void *arg)
{
	const struct start *start = arg;

	if (dup2(start->in, STDIN_FILENO) < 0 || dup2(start->out, STDOUT_FILENO) < 0)
		return 1;
	execl(start->sluice, "sluice", "--agent", "none", "run", "-q", "--net", "relay", "--policy",
	      start->policy, "--upstream", start->upstream, "--", start->self, SOAK_ARGUMENT, HOST,
	      start->port, NULL);
	return 127;
}

static int write_policy(struct start *start, uint16_t port, struct sl_err *err)
{
	/* Inherited: `sluice` opens it by the descriptor's name. */
	start->policy_fd = memfd_create("policy.yaml", 0);
	snprintf(start->policy, sizeof(start->policy), "/proc/self/fd/%d", start->policy_fd);
	if (start->policy_fd >= 0 && dprintf(start->policy_fd,
					     "version: 1\n"
					     "network_policies:\n"
					     "  soak:\n"
					     "    endpoints: [{host: " HOST ", port: %u,\n"
					     "      allowed_ips: [192.0.2.0/24]}]\n"
					     "    binaries: [{path: \"%s\"}]\n",
					     port, start->self) > 0)
		return 0;
	return sl_err_sys(err, errno, "can't write the policy");
}

static int start_sluice(struct bench *b, struct sl_err *err)
{
	struct start start = { .policy_fd = -1 };
	struct sl_child_spec spec = { .cpu = -1, .run = start_main, .arg = &start };
	int orders[2] = { -1, -1 }, results[2] = { -1, -1 };
	int rc = sl_program_find(start.sluice, "sluice", "SLUICE", err);

	rc = rc ?: sl_program_self(start.self, err);
	rc = rc ?: write_policy(&start, b->port, err);
	if (!rc && (pipe2(orders, O_CLOEXEC) || pipe2(results, O_CLOEXEC)))
		rc = sl_err_sys(err, errno, "can't make a pipe");
	snprintf(start.port, sizeof(start.port), "%u", b->port);
	snprintf(start.upstream, sizeof(start.upstream), "192.0.2.1:%u", b->dns.port);
	start.in = orders[0];
	start.out = results[1];
	rc = rc ?: sl_child_start(&b->sluice, &spec, err);
	sl_cleanup_fd(&orders[0]);
	sl_cleanup_fd(&results[1]);
	sl_cleanup_fd(&start.policy_fd);
	b->orders = orders[1];
	b->results = results[0];
	return rc;
}

/* --- orders --- */

static int await(struct bench *b, struct soak_result *result, struct sl_err *err)
{
	struct pollfd ready = { .fd = b->results, .events = POLLIN };
	uint64_t until_ns = sl_bench_now_ns() + ANSWER_MS * 1000000ULL;

	while (poll(&ready, 1, 100) <= 0) {
		if (sl_world_stopped())
			return sl_err_set(err, EINTR, "interrupted");
		if (sl_bench_now_ns() > until_ns)
			return sl_err_set(err, ETIMEDOUT,
					  "the program in the sandbox says nothing");
	}
	if (read(b->results, result, sizeof(*result)) != sizeof(*result))
		return sl_err_set(err, EPIPE, "the program in the sandbox has ended");
	return 0;
}

/* Gives the order and waits; *seconds may be NULL. */
static int order(struct bench *b, const struct soak_order *order, double *seconds,
		 struct sl_err *err)
{
	struct soak_result result = { 0 };
	int rc;

	if (write(b->orders, order, sizeof(*order)) != sizeof(*order))
		return sl_err_sys(err, errno, "can't tell the program in the sandbox");
	rc = await(b, &result, err);
	if (rc)
		return rc;
	b->sum.received += result.received;
	b->sum.wrong += result.wrong;
	b->sum.failed += result.failed;
	b->sum.error = result.error ?: b->sum.error;
	if (order->what == SOAK_STREAMS)
		b->expected += order->count * order->bytes;
	if (seconds)
		*seconds = (double)result.ns / 1e9;
	return 0;
}

static int streams(struct bench *b, double *seconds, struct sl_err *err)
{
	return order(b,
		     &(struct soak_order){ .what = SOAK_STREAMS,
					   .count = b->options->streams,
					   .bytes = b->bytes },
		     seconds, err);
}

static int streams_beside_stalled(struct bench *b, struct sl_err *err)
{
	uint32_t stall_s = b->options->common.quick ? 10 : b->options->stall_s;
	uint64_t until_ns = sl_bench_now_ns() + stall_s * 1000000000ULL;
	int rc = order(b, &(struct soak_order){ .what = SOAK_STALL, .bytes = b->bytes }, NULL, err);

	b->expected += b->bytes;
	rc = rc ?: streams(b, &b->beside_s, err);
	while (!rc && sl_bench_now_ns() < until_ns && !sl_world_stopped())
		poll(NULL, 0, 100);
	return rc ?: order(b, &(struct soak_order){ .what = SOAK_RESUME }, NULL, err);
}

/* --- what the process has --- */

static void take_sample(struct bench *b, struct sample *sample)
{
	pid_t pid = b->sluice.pid;

	sl_proc_kinds(pid, &sample->fds);
	sample->threads = sl_proc_threads(pid);
	sample->rss_mib = (double)sl_proc_rss_bytes(pid) / (1 << 20);
}

/* Streams are over when the client has seen so, and a little later for the relay. */
static void take_settled(struct bench *b, struct sample *sample)
{
	for (int ms = 0; ms < SETTLE_MS; ms += SETTLE_POLL_MS) {
		take_sample(b, sample);
		if (sample->fds.sockets <= b->before.fds.sockets)
			return;
		poll(NULL, 0, SETTLE_POLL_MS);
	}
}

/* Ends of pipes beyond what every loop may keep. */
static unsigned int pipes_left(const struct bench *b)
{
	unsigned int kept = b->before.fds.pipes + 2 * SL_PIPES_IDLE_MAX * b->before.threads;

	return b->after.fds.pipes > kept ? b->after.fds.pipes - kept : 0;
}

/* --- the soak --- */

static int start_all(struct bench *b, struct sl_err *err)
{
	void *memory;
	int rc = sl_shared_new(&memory, sizeof(*b->shared));

	if (rc)
		return sl_err_sys(err, -rc, "can't share memory");
	b->shared = memory;
	sl_start_raise_files();
	rc = dns_server_start(&b->dns, err);
	rc = rc ?: soak_server_start(&b->server, &b->port, b->shared, err);
	return rc ?: start_sluice(b, err);
}

static int end_sluice(struct bench *b, struct sl_err *err)
{
	const struct soak_order quit = { .what = SOAK_QUIT };
	int status = -1;

	if (write(b->orders, &quit, sizeof(quit)) != sizeof(quit) ||
	    sl_child_wait(&b->sluice, END_MS, &status))
		return sl_err_set(err, ETIMEDOUT, "`sluice run` did not end");
	return status ? sl_err_set(err, ECHILD, "`sluice run` ended with wait status %d", status)
		      : 0;
}

static int soak(struct bench *b, struct sl_err *err)
{
	uint32_t count = b->options->common.quick ? 500 : b->options->connections;
	/* None: the program is there, has its address, and nothing is on its way to an end. */
	int rc = order(b, &(struct soak_order){ .what = SOAK_CONNECTIONS }, NULL, err);

	take_sample(b, &b->before);
	rc = rc
		     ?: order(b, &(struct soak_order){ .what = SOAK_CONNECTIONS, .count = count },
			      NULL, err);
	rc = rc ?: streams(b, &b->alone_s[0], err);
	if (!rc)
		take_settled(b, &b->between);
	rc = rc ?: streams_beside_stalled(b, err);
	rc = rc ?: streams(b, &b->alone_s[1], err);
	if (!rc)
		take_settled(b, &b->after);
	return rc ?: end_sluice(b, err);
}

static void report_sample(struct sl_report *report, const char *name, const struct sample *sample)
{
	sl_report_row(report, "process", name);
	sl_report_int(report, "sockets", sample->fds.sockets);
	sl_report_int(report, "pipe_ends", sample->fds.pipes);
	sl_report_int(report, "other_fds", sample->fds.others);
	sl_report_int(report, "threads", sample->threads);
	sl_report_float(report, "rss_mib", sample->rss_mib);
}

static void report_streams(struct sl_report *report, const struct bench *b, const char *name,
			   double seconds)
{
	sl_report_row(report, "streams", name);
	sl_report_float(report, "seconds", seconds);
	sl_report_float(report, "mib_s",
			(double)b->options->streams * (double)(b->bytes >> 20) / seconds);
}

static void tell(const struct bench *b, struct sl_report *report)
{
	uint64_t right = b->sum.received + atomic_load(&b->shared->received);
	uint64_t wrong = b->sum.wrong + atomic_load(&b->shared->wrong);

	report_streams(report, b, "alone", b->alone_s[0]);
	report_streams(report, b, "beside one that is not read", b->beside_s);
	report_streams(report, b, "alone, again", b->alone_s[1]);
	report_sample(report, "before", &b->before);
	report_sample(report, "after the first streams", &b->between);
	report_sample(report, "after all", &b->after);
	sl_report_equal(report, "bytes that came", (int64_t)right, (int64_t)b->expected);
	sl_report_equal(report, "bytes that were wrong", (int64_t)wrong, 0);
	sl_report_equal(report, "connections that failed", (int64_t)b->sum.failed, 0);
	sl_report_equal(report, "sockets afterwards", b->after.fds.sockets, b->before.fds.sockets);
	sl_report_equal(report, "pipe ends afterwards beyond what loops keep", pipes_left(b), 0);
	sl_report_equal(report, "other descriptors afterwards", b->after.fds.others,
			b->before.fds.others);
	sl_report_equal(report, "threads afterwards", b->after.threads, b->before.threads);
	sl_report_at_most(report, "streams beside one that is not read, to alone",
			  2 * b->beside_s / (b->alone_s[0] + b->alone_s[1]), BUDGET_SLOWER);
	sl_report_at_most(report, "RSS grown since the first streams, MiB",
			  b->after.rss_mib - b->between.rss_mib, BUDGET_RSS_MIB);
	sl_report_note(report, "each loop keeps %d pipes at most, of two ends", SL_PIPES_IDLE_MAX);
	if (b->sum.error)
		sl_report_note(report, "latest failure: %s", strerror((int)b->sum.error));
}

static void bench_end(struct bench *b)
{
	sl_cleanup_fd(&b->orders);
	sl_cleanup_fd(&b->results);
	sl_child_stop(&b->sluice);
	sl_child_stop(&b->server);
	sl_child_stop(&b->dns.child);
	sl_shared_free(b->shared, sizeof(*b->shared));
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	const struct soak_options *opt = options;
	_cleanup_world_ struct sl_world *world = NULL;
	__attribute__((cleanup(bench_end))) struct bench b = {
		.options = opt,
		.orders = -1,
		.results = -1,
		.bytes = (uint64_t)(opt->common.quick ? 10 : opt->mib) << 20,
	};
	int rc;

	sl_report_setting(report, "streams", opt->streams);
	rc = sl_world_new(&world, err);
	rc = rc ?: start_all(&b, err);
	rc = rc ?: soak(&b, err);
	if (rc)
		return rc;
	tell(&b, report);
	return 0;
}

static int soak_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "relay-soak", options, bench);
}

const struct sl_command sl_bench_relay_soak = {
	.name = "relay-soak",
	.summary = "minutes of `sluice run --net relay` with a reader that stands still",
	.options = soak_options,
	.options_size = sizeof(struct soak_options),
	.run = soak_run,
};
