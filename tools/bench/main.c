/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "bench.h"
#include "caller.h"
#include "soak.h"
#include "worker.h"
#include "world.h"

static const struct sl_command *const benchmarks[] = {
	&sl_bench_connect, &sl_bench_udp,    &sl_bench_exec,       &sl_bench_resolve,
	&sl_bench_churn,   &sl_bench_policy, &sl_bench_storm,      &sl_bench_attach,
	&sl_bench_busy,    &sl_bench_kill,   &sl_bench_sandboxes,  &sl_bench_run,
	&sl_bench_relay,   &sl_bench_dns,    &sl_bench_relay_soak,
};

struct all_options {
	struct sl_bench_common common;
};

static const struct sl_option all_options[] = {
	SL_BENCH_OPTIONS(struct all_options),
	{ 0 },
};

/* Runs one benchmark as if it had been named alone. */
static int run_one(struct sl_cli *cli, const struct sl_command *benchmark,
		   const struct sl_bench_common *common)
{
	_Alignas(max_align_t) char values[SL_BENCH_OPTIONS_MAX] = { 0 };
	struct sl_option_set set = { benchmark->options, values };
	int rc;

	if (benchmark->options_size > sizeof(values))
		return sl_err_set(&cli->err, EOVERFLOW, "options of '%s' are too large",
				  benchmark->name);
	rc = sl_options_default(&set, &cli->err);
	if (rc)
		return rc;
	*(struct sl_bench_common *)(void *)values = *common;
	return benchmark->run(cli, values, 0, NULL);
}

static int run_all(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	const struct all_options *opt = options;
	int status = 0, rc;

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < ARRAY_SIZE(benchmarks) && !sl_world_stopped(); i++) {
		rc = run_one(cli, benchmarks[i], &opt->common);
		if (rc < 0)
			return rc;
		status = rc > status ? rc : status;
	}
	return status;
}

static const struct sl_command all = {
	.name = "all",
	.summary = "every benchmark, one after the other",
	.options = all_options,
	.options_size = sizeof(struct all_options),
	.run = run_all,
};

static const struct sl_command *const commands[] = {
	&sl_bench_connect,
	&sl_bench_udp,
	&sl_bench_exec,
	&sl_bench_resolve,
	&sl_bench_churn,
	&sl_bench_policy,
	&sl_bench_storm,
	&sl_bench_attach,
	&sl_bench_busy,
	&sl_bench_kill,
	&sl_bench_sandboxes,
	&sl_bench_run,
	&sl_bench_relay,
	&sl_bench_dns,
	&sl_bench_relay_soak,
	&all,
	NULL,
};

static const struct sl_command root = {
	.name = "sluice-bench",
	.summary = "what recording and enforcing cost, and whether it is right under load",
	.details =
		"Needs root. Works in cgroups, a network namespace and a set of programs of its\n"
		"own, and removes them. Exits with 1 when an answer was wrong or a count did not\n"
		"add up; a budget that was missed is reported only.",
	.subcommands = commands,
};

int main(int argc, char **argv)
{
	if (argc && !strcmp(argv[0], SL_WORKER_ARGV0))
		return sl_worker_main(argc, argv);
	if (argc && !strcmp(argv[0], SL_CALLER_ARGV0))
		return sl_caller_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], SOAK_ARGUMENT))
		return soak_load_main(argc, argv);
	return sl_cli_main(&root, argc, argv);
}
