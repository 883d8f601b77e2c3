/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `sluice run -- true` adds to `true`: with an agent, with its policy, and without. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench.h"
#include "daemon.h"
#include "program.h"
#include "report.h"
#include "stats.h"
#include "world.h"

#define TRUE_PATH "/bin/true"
#define BUDGET_MS 60
#define ROUNDS_MAX 1000

struct run_options {
	struct sl_bench_common common;
	uint32_t rounds;
};

static const struct sl_option run_options[] = {
	SL_BENCH_OPTIONS(struct run_options),
	SL_OPTION(U32, struct run_options, rounds, "rounds", 'n', "COUNT", "rounds of each mode",
		  .min = 1, .max = ROUNDS_MAX, .fallback = "40"),
	{ 0 },
};

enum mode { MODE_BARE, MODE_AGENT, MODE_AGENT_POLICY, MODE_ALONE, MODE_MAX };

static const char *const names[MODE_MAX] = { "true", "run, with an agent",
					     "run --policy, with an agent", "run, without" };

struct bench {
	struct sl_world *world;
	struct sl_daemon agent;
	char sluice[PATH_MAX], policy[128];
	double ms[MODE_MAX][ROUNDS_MAX];
	double scratch[ROUNDS_MAX];
};

static int spawn(pid_t *pid, const char *path, const char *const argv[], struct sl_err *err)
{
	posix_spawn_file_actions_t actions;
	int rc;

	posix_spawn_file_actions_init(&actions);
	/* What it says is not looked at, but for how it ends. */
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(pid, path, &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc ? sl_err_sys(err, rc, "can't start '%s'", path) : 0;
}

static int await(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int turn(struct bench *b, enum mode mode, double *ms, struct sl_err *err)
{
	const char *const argvs[MODE_MAX][10] = {
		{ "true" },
		{ "sluice", "--agent", b->agent.socket, "run", "-q", "--", TRUE_PATH },
		{ "sluice", "--agent", b->agent.socket, "run", "-q", "--policy", b->policy, "--",
		  TRUE_PATH },
		{ "sluice", "--agent", "none", "run", "-q", "--", TRUE_PATH },
	};
	uint64_t begin = sl_bench_now_ns();
	pid_t pid;
	int rc = spawn(&pid, mode == MODE_BARE ? TRUE_PATH : b->sluice, argvs[mode], err);

	if (rc)
		return rc;
	rc = await(pid);
	*ms = (double)(sl_bench_now_ns() - begin) / 1e6;
	return rc ? sl_err_set(err, ECHILD, "'%s' ended with %d", names[mode], rc) : 0;
}

/* Goes with the agent's directory. */
static int write_policy(struct bench *b, struct sl_err *err)
{
	static const char text[] = "version: 1\n"
				   "network_policies:\n"
				   "  bench:\n"
				   "    endpoints: [{cidr: 192.0.2.0/24, port: 443}]\n"
				   "    binaries: [{path: " TRUE_PATH "}]\n";
	_cleanup_fd_ int fd = -1;

	snprintf(b->policy, sizeof(b->policy), "%s/policy.yaml", b->agent.dir);
	fd = open(b->policy, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)
		       ? sl_err_sys(err, errno ?: EIO, "can't write '%s'", b->policy)
		       : 0;
}

static int measure(struct bench *b, uint32_t rounds, struct sl_err *err)
{
	int rc = 0;
	double warm;

	for (int mode = 0; !rc && mode < MODE_MAX; mode++)
		rc = turn(b, (enum mode)mode, &warm, err);
	for (uint32_t i = 0; !rc && i < rounds && !sl_world_stopped(); i++)
		for (int mode = 0; !rc && mode < MODE_MAX; mode++)
			rc = turn(b, (enum mode)mode, &b->ms[mode][i], err);
	return rc;
}

static void tell(struct bench *b, uint32_t rounds, struct sl_report *report)
{
	double more[ROUNDS_MAX], over;

	for (int mode = 0; mode < MODE_MAX; mode++) {
		for (uint32_t i = 0; i < rounds; i++)
			more[i] = b->ms[mode][i] - b->ms[MODE_BARE][i];
		over = sl_median(more, rounds);
		memcpy(b->scratch, b->ms[mode], rounds * sizeof(double));
		sl_report_row(report, "run", names[mode]);
		sl_report_float(report, "median_ms", sl_median(b->scratch, rounds));
		sl_report_float(report, "over_true_ms", over);
		sl_report_samples(report, "ms", b->ms[mode], rounds);
		if (mode == MODE_AGENT)
			sl_report_at_most(report, "run -- true over true, with an agent, ms", over,
					  BUDGET_MS);
	}
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	const struct run_options *opt = options;
	uint32_t rounds = opt->common.quick ? 3 : opt->rounds;
	struct bench *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return sl_err_sys(err, ENOMEM, "bench");
	rc = sl_program_find(b->sluice, "sluice", "SLUICE", err);
	rc = rc ?: sl_world_new(&b->world, err);
	rc = rc ?: sl_daemon_start(&b->agent, b->world, err);
	rc = rc ?: write_policy(b, err);
	rc = rc ?: measure(b, rounds, err);
	sl_daemon_stop(&b->agent);
	sl_world_free(&b->world);
	if (!rc) {
		tell(b, rounds, report);
		sl_report_note(report, "one operation: spawn, until the end was waited for; the "
				       "modes take turns, each against `true` of the same round");
	}
	free(b);
	return rc;
}

static int run_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "run", options, bench);
}

const struct sl_command sl_bench_run = {
	.name = "run",
	.summary = "`sluice run -- true` over `true`: with an agent, and without",
	.options = run_options,
	.options_size = sizeof(struct run_options),
	.run = run_run,
};
