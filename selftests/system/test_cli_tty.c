/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice on a terminal: the command is as if there were no sluice in between. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_tty, .init = world_up, .fini = world_down, .timeout = 120);

#define INTERRUPT "\003"
#define SUSPEND "\032"

/* Reads lines until "end"; a signal that is trapped interrupts the read. */
#define READ_LINES                                                           \
	"echo ready; while :; do if read -r line; then echo \"got $line\"; " \
	"if [ \"$line\" = end ]; then exit 5; fi; fi; done"

/*
 * sluice stands still while the command takes the terminal's signal: one more from sluice
 * would not merge with it, and USR1 comes after that.
 */
Test(cli_tty, interrupt_comes_once)
{
	struct cli cli;
	int status;

	cli_terminal(&cli,
		     CLI_ARGV("run", "-q", "--", "sh", "-c",
			      "trap 'echo interrupted' INT; trap 'echo user' USR1; " READ_LINES));
	cli_await(&cli, "ready");
	cr_assert_eq(kill(cli.pid, SIGSTOP), 0);
	cr_assert_eq(waitpid(cli.pid, &status, WUNTRACED), cli.pid);
	cli_type(&cli, INTERRUPT);
	cli_await(&cli, "interrupted");
	cr_assert_eq(kill(cli.pid, SIGUSR1), 0);
	cr_assert_eq(kill(cli.pid, SIGCONT), 0);
	cli_await(&cli, "user");
	cli_type(&cli, "end\n");
	cli_end(&cli);
	cr_expect_eq(cli.status, 5, "%s", cli.out);
	cr_expect_eq(text_count(cli.out, "interrupted"), 1, "%s", cli.out);
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}

Test(cli_tty, interrupt_ends_the_command)
{
	struct cli cli;

	cli_terminal(&cli, CLI_ARGV("run", "--", "sh", "-c", "echo ready; exec sleep 1000"));
	cli_await(&cli, "ready");
	cli_type(&cli, INTERRUPT);
	cli_end(&cli);
	cr_expect_eq(cli.status, 128 + SIGINT);
	/* The table comes all the same. */
	cr_expect_not_null(strstr(cli.out, "0 sockets"), "%s", cli.out);
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}

Test(cli_tty, keys_and_size)
{
	struct winsize size = { .ws_row = 17, .ws_col = 71 };
	struct cli cli;

	cli_terminal(&cli, CLI_ARGV("run", "-q", "--", "sh", "-c",
				    "stty size; stty -icanon -echo min 1; echo ready; "
				    "key=$(dd bs=1 count=1 2>/dev/null); echo \"key $key\"; "
				    "trap 'stty size' WINCH; " READ_LINES));
	cli_await(&cli, "40 100\r\n");
	cli_await(&cli, "ready");
	cli_type(&cli, "q");
	cli_await(&cli, "key q");
	while (text_count(cli.out, "ready") < 2)
		cli_await(&cli, "key q\r\nready");
	cr_assert_eq(ioctl(cli.in, TIOCSWINSZ, &size), 0);
	cli_await(&cli, "17 71\r\n");
	cli_type(&cli, "end\n");
	cli_end(&cli);
	cr_expect_eq(cli.status, 5);
	cli_free(&cli);
}

/* Under a shell with job control: stopped, known as a job, continued. */
Test(cli_tty, stop_and_continue)
{
	char line[1024], script[128];
	struct cli cli;
	FILE *file;

	snprintf(script, sizeof(script), "%s/script", world.scratch);
	file = fopen(script, "we");
	cr_assert_not_null(file);
	fputs("trap 'echo continued' CONT\n" READ_LINES "\n", file);
	fclose(file);
	setenv("PS1", "", 1);
	cli_terminal(&cli,
		     (const char *const[]){ "/bin/bash", "--norc", "--noprofile", "-i", NULL });
	/* What is typed is echoed: it must not look like what is waited for. */
	snprintf(line, sizeof(line), "%s run -q -- sh %s; echo sta''tus $?\n", getenv("SLUICE"),
		 script);
	cli_type(&cli, line);
	cli_await(&cli, "ready");
	cli_type(&cli, SUSPEND);
	cli_await(&cli, "Stopped");
	cli_await(&cli, "status 148");
	/* Not before the command is in the foreground: the shell would take what is typed. */
	cli_type(&cli, "fg; echo sta''tus $?\n");
	cli_await(&cli, "continued");
	cli_type(&cli, "more\n");
	cli_await(&cli, "got more");
	cli_type(&cli, "end\n");
	cli_await(&cli, "status 5");
	cli_type(&cli, "exit 6\n");
	cli_end(&cli);
	cr_expect_eq(cli.status, 6, "%s", cli.out);
	cli_free(&cli);
}

/* The terminal goes away: the command gets SIGHUP, and nothing is left. */
Test(cli_tty, hangup)
{
	struct cli cli;
	pid_t pid;

	cli_terminal(&cli, CLI_ARGV("run", "-q", "--", "sh", "-c", "echo ready; exec sleep 1000"));
	cli_await(&cli, "ready");
	pid = cli.pid;
	close(cli.in);
	close(cli.fds[0]);
	cli.in = cli.fds[0] = -1;
	cli_end(&cli);
	cr_expect_eq(cli.status, 128 + SIGHUP);
	cr_expect(run_left_nothing(pid));
	cli_free(&cli);
}

Test(cli_tty, watch)
{
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	const char *summary;
	char to[64];
	struct cli cli;

	snprintf(to, sizeof(to), "127.0.0.1:%u", port);
	cli_terminal(&cli,
		     CLI_ARGV("run", "--watch", "--", "sh", "-c", "exec \"$0\" \"$@\" >/dev/null",
			      getenv("SL_LOAD"), "tcp-send", "--server", to));
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.out);
	cr_expect_geq(text_count(cli.out, to), 3, "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "exec"), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "connect"), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "close"), "%s", cli.out);
	summary = strstr(cli.out, "sluice: 1 socket\r\n");
	cr_assert_not_null(summary, "%s", cli.out);
	cr_expect_leq(text_width(summary), 100, "%s", cli.out);
	/* Its chain of images is cut, as many as there are. */
	*strstr(cli.out, "connect") = '\0';
	cr_expect_leq(text_width(cli.out), 100, "%s", cli.out);
	load_end(&server);
	load_free(&server);
	cli_free(&cli);
}
