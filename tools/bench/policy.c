/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decide() with 10 to 100,000 rules: it is to cost the same. A rule is an endpoint, half of
 * them prefixes, half names. Answers are checked: each query's is known beforehand.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench.h"
#include "policy/decide.h"
#include "policy_guard.h"
#include "policy_text.h"
#include "report.h"
#include "stats.h"

#define BUDGET_NS 2000
#define BUDGET_RATIO 1.5
#define GUARD_PER_TURN 1000
#define ROUNDS_MAX 1000
#define QUERIES 1024

struct policy_options {
	struct sl_bench_common common;
	uint32_t rounds;
};

static const struct sl_option policy_options[] = {
	SL_BENCH_OPTIONS(struct policy_options),
	SL_OPTION(U32, struct policy_options, rounds, "rounds", 'n', "COUNT", "rounds of each size",
		  .min = 1, .max = ROUNDS_MAX, .fallback = "50"),
	{ 0 },
};

static const uint32_t sizes[] = { 10, 1000, 10000, 100000 };

struct query {
	struct sl_addr addr;
	char name[32];
	const char *names[1];
	bool named;
	bool allowed;
};

/* One size: its policy, and what is measured. */
struct size {
	struct sl_policy *policy;
	struct sl_compiled *compiled;
	struct sl_lineage_bits lineage;
	struct query *queries;
	uint64_t load_ns, compile_ns;
	double ns[ROUNDS_MAX], ratios[ROUNDS_MAX];
	uint64_t wrong;
};

static int make_policy(struct size *size, uint32_t rules, struct sl_err *err)
{
	size_t len = 0;
	_cleanup_free_ char *text = sl_policy_text(rules, NULL, NULL, 0, &len);
	uint64_t start = sl_bench_now_ns();
	int ret;

	if (!text)
		return sl_err_sys(err, ENOMEM, "policy");
	ret = sl_policy_load(&size->policy, text, len, "bench", err);
	size->load_ns = sl_bench_now_ns() - start;
	if (ret)
		return ret;
	start = sl_bench_now_ns();
	ret = sl_compiled_new(&size->compiled, size->policy, err);
	size->compile_ns = sl_bench_now_ns() - start;
	return ret;
}

/* Half of them to what /b0 may reach, half to what no rule has. */
static int make_queries(struct size *size, uint32_t rules)
{
	const struct sl_image image = { .path = "/b0" };
	struct sl_image_bits bits;

	sl_compiled_image(size->compiled, &image, &bits);
	sl_lineage_begin(&size->lineage, &bits);
	size->queries = calloc(QUERIES, sizeof(*size->queries));
	if (!size->queries)
		return -ENOMEM;
	for (uint32_t i = 0; i < QUERIES; i++) {
		struct query *query = &size->queries[i];
		/* Entries 0, 256, 512, … have /b0. */
		uint32_t period = SL_POLICY_TEXT_IMAGES * SL_POLICY_TEXT_PER_ENTRY;
		uint32_t turns = (rules + period - 1) / period;
		uint32_t rule = i % turns * period + i / 2 % SL_POLICY_TEXT_PER_ENTRY;

		query->allowed = i % 4 < 2;
		query->named = rule % 2;
		query->addr.be[2] = SL_BE32(0xffff);
		query->addr.be[3] = SL_BE32((query->named ? 0xcb007100 : 0x0b000000) |
					    (query->named ? 1 : rule & 0xfffffe));
		if (!query->allowed && !query->named)
			query->addr.be[3] = SL_BE32(0x0c000000 | rule);
		snprintf(query->name, sizeof(query->name), "h%u.example.%s", rule,
			 query->allowed ? "org" : "net");
		query->names[0] = query->name;
	}
	return 0;
}

static void measure(struct size *size, uint32_t round, uint32_t repeat)
{
	uint64_t start = sl_bench_now_ns();

	for (uint32_t i = 0; i < repeat * QUERIES; i++) {
		const struct query *at = &size->queries[i % QUERIES];
		const struct sl_query query = {
			.lineage = &size->lineage,
			.port = 443,
			.addr = at->addr,
			.names = at->names,
			.name_count = at->named,
		};
		struct sl_decision decision;

		sl_decide(size->compiled, &query, &decision);
		size->wrong += (decision.verdict == SL_VERDICT_ALLOW) != at->allowed;
	}
	size->ns[round] = (double)(sl_bench_now_ns() - start) / (repeat * QUERIES);
}

static void report_size(struct sl_report *report, struct size *size, const struct size *smallest,
			uint32_t rules, uint32_t rounds)
{
	double copy[ROUNDS_MAX], base[ROUNDS_MAX], ns, ratio;
	char name[32];

	snprintf(name, sizeof(name), "%u rules", rules);
	memcpy(copy, size->ns, sizeof(copy));
	memcpy(base, smallest->ns, sizeof(base));
	ratio = sl_paired_ratio(size->ns, base, size->ratios, rounds);
	ns = sl_median(copy, rounds);
	sl_report_row(report, "decide", name);
	sl_report_float(report, "load_ms", (double)size->load_ns / 1e6);
	sl_report_float(report, "compile_ms", (double)size->compile_ns / 1e6);
	sl_report_int(report, "classes", (int64_t)sl_compiled_class_count(size->compiled));
	sl_report_float(report, "ns", ns);
	sl_report_float(report, "ratio", ratio);
	sl_report_equal(report, name, (int64_t)size->wrong, 0);
	if (rules == 10000) {
		sl_report_at_most(report, "decide, 10000 rules, ns", ns, BUDGET_NS);
		sl_report_at_most(report, "decide, 10000 rules, against 10", ratio, BUDGET_RATIO);
	}
}

static int run(struct size *set, const struct policy_options *opt, struct sl_report *report,
	       struct sl_err *err)
{
	uint32_t rounds = opt->common.quick && opt->rounds > 5 ? 5 : opt->rounds;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int ret = make_policy(&set[i], sizes[i], err);

		if (!ret && make_queries(&set[i], sizes[i]))
			ret = sl_err_sys(err, ENOMEM, "queries");
		if (ret)
			return ret;
	}
	for (uint32_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			measure(&set[i], round, 20);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		report_size(report, &set[i], &set[0], sizes[i], rounds);
	sl_report_note(report, "one operation: a decision about an address or a leased name, with "
			       "the image's bits at hand; half of them are denied");
	return 0;
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	const struct policy_options *opt = options;
	struct size *set = calloc(ARRAY_SIZE(sizes), sizeof(*set));
	int rc;

	if (!set)
		return sl_err_sys(err, ENOMEM, "bench");
	rc = run(set, opt, report, err);
	if (!rc && geteuid())
		sl_report_note(report, "the guard was not measured: that needs root");
	else if (!rc)
		rc = sl_policy_guard_run(report, opt->common.quick ? 5 : opt->rounds,
					 opt->common.quick ? 200 : GUARD_PER_TURN, err);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		sl_compiled_free(&set[i].compiled);
		sl_policy_free(&set[i].policy);
		free(set[i].queries);
	}
	free(set);
	return rc;
}

static int policy_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "policy", options, bench);
}

const struct sl_command sl_bench_policy = {
	.name = "policy",
	.summary = "load, compile and ask policies of 10 to 100,000 rules; in the kernel, as root",
	.options = policy_options,
	.options_size = sizeof(struct policy_options),
	.run = policy_run,
};
