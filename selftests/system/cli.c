/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "system/cli.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "kernel/set.h"
#include "system/agent.h"

#define CHUNK 65536

/* For sluice alone: in a test that reads a long text line by line it costs n squared. */
static void strict_strings(void)
{
	const char *options = getenv("ASAN_OPTIONS");
	char strict[PATH_MAX + 256];

	if (!options)
		return;
	snprintf(strict, sizeof(strict), "%s:strict_string_checks=1", options);
	setenv("ASAN_OPTIONS", strict, true);
}

#define ARGS_MAX 64

/* Whether it is a run that does not say itself which agent it is for. */
static bool needs_agent(const char *const argv[])
{
	bool run = false;

	for (size_t i = 1; argv[i] && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], "--agent"))
			return false;
		run |= !strcmp(argv[i], "run");
	}
	return run && !strchr(argv[0], '/');
}

/* Runs go by the agent of the test, or of CLI_AGENT, not by one that this host may have. */
static void execute(const char *path, const char *const argv[])
{
	const char *with[ARGS_MAX] = { argv[0], "--agent" };
	size_t n = 1;

	if (!needs_agent(argv)) {
		execv(path, (char *const *)argv);
		return;
	}
	with[2] = agent.pid ? agent.socket : getenv("CLI_AGENT") ?: "none";
	for (; argv[n] && n + 3 < ARGS_MAX; n++)
		with[n + 2] = argv[n];
	if (!argv[n])
		execv(path, (char *const *)with);
}

static _Noreturn void child(cli_before before, const char *const argv[])
{
	const char *path = strchr(argv[0], '/') ? argv[0] : getenv("SLUICE");

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	strict_strings();
	if (before)
		before();
	if (path)
		execute(path, argv);
	_exit(99);
}

static void cli_init(struct cli *cli)
{
	*cli = (struct cli){ .in = -1, .fds = { -1, -1 } };
	cli->out = strdup("");
	cli->err = strdup("");
	cr_assert_not_null(cli->out);
	cr_assert_not_null(cli->err);
	cr_assert_not_null(getenv("SLUICE"), "SLUICE names the program");
}

void cli_start(struct cli *cli, cli_before before, const char *const argv[])
{
	int out[2], err[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	cli_init(cli);
	cr_assert_geq(null, 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(err, O_CLOEXEC), 0);
	cli->pid = fork();
	cr_assert_geq(cli->pid, 0);
	if (!cli->pid) {
		dup2(null, STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		child(before, argv);
	}
	close(null);
	close(out[1]);
	close(err[1]);
	cli->fds[0] = out[0];
	cli->fds[1] = err[0];
}

void cli_terminal(struct cli *cli, const char *const argv[])
{
	struct winsize size = { .ws_row = 40, .ws_col = 100 };

	cli_init(cli);
	cli->pid = forkpty(&cli->in, NULL, NULL, &size);
	cr_assert_geq(cli->pid, 0);
	if (!cli->pid)
		child(NULL, argv);
	fcntl(cli->in, F_SETFD, FD_CLOEXEC);
	cli->fds[0] = fcntl(cli->in, F_DUPFD_CLOEXEC, 0);
	cr_assert_geq(cli->fds[0], 0);
}

/* Appends what is there to the text; closes at the end. EIO is a terminal's end. */
static void take(int *fd, char **text)
{
	size_t len = strlen(*text);
	ssize_t n;

	*text = realloc(*text, len + CHUNK + 1);
	cr_assert_not_null(*text);
	do
		n = read(*fd, *text + len, CHUNK);
	while (n < 0 && errno == EINTR);
	(*text)[len + (n > 0 ? (size_t)n : 0)] = '\0';
	if (n <= 0)
		sl_cleanup_fd(fd);
}

/* One read more; false when both have ended. */
static bool more(struct cli *cli)
{
	struct pollfd fds[] = {
		{ .fd = cli->fds[0], .events = POLLIN },
		{ .fd = cli->fds[1], .events = POLLIN },
	};

	if (cli->fds[0] < 0 && cli->fds[1] < 0)
		return false;
	if (poll(fds, 2, -1) < 0)
		return errno == EINTR;
	if (fds[0].revents)
		take(&cli->fds[0], &cli->out);
	if (fds[1].revents)
		take(&cli->fds[1], &cli->err);
	return true;
}

void cli_await(struct cli *cli, const char *text)
{
	while (!strstr(cli->out, text))
		cr_assert(more(cli), "no '%s' in: %s%s", text, cli->out, cli->err);
}

void cli_type(struct cli *cli, const char *keys)
{
	cr_assert_eq(write(cli->in, keys, strlen(keys)), (ssize_t)strlen(keys));
}

void cli_end(struct cli *cli)
{
	int status;

	while (more(cli))
		;
	cr_assert_eq(waitpid(cli->pid, &status, 0), cli->pid);
	cli->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	sl_cleanup_fd(&cli->in);
}

void cli_free(struct cli *cli)
{
	sl_cleanup_fd(&cli->in);
	sl_cleanup_fd(&cli->fds[0]);
	sl_cleanup_fd(&cli->fds[1]);
	sl_cleanup_free(&cli->out);
	sl_cleanup_free(&cli->err);
}

void cli_must(int ret)
{
	if (ret)
		_exit(98);
}

void cli_own_mounts(void)
{
	cli_must(unshare(CLONE_NEWNS));
	cli_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

void cli_expect_error(const struct cli *cli, int status, const char *text)
{
	cr_expect_eq(cli->status, status, "exit %d instead of %d: %s", cli->status, status,
		     cli->err);
	cr_expect_not_null(strstr(cli->err, text), "no '%s' in: %s", text, cli->err);
	cr_expect_eq(text_count(cli->err, "\n"), 2, "not a message and its hint: %s", cli->err);
	cr_expect_not_null(strstr(cli->err, "\nsluice: hint: "), "no hint: %s", cli->err);
	cr_expect_str_eq(cli->out, "");
}

unsigned int text_count(const char *text, const char *what)
{
	unsigned int n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

unsigned int text_width(const char *text)
{
	unsigned int widest = 0, width = 0;

	for (; *text; text++) {
		if (*text == '\n' || *text == '\r')
			width = 0;
		else if ((*text & 0xc0) != 0x80) /* not the rest of a character */
			width++;
		if (width > widest)
			widest = width;
	}
	return widest;
}
