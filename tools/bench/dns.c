/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policy DNS against the forwarders dnsmasq and unbound, and against none. */
#include "dns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proc.h"
#include "report.h"
#include "stats.h"
#include "world.h"

#define ROUNDS_MAX 200
#define ANSWERS_MS 1000 /* at most, of a millisecond: what there is room for */

struct dns_options {
	struct sl_bench_common common;
	uint32_t rounds, ms, sockets, inflight;
};

static const struct sl_option dns_options[] = {
	SL_BENCH_OPTIONS(struct dns_options),
	SL_OPTION(U32, struct dns_options, rounds, "rounds", 'n', "COUNT", "rounds of each kind",
		  .min = 1, .max = ROUNDS_MAX, .fallback = "15"),
	SL_OPTION(U32, struct dns_options, ms, "ms", 0, "MS", "milliseconds of one turn", .min = 10,
		  .max = 10000, .fallback = "500"),
	SL_OPTION(U32, struct dns_options, sockets, "sockets", 0, "COUNT", "sockets of clients",
		  .min = 1, .max = 1000, .fallback = "8"),
	SL_OPTION(U32, struct dns_options, inflight, "inflight", 0, "COUNT",
		  "queries of each that wait for an answer", .min = 1, .max = 64, .fallback = "4"),
	{ 0 },
};

static const char *const between_names[DNS_BETWEEN_MAX] = { "upstream itself", "sluice", "dnsmasq",
							    "unbound" };

static const struct kind {
	const char *name;
	char letter;
} kinds[] = { { "cached", DNS_CACHED }, { "fresh names", DNS_FRESH } };

/* Of each round. */
struct values {
	double rate[ROUNDS_MAX], p50_us[ROUNDS_MAX], p99_us[ROUNDS_MAX], cpu_us[ROUNDS_MAX];
	uint64_t lost, wrong;
};

struct bench {
	const struct dns_options *options;
	struct dns_party parties[DNS_BETWEEN_MAX];
	struct values values[DNS_BETWEEN_MAX];
	struct dns_load load;
	unsigned int rounds;
	double scratch[ROUNDS_MAX];
};

static int turn(struct bench *bench, const struct kind *kind, enum dns_between between,
		unsigned int round, struct sl_err *err)
{
	const struct dns_party *party = &bench->parties[between];
	struct values *values = &bench->values[between];
	uint64_t cpu_ns = sl_proc_cpu_ns(party->child.pid);
	struct dns_load *load = &bench->load;
	int ret;

	load->kind = kind->letter;
	load->wrong = load->lost = 0;
	ret = dns_load_run(load, party->port, err);
	cpu_ns = sl_proc_cpu_ns(party->child.pid) - cpu_ns;
	if (!ret && !load->answered)
		ret = sl_err_set(err, EPROTO, "%s answered nothing", between_names[between]);
	if (ret)
		return ret;
	sl_sort_u32(load->latency_ns, load->answered);
	values->rate[round] = (double)load->answered / load->seconds;
	values->p50_us[round] = sl_rank(load->latency_ns, load->answered, 0.5) / 1e3;
	values->p99_us[round] = sl_rank(load->latency_ns, load->answered, 0.99) / 1e3;
	values->cpu_us[round] = (double)cpu_ns / 1e3 / (double)load->answered;
	values->lost += load->lost;
	values->wrong += load->wrong;
	return 0;
}

static double median(struct bench *bench, const double *values)
{
	memcpy(bench->scratch, values, bench->rounds * sizeof(*values));
	return sl_median(bench->scratch, bench->rounds);
}

static void report_party(struct bench *bench, struct sl_report *report, const struct kind *kind,
			 enum dns_between between)
{
	const struct values *values = &bench->values[between];
	char name[64];

	snprintf(name, sizeof(name), "%s, %s", kind->name, between_names[between]);
	sl_report_row(report, "queries", name);
	sl_report_float(report, "a_second", median(bench, values->rate));
	sl_report_float(report, "p50_us", median(bench, values->p50_us));
	sl_report_float(report, "p99_us", median(bench, values->p99_us));
	sl_report_float(report, "cpu_us", median(bench, values->cpu_us));
	sl_report_int(report, "lost", (int64_t)values->lost);
	sl_report_samples(report, "samples", values->rate, bench->rounds);
	snprintf(name, sizeof(name), "wrong answers, %s, %s", kind->name, between_names[between]);
	sl_report_equal(report, name, (int64_t)values->wrong, 0);
}

static void report_kind(struct bench *bench, struct sl_report *report, const struct kind *kind)
{
	const struct values *ours = &bench->values[DNS_SLUICE];

	for (int i = 0; i < DNS_BETWEEN_MAX; i++)
		if (bench->parties[i].port)
			report_party(bench, report, kind, (enum dns_between)i);
	for (int i = DNS_DNSMASQ; i < DNS_BETWEEN_MAX; i++) {
		const struct values *other = &bench->values[i];
		char name[64];

		if (!bench->parties[i].port)
			continue;
		snprintf(name, sizeof(name), "%s, to %s", kind->name, between_names[i]);
		sl_report_row(report, "ratios", name);
		sl_report_float(report, "rate",
				sl_paired_ratio(ours->rate, other->rate, bench->scratch,
						bench->rounds));
		sl_report_float(report, "p50",
				sl_paired_ratio(ours->p50_us, other->p50_us, bench->scratch,
						bench->rounds));
		sl_report_float(report, "p99",
				sl_paired_ratio(ours->p99_us, other->p99_us, bench->scratch,
						bench->rounds));
		sl_report_float(report, "cpu",
				sl_paired_ratio(ours->cpu_us, other->cpu_us, bench->scratch,
						bench->rounds));
	}
}

static int measure_kind(struct bench *bench, struct sl_report *report, const struct kind *kind,
			struct sl_err *err)
{
	unsigned int rounds = bench->options->common.quick ? 2 : bench->options->rounds;
	int ret = 0;

	memset(bench->values, 0, sizeof(bench->values));
	bench->rounds = 0;
	for (unsigned int i = 0; i < rounds && !sl_world_stopped(); i++) {
		/* Who begins takes turns as well. */
		for (unsigned int j = 0; j < DNS_BETWEEN_MAX && !ret; j++) {
			unsigned int who = (i + j) % DNS_BETWEEN_MAX;

			if (bench->parties[who].port)
				ret = turn(bench, kind, (enum dns_between)who, i, err);
		}
		if (ret)
			return ret;
		bench->rounds++;
	}
	report_kind(bench, report, kind);
	return 0;
}

static int start_other(struct sl_report *report, int ret, const char *name)
{
	if (ret != -ENOENT)
		return ret;
	sl_report_note(report,
		       "%s is not installed: nothing to compare with (tools/deps.sh "
		       "install bench)",
		       name);
	return 0;
}

static int start_all(struct bench *bench, struct sl_report *report, struct sl_err *err)
{
	struct dns_party *parties = bench->parties;
	int ret = dns_server_start(&parties[DNS_DIRECT], err);
	uint16_t upstream = parties[DNS_DIRECT].port;

	ret = ret ?: dns_sluice_start(&parties[DNS_SLUICE], upstream, err);
	if (!ret)
		ret = start_other(report, dns_dnsmasq_start(&parties[DNS_DNSMASQ], upstream, err),
				  "dnsmasq");
	if (!ret)
		ret = start_other(report, dns_unbound_start(&parties[DNS_UNBOUND], upstream, err),
				  "unbound");
	return ret;
}

static void bench_free(struct bench **bench)
{
	if (!*bench)
		return;
	for (int i = 0; i < DNS_BETWEEN_MAX; i++)
		sl_child_stop(&(*bench)->parties[i].child);
	free((*bench)->load.latency_ns);
	free(*bench);
}

static int measure(const struct dns_options *opt, struct sl_report *report, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	__attribute__((cleanup(bench_free))) struct bench *bench = calloc(1, sizeof(*bench));
	int ret = sl_world_new(&world, err);

	if (ret)
		return ret;
	if (!bench)
		return sl_err_sys(err, ENOMEM, "bench");
	bench->options = opt;
	bench->load = (struct dns_load){ .sockets = opt->sockets,
					 .inflight = opt->inflight,
					 .ms = opt->common.quick ? 100 : opt->ms,
					 .room = (size_t)opt->ms * ANSWERS_MS };
	bench->load.latency_ns = calloc(bench->load.room, sizeof(*bench->load.latency_ns));
	if (!bench->load.latency_ns)
		return sl_err_sys(err, ENOMEM, "bench");
	ret = start_all(bench, report, err);
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !ret && !sl_world_stopped(); i++)
		ret = measure_kind(bench, report, &kinds[i], err);
	return ret;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	const struct dns_options *opt = options;
	int rc;

	sl_report_setting(report, "sockets", opt->sockets);
	sl_report_setting(report, "inflight", opt->inflight);
	rc = measure(opt, report, err);
	if (rc)
		return rc;
	sl_report_note(report, "clients, who stands between, and upstream share the machine's "
			       "CPUs; each has one thread");
	sl_report_note(report, "cached: 64 names over and over; fresh names: each once, with a "
			       "TTL of a second; sluice leases every address");
	return 0;
}

static int dns_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "dns", options, bench);
}

const struct sl_command sl_bench_dns = {
	.name = "dns",
	.summary = "queries through policy DNS, dnsmasq, unbound and neither",
	.options = dns_options,
	.options_size = sizeof(struct dns_options),
	.run = dns_run,
};
