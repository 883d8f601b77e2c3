/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Spawning a program (vfork, execve) and waiting for it. */
#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

#include "bench.h"
#include "report.h"
#include "rounds.h"

#define TRUE_PATH "/bin/true"
#define BUDGET_RECORDING 1.03
#define BUDGET_HELD 1.08

struct exec_options {
	struct sl_bench_common common;
	uint32_t rounds, per_round, segments;
	enum sl_pin pin;
};

static const struct sl_option exec_options[] = {
	SL_BENCH_OPTIONS(struct exec_options),
	SL_OPTION(U32, struct exec_options, rounds, "rounds", 'n', "COUNT", "rounds of each mode",
		  .min = 1, .max = 100000, .fallback = "60"),
	SL_OPTION(U32, struct exec_options, per_round, "per-round", 0, "COUNT",
		  "programs spawned in one turn", .min = 1, .max = 1000000, .fallback = "100"),
	SL_OPTION(U32, struct exec_options, segments, "segments", 0, "COUNT",
		  "times that the set is loaded", .min = 1, .max = 1000, .fallback = "6"),
	SL_OPTION(CHOICE, struct exec_options, pin, "pin", 0, NULL, "CPUs to use",
		  .choices = sl_pin_names, .fallback = "two"),
	{ 0 },
};

static int spawn_true(void *arg)
{
	char *const argv[] = { (char *)"true", NULL };
	char *const envp[] = { NULL };
	int status, rc;
	pid_t pid;

	(void)arg;
	/* glibc's posix_spawn is clone(CLONE_VM | CLONE_VFORK) and execve. */
	rc = posix_spawn(&pid, TRUE_PATH, NULL, NULL, argv, envp);
	if (rc)
		return -rc;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return status ? -ECHILD : 0;
}

const struct sl_op sl_op_exec = { .name = "exec", .run = spawn_true };

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	const struct exec_options *opt = options;
	_cleanup_world_ struct sl_world *world = NULL;
	struct sl_rounds rounds = {
		.modes = SL_MODES_RECORDING | SL_MODES_HOLDING,
		.segments = opt->common.quick ? 1 : opt->segments,
		.rounds = opt->common.quick ? 5 : opt->rounds,
		.pin = opt->pin,
		.op = &sl_op_exec,
		.per_turn = opt->common.quick ? 20 : opt->per_round,
		.mediated = { .hold = SL_HOLD_EXEC, .transport = "tcp", .port = 443 },
		.budgets = { [SL_MODE_DEFAULT] = BUDGET_RECORDING, [SL_MODE_HELD] = BUDGET_HELD },
	};
	int rc;

	rc = sl_world_new(&world, err);
	if (!rc)
		rc = sl_rounds_run(world, &rounds, report, err);
	if (rc)
		return rc;
	sl_report_note(report, "one operation: vfork, exec of " TRUE_PATH ", wait");
	return 0;
}

static int exec_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "exec", options, bench);
}

const struct sl_command sl_bench_exec = {
	.name = "exec",
	.summary = "spawn a program and wait for it: bare, recorded, held",
	.options = exec_options,
	.options_size = sizeof(struct exec_options),
	.run = exec_run,
};
