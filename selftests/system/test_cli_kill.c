/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice run killed at any moment, with its keeper or without: nothing stays. */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_kill, .init = world_up, .fini = world_down, .timeout = 300);

static bool left_nothing(void *arg)
{
	return run_left_nothing(*(pid_t *)arg);
}

/* The next run finds what is left, unless a keeper is at it already. */
static void expect_cleaned(struct cli *killed)
{
	pid_t pid = killed->pid;
	struct cli next;

	CLI(&next, "run", "--", "true");
	cr_expect_eq(next.status, 0, "%s", next.err);
	cr_expect(run_left_nothing(next.pid));
	cr_expect(eventually(left_nothing, &pid));
	cli_free(&next);
	/* Its output ends once the last of its processes has gone. */
	cli_end(killed);
	cr_expect_eq(killed->status, 128 + SIGKILL, "exit %d: %s", killed->status, killed->err);
	cli_free(killed);
}

static void kill_both(pid_t run)
{
	pid_t keeper;

	/* Stopped, it starts nobody while we look. */
	cr_assert_eq(kill(run, SIGSTOP), 0);
	keeper = run_keeper(run);
	if (keeper)
		kill(keeper, SIGKILL);
	cr_assert_eq(kill(run, SIGKILL), 0);
}

Test(cli_kill, keeper_cleans_up)
{
	struct cli cli;
	pid_t pid;

	cli_start(&cli, NULL,
		  CLI_ARGV("run", "--", "sh", "-c",
			   "(setsid sleep 1000 &); echo ready; exec sleep 1000"));
	cli_await(&cli, "ready");
	pid = cli.pid;
	cr_assert_neq(run_keeper(pid), 0);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cli_end(&cli);
	cr_expect(eventually(left_nothing, &pid));
	cli_free(&cli);
}

Test(cli_kill, next_run_cleans_up)
{
	struct cli cli, next;
	pid_t pid;

	cli_start(&cli, NULL,
		  CLI_ARGV("run", "--", "sh", "-c",
			   "(setsid sleep 1000 &); echo ready; exec sleep 1000"));
	cli_await(&cli, "ready");
	pid = cli.pid;
	kill_both(pid);
	cr_expect_not(run_left_nothing(pid));
	CLI(&next, "run", "--", "true");
	cr_expect_eq(text_count(next.err, "removed what a killed run had left at "), 1, "%s",
		     next.err);
	cr_expect(run_left_nothing(pid));
	cr_expect(run_left_nothing(next.pid));
	cli_free(&next);
	cli_end(&cli);
	cli_free(&cli);
}

/* A run that goes on is no stale one. */
Test(cli_kill, others_are_left_alone)
{
	struct cli cli, next;

	cli_start(&cli, NULL,
		  CLI_ARGV("run", "-q", "--", "sh", "-c",
			   "trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done"));
	cli_await(&cli, "ready");
	CLI(&next, "run", "--", "true");
	cr_expect_eq(text_count(next.err, "removed"), 0, "%s", next.err);
	cli_free(&next);
	cr_expect_not(run_left_nothing(cli.pid));
	cr_assert_eq(kill(cli.pid, SIGTERM), 0);
	cli_end(&cli);
	cr_expect_eq(cli.status, 4);
	cli_free(&cli);
}

/* Signs of progress, in the order in which they appear. */
static const char *const signs[] = {
	"%s",       "%s/maps/ring", "%s/links/sched_process_exec",  "%s/cgroup",
	"(cgroup)", "%s/sandbox/1", "%s/sandbox/1/on_sock_release",
};

static void await_sign(const char *sign, pid_t pid)
{
	char dir[64], path[PATH_MAX];
	struct stat st;

	snprintf(dir, sizeof(dir), SL_SET_ROOT "/run-%d", pid);
	if (sign[0] == '(')
		run_cgroup(path, sizeof(path), pid);
	else
		cr_assert_lt(snprintf(path, sizeof(path), "%s%s", dir, sign + 2),
			     (int)sizeof(path));
	/* Busy: the moment is short. */
	while (lstat(path, &st))
		cr_assert_eq(kill(pid, 0), 0);
}

static void kill_at_signs(void (*kill_run)(pid_t run))
{
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		struct cli cli;

		cli_start(&cli, NULL, CLI_ARGV("run", "-q", "--", "sleep", "1000"));
		await_sign(signs[i], cli.pid);
		kill_run(cli.pid);
		expect_cleaned(&cli);
	}
}

static void kill_run_only(pid_t run)
{
	cr_assert_eq(kill(run, SIGKILL), 0);
}

Test(cli_kill, at_each_step)
{
	kill_at_signs(kill_run_only);
}

Test(cli_kill, at_each_step_with_keeper)
{
	kill_at_signs(kill_both);
}
