/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice run: exit statuses, signals, what it prints, what it leaves. */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_run, .init = world_up, .fini = world_down, .timeout = 120);

/* A process answers a signal by its output; what it leaves is looked for afterwards. */
#define SHELL(script) "run", "-q", "--", "sh", "-c", script

static void end_clean(struct cli *cli)
{
	pid_t pid = cli->pid;

	cli_end(cli);
	cr_expect(run_left_nothing(pid));
}

Test(cli_run, exit_status_is_the_commands)
{
	static const struct {
		const char *script;
		int status;
	} cases[] = {
		{ "exit 0", 0 },
		{ "exit 7", 7 },
		{ "exit 125", 125 },
		{ "exit 255", 255 },
		{ "kill -TERM $$", 128 + SIGTERM },
		{ "kill -KILL $$", 128 + SIGKILL },
		{ "kill -SEGV $$", 128 + SIGSEGV },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli cli;

		CLI(&cli, SHELL(cases[i].script));
		cr_expect_eq(cli.status, cases[i].status, "%s: exit %d", cases[i].script,
			     cli.status);
		cr_expect_str_eq(cli.err, "");
		cr_expect_str_eq(cli.out, "");
		cr_expect(run_left_nothing(cli.pid));
		cli_free(&cli);
	}
}

Test(cli_run, exit_status_when_it_cannot_run)
{
	char file[PATH_MAX];
	struct cli cli;
	FILE *f;

	snprintf(file, sizeof(file), "%s/not-executable", world.scratch);
	f = fopen(file, "we");
	cr_assert_not_null(f);
	fclose(f);
	CLI(&cli, "run", "-q", "--", file);
	cli_expect_error(&cli, 126, "Permission denied");
	cli_free(&cli);
	CLI(&cli, "run", "-q", "--", "/tmp");
	cli_expect_error(&cli, 126, "can't run '/tmp'");
	cli_free(&cli);
	CLI(&cli, "run", "--", "/tmp/there/is/none");
	cli_expect_error(&cli, 127, "can't run '/tmp/there/is/none'");
	cli_free(&cli);
	CLI(&cli, "run", "--", "no-such-command-there-is");
	cli_expect_error(&cli, 127, "can't run 'no-such-command-there-is'");
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
	CLI(&cli, "run", "--events", "/nowhere/file", "--", "true");
	cli_expect_error(&cli, 125, "/nowhere/file");
	cli_free(&cli);
	CLI(&cli, "run");
	cli_expect_error(&cli, 125, "too few arguments");
	cli_free(&cli);
}

Test(cli_run, signals_reach_the_command)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct cli cli;

		cli_start(&cli, NULL,
			  CLI_ARGV(SHELL("trap 'exit 43' TERM INT HUP QUIT USR1 USR2; echo ready; "
					 "while :; do sleep 0.01; done")));
		cli_await(&cli, "ready");
		cr_assert_eq(kill(cli.pid, signals[i]), 0);
		end_clean(&cli);
		cr_expect_eq(cli.status, 43, "signal %d: exit %d", signals[i], cli.status);
		cli_free(&cli);
		cli_start(&cli, NULL, CLI_ARGV(SHELL("echo ready; exec sleep 1000")));
		cli_await(&cli, "ready");
		cr_assert_eq(kill(cli.pid, signals[i]), 0);
		end_clean(&cli);
		cr_expect_eq(cli.status, 128 + signals[i]);
		cli_free(&cli);
	}
}

static void ignore_child_and_hup(void)
{
	signal(SIGCHLD, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

static unsigned long long mask_of(const struct cli *cli, const char *name)
{
	const char *line = strstr(cli->out, name);

	cr_assert_not_null(line, "no %s in: %s", name, cli->out);
	return strtoull(line + strlen(name), NULL, 16);
}

#define BIT_OF(signal) (1ULL << ((signal)-1))

/* What the caller had ignored neither hangs sluice nor is different for the command. */
Test(cli_run, ignored_signals)
{
	const unsigned long long looked = BIT_OF(SIGHUP) | BIT_OF(SIGPIPE) | BIT_OF(SIGCHLD);
	struct cli cli;

	CLI_BEFORE(&cli, ignore_child_and_hup, "run", "-q", "--", "cat", "/proc/self/status");
	cr_expect_eq(cli.status, 0);
	cr_expect_eq(mask_of(&cli, "SigIgn:") & looked, BIT_OF(SIGHUP) | BIT_OF(SIGCHLD));
	cli_free(&cli);
	CLI(&cli, "run", "-q", "--", "cat", "/proc/self/status");
	cr_expect_eq(mask_of(&cli, "SigIgn:") & looked, 0);
	cr_expect_eq(mask_of(&cli, "SigBlk:"), 0);
	cli_free(&cli);
}

Test(cli_run, quiet_and_summary)
{
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	char to[64];
	struct cli cli;

	snprintf(to, sizeof(to), "127.0.0.1:%u", port);
	CLI(&cli, "run", "--", getenv("SL_LOAD"), "tcp-send", "--server", to);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "sluice: 1 socket\n"), "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "BINARY"), "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, to), "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "sl-load"), "%s", cli.err);
	cli_free(&cli);
	CLI(&cli, "run", "--quiet", "--", getenv("SL_LOAD"), "tcp-send", "--server", to);
	cr_expect_str_eq(cli.err, "");
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

Test(cli_run, left_processes_are_killed_and_named)
{
	struct cli cli;

	/* The output ends only once nobody holds it any more. */
	CLI(&cli, "run", "--", "sh", "-c", "sleep 1000 & (setsid sleep 1000 &); exit 3");
	cr_expect_eq(cli.status, 3);
	cr_expect_eq(text_count(cli.err, "which the command had left running\n"), 2, "%s", cli.err);
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}

/* A member that went elsewhere is a member still: it does not go on unrecorded. */
Test(cli_run, left_process_outside_of_the_cgroup)
{
	char script[2 * PATH_MAX + 256];
	struct cli cli;

	snprintf(script, sizeof(script),
		 "sh -c 'echo 0 >%s/cgroup.procs; echo moved; exec sleep 1000' & "
		 "while ! grep -q $! %s/cgroup.procs; do :; done; exit 3",
		 world.cgroup, world.cgroup);
	CLI(&cli, "run", "--", "sh", "-c", script);
	cr_expect_eq(cli.status, 3);
	cr_expect_eq(text_count(cli.err, "which the command had left running\n"), 1, "%s", cli.err);
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}

Test(cli_run, wait_all_waits)
{
	struct cli cli;

	CLI(&cli, "run", "-q", "--wait-all", "--", "sh", "-c",
	    "(setsid sh -c 'sleep 0.2; echo late' &); exit 3");
	cr_expect_eq(cli.status, 3);
	cr_expect_str_eq(cli.out, "late\n");
	cr_expect_str_eq(cli.err, "");
	cli_free(&cli);
	/* A signal after the command's end ends the waiting. */
	cli_start(&cli, NULL,
		  CLI_ARGV("run", "-q", "--wait-all", "--", "sh", "-c",
			   "setsid sh -c 'while kill -0 '$$'; do :; done 2>/dev/null; "
			   "echo waiting; exec sleep 1000' & exit 3"));
	cli_await(&cli, "waiting");
	cr_assert_eq(kill(cli.pid, SIGINT), 0);
	end_clean(&cli);
	cr_expect_eq(cli.status, 3);
	cli_free(&cli);
}

Test(cli_run, cgroup_that_vanishes)
{
	char cgroup[PATH_MAX], script[2 * PATH_MAX + 64];
	struct cli cli;

	/* The last that leaves it can remove it. */
	run_cgroup(cgroup, sizeof(cgroup), 0);
	*strrchr(cgroup, '-') = '\0';
	snprintf(script, sizeof(script), "echo 0 >%s/cgroup.procs; rmdir %s-$PPID; exit 4",
		 world.cgroup, cgroup);
	CLI(&cli, "run", "--", "sh", "-c", script);
	cr_expect_eq(cli.status, 4);
	cr_expect_eq(text_count(cli.err, "cgroup was removed while it ran"), 1, "%s", cli.err);
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}

Test(cli_run, user)
{
	struct cli cli;

	CLI(&cli, "run", "-q", "--user", "12345:54321", "--", "sh", "-c", "id -u; id -g; id -G");
	cr_expect_str_eq(cli.out, "12345\n54321\n54321\n");
	cli_free(&cli);
}
