/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The relay against HAProxy in TCP mode and against no relay: throughput and connections. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/start.h"
#include "proc.h"
#include "relay.h"
#include "report.h"
#include "stats.h"
#include "world.h"

#define ROUNDS_MAX 1000
#define BUDGET 1.0 /* of HAProxy's throughput */

struct relay_options {
	struct sl_bench_common common;
	uint32_t rounds, ms, threads, pipe;
};

static const struct sl_option relay_options[] = {
	SL_BENCH_OPTIONS(struct relay_options),
	SL_OPTION(U32, struct relay_options, rounds, "rounds", 'n', "COUNT", "rounds of each kind",
		  .min = 1, .max = ROUNDS_MAX, .fallback = "15"),
	SL_OPTION(U32, struct relay_options, ms, "ms", 0, "MS", "milliseconds of one turn",
		  .min = 10, .max = 60000, .fallback = "500"),
	SL_OPTION(U32, struct relay_options, threads, "threads", 0, "COUNT",
		  "threads of each relay", .min = 1, .max = 16, .fallback = "2"),
	SL_OPTION(U32, struct relay_options, pipe, "pipe", 0, "BYTES",
		  "size of the relay's pipes; 0: its own choice", .min = 0, .max = 1 << 30,
		  .fallback = "0"),
	{ 0 },
};

static const char *const between_names[RELAY_BETWEEN_MAX] = { "direct", "sluice", "haproxy" };

/* What is measured of each party. */
static const struct kind {
	const char *name;
	unsigned int streams; /* 0: connections */
	bool stalled;         /* beside one that is not read */
	bool budgeted;
} kinds[] = {
	{ "1 stream", 1, false, true },
	{ "200 streams", 200, false, true },
	{ "200 streams, one more stalled", 200, true, false },
	{ "2000 streams", 2000, false, false },
	{ "connections", 0, false, false },
};

#define SETUPS 1000 /* of a turn */

struct bench {
	const struct relay_options *options;
	struct relay_shared *shared;
	struct relay_party parties[RELAY_BETWEEN_MAX];
	double values[RELAY_BETWEEN_MAX][ROUNDS_MAX];
	/* CPU time of the process between, nanoseconds for each byte or connection. */
	double costs[RELAY_BETWEEN_MAX][ROUNDS_MAX];
	unsigned int rounds;
};

static unsigned int setups(const struct bench *bench)
{
	return bench->options->common.quick ? SETUPS / 10 : SETUPS;
}

/* Fills a stream that nobody reads; -1: none. */
static int stall(uint16_t port)
{
	static const char data[65536];
	int fd = relay_connect(port, RELAY_STALL);

	while (fd >= 0 && send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	return fd;
}

static int turn(struct bench *bench, const struct kind *kind, enum relay_between who, double *out,
		struct sl_err *err)
{
	uint16_t port = bench->parties[who].port;
	_cleanup_fd_ int stalled = kind->stalled ? stall(port) : -1;

	if (!kind->streams)
		return relay_setup(port, setups(bench), out, err);
	return relay_bulk(port, kind->streams, bench->options->ms, bench->shared, out, err);
}

/* And what it cost: the machine may be busy with other things, which that does not show. */
static int costed_turn(struct bench *bench, const struct kind *kind, enum relay_between who,
		       unsigned int round, struct sl_err *err)
{
	pid_t pid = bench->parties[who].child.pid;
	uint64_t cpu = sl_proc_cpu_ns(pid), bytes = atomic_load(&bench->shared->bytes);
	int ret = turn(bench, kind, who, &bench->values[who][round], err);

	cpu = sl_proc_cpu_ns(pid) - cpu;
	bytes = atomic_load(&bench->shared->bytes) - bytes;
	if (kind->streams)
		bench->costs[who][round] = (double)cpu / (double)(bytes ?: 1);
	else
		bench->costs[who][round] = (double)cpu / setups(bench);
	return ret;
}

static void report_kind(struct bench *bench, struct sl_report *report, const struct kind *kind)
{
	const double *haproxy = bench->values[RELAY_HAPROXY];
	double scratch[ROUNDS_MAX], ratio;
	char name[96];

	for (unsigned int who = 0; who < RELAY_BETWEEN_MAX; who++) {
		if (!bench->parties[who].port)
			continue;
		for (unsigned int i = 0; i < bench->rounds; i++)
			scratch[i] = bench->values[who][i];
		snprintf(name, sizeof(name), "%s, %s", kind->name, between_names[who]);
		sl_report_row(report, kind->streams ? "throughput" : "setup", name);
		if (kind->streams)
			sl_report_float(report, "mib_s",
					sl_median(scratch, bench->rounds) / (1 << 20));
		else
			sl_report_float(report, "us", sl_median(scratch, bench->rounds) / 1e3);
		for (unsigned int i = 0; i < bench->rounds; i++)
			scratch[i] = bench->costs[who][i];
		if (kind->streams)
			sl_report_float(report, "cpu_ms_gib",
					sl_median(scratch, bench->rounds) * (1 << 30) / 1e6);
		else
			sl_report_float(report, "cpu_us", sl_median(scratch, bench->rounds) / 1e3);
		sl_report_float(report, "to_direct",
				sl_paired_ratio(bench->values[who], bench->values[RELAY_DIRECT],
						scratch, bench->rounds));
		sl_report_samples(report, "samples", bench->values[who], bench->rounds);
	}
	if (!bench->parties[RELAY_HAPROXY].port)
		return;
	ratio = sl_paired_ratio(bench->values[RELAY_SLUICE], haproxy, scratch, bench->rounds);
	snprintf(name, sizeof(name), "%s, to haproxy", kind->name);
	if (kind->budgeted) {
		sl_report_at_least(report, name, ratio, BUDGET);
		return;
	}
	sl_report_row(report, "to haproxy", kind->name);
	sl_report_float(report, "ratio", ratio);
}

static int measure_kind(struct bench *bench, struct sl_report *report, const struct kind *kind,
			struct sl_err *err)
{
	unsigned int rounds = bench->options->common.quick ? 1 : bench->options->rounds;
	int ret = 0;

	bench->rounds = 0;
	for (unsigned int i = 0; i < rounds && !sl_world_stopped(); i++) {
		/* Who begins takes turns as well. */
		for (unsigned int j = 0; j < RELAY_BETWEEN_MAX && !ret; j++) {
			unsigned int who = (i + j) % RELAY_BETWEEN_MAX;

			if (bench->parties[who].port)
				ret = costed_turn(bench, kind, who, i, err);
		}
		if (ret)
			return ret;
		bench->rounds++;
	}
	report_kind(bench, report, kind);
	return 0;
}

static int start_all(struct bench *bench, struct sl_report *report, struct sl_err *err)
{
	struct relay_party *parties = bench->parties;
	unsigned int threads = bench->options->threads;
	int ret = relay_server_start(&parties[RELAY_DIRECT], bench->shared, err);

	if (!ret)
		ret = relay_sluice_start(&parties[RELAY_SLUICE], threads,
					 parties[RELAY_DIRECT].port, bench->options->pipe, err);
	if (!ret)
		ret = relay_haproxy_start(&parties[RELAY_HAPROXY], threads,
					  parties[RELAY_DIRECT].port, err);
	if (ret == -ENOENT) {
		sl_report_note(report, "HAProxy is not installed: nothing to compare with "
				       "(tools/deps.sh install bench)");
		ret = 0;
	}
	return ret;
}

static void stop_all(struct bench *bench)
{
	for (unsigned int who = 0; who < RELAY_BETWEEN_MAX; who++)
		relay_party_stop(&bench->parties[who]);
	sl_shared_free(bench->shared, sizeof(*bench->shared));
}

static int measure(const struct relay_options *opt, struct sl_report *report, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	__attribute__((cleanup(stop_all))) struct bench bench = {
		.options = opt,
		.parties = { { .listener = -1 }, { .listener = -1 }, { .listener = -1 } },
	};
	void *memory;
	int ret = sl_world_new(&world, err);

	if (ret)
		return ret;
	ret = sl_shared_new(&memory, sizeof(*bench.shared));
	if (ret)
		return sl_err_sys(err, -ret, "can't share memory");
	bench.shared = memory;
	sl_start_raise_files();
	ret = start_all(&bench, report, err);
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !ret && !sl_world_stopped(); i++)
		ret = measure_kind(&bench, report, &kinds[i], err);
	return ret;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	const struct relay_options *opt = options;
	int rc;

	sl_report_setting(report, "threads", opt->threads);
	sl_report_setting(report, "pipe_bytes", opt->pipe);
	rc = measure(opt, report, err);
	if (rc)
		return rc;
	sl_report_note(report, "client, relay and server share the machine's CPUs; the server "
			       "discards what it reads");
	sl_report_note(report, "a connection: connect, a byte there and back, RST; one at a time");
	return 0;
}

static int relay_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "relay", options, bench);
}

const struct sl_command sl_bench_relay = {
	.name = "relay",
	.summary = "throughput and connections through the relay, HAProxy and neither",
	.options = relay_options,
	.options_size = sizeof(struct relay_options),
	.run = relay_run,
};
