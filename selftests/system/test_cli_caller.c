/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice in the hands of a caller who closed descriptors or set limits. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_caller, .init = world_up, .fini = world_down, .timeout = 120);

static void close_in_and_out(void)
{
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
}

static void close_err(void)
{
	close(STDERR_FILENO);
}

/* No descriptor of sluice's takes their place, and the command finds them closed as well. */
Test(cli_caller, closed_descriptors)
{
	struct cli cli;

	CLI_BEFORE(&cli, close_in_and_out, "run", "-q", "--", "sh", "-c",
		   "for fd in 0 1; do test -e /proc/$$/fd/$fd && echo $fd is open >&2; done; "
		   "exit 7");
	cr_expect_eq(cli.status, 7, "%d: %s", cli.status, cli.err);
	cr_expect_str_eq(cli.err, "");
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
	CLI_BEFORE(&cli, close_in_and_out, "version");
	cr_expect_eq(cli.status, 1);
	cr_expect_not_null(strstr(cli.err, "writing the output"), "%s", cli.err);
	cli_free(&cli);
}

/* What is meant for stderr does not land in a file that was opened in its place. */
Test(cli_caller, closed_stderr_and_events)
{
	char path[PATH_MAX], line[65536];
	_cleanup_file_ FILE *file = NULL;
	unsigned int lines = 0;
	struct cli cli;

	snprintf(path, sizeof(path), "%s/events", world.scratch);
	CLI_BEFORE(&cli, close_err, "run", "--events", path, "--", "true");
	cr_expect_eq(cli.status, 0);
	cli_free(&cli);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	for (; fgets(line, sizeof(line), file); lines++)
		json_object_put(json_of(line));
	cr_expect_geq(lines, 3);
}

static void few_files(void)
{
	const struct rlimit limit = { .rlim_cur = 40, .rlim_max = 1024 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void no_files(void)
{
	const struct rlimit limit = { .rlim_cur = 40, .rlim_max = 40 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A low soft limit is sluice's to raise, and the command's to have. */
Test(cli_caller, few_open_files)
{
	struct cli cli;

	CLI_BEFORE(&cli, few_files, "run", "-q", "--", "sh", "-c", "ulimit -Sn; ulimit -Hn");
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_str_eq(cli.out, "40\n1024\n");
	cli_free(&cli);
	CLI_BEFORE(&cli, no_files, "run", "-q", "--", "true");
	cli_expect_error(&cli, 125, "Too many open files");
	cr_expect_not_null(strstr(cli.err, "ulimit -n"), "%s", cli.err);
	cli_free(&cli);
}

static void interrupted(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGINT);
}

/* While sluice starts, the signal has nobody else to end: the command does not run. */
Test(cli_caller, interrupted_while_it_starts)
{
	struct cli cli;

	CLI_BEFORE(&cli, interrupted, "run", "--", "echo", "ran");
	cr_expect_eq(cli.status, 128 + SIGINT);
	cr_expect_str_eq(cli.out, "");
	cr_expect_str_eq(cli.err, "");
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}
