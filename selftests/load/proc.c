/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NS_PER_S 1000000000ULL

static uint64_t deadline_ns;

uint64_t sl_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void on_alarm(int sig)
{
	static const char text[] = "what=timeout\n";

	(void)sig;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(SL_EXIT_FAIL);
	_exit(SL_EXIT_FAIL);
}

static void on_pipe(int sig)
{
	(void)sig;
}

static void arm(void)
{
	uint64_t now = sl_now_ns();
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	alarm((unsigned int)(left / NS_PER_S) + 1);
}

void sl_deadline_arm(uint64_t timeout_s)
{
	const char *inherited = getenv("SL_LOAD_DEADLINE");
	/* A handler, not SIG_IGN: exec resets it, so tail commands start with the default. */
	struct sigaction pipe_action = { .sa_handler = on_pipe, .sa_flags = SA_RESTART };
	struct sigaction action = { .sa_handler = on_alarm };
	char text[32];

	if (timeout_s != SL_UNSET || !inherited ||
	    sl_number(inherited, UINT64_MAX, &deadline_ns) < 0)
		deadline_ns = sl_now_ns() + sl_or(timeout_s, SL_TIMEOUT_S) * NS_PER_S;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)deadline_ns);
	setenv("SL_LOAD_DEADLINE", text, 1);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGPIPE, &pipe_action, NULL);
	arm();
}

pid_t sl_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		arm();
	return pid;
}

static int status_result(int status)
{
	if (!WIFEXITED(status))
		return -EIO;
	switch (WEXITSTATUS(status)) {
	case SL_EXIT_OK:
		return 0;
	case SL_EXIT_SKIP:
		return -SL_ENOFEATURE;
	case SL_EXIT_USAGE:
		return -SL_EUSAGE;
	default:
		return -EIO;
	}
}

static pid_t wait_retry(pid_t pid, int *status)
{
	pid_t got;

	do {
		got = waitpid(pid, status, 0);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

int sl_wait(pid_t pid)
{
	int status, rc;

	rc = wait_retry(pid, &status);
	return rc < 0 ? rc : status_result(status);
}

int sl_wait_all(void)
{
	int rc = 0, status;

	while (wait_retry(-1, &status) > 0) {
		if (rc == 0)
			rc = status_result(status);
	}
	return rc;
}

int sl_reap_one(bool quiet)
{
	siginfo_t info = { .si_pid = 0 };
	struct sl_line line;
	uint64_t ticks = 0;
	int rc, code;

	/* WNOWAIT: a zombie still has its start time. */
	do {
		rc = waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
	} while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -errno;
	code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	if (!quiet) {
		(void)sl_start_ticks(info.si_pid, &ticks);
		sl_line_start(&line, "child");
		sl_line_add(&line, "pid", "%d", info.si_pid);
		sl_line_start_time(&line, ticks);
		sl_line_add(&line, "exit", "%d", code);
		sl_line_end(&line);
	}
	rc = wait_retry(info.si_pid, &(int){ 0 });
	return rc < 0 ? rc : code;
}

void sl_exit(int rc)
{
	_exit(sl_exit_code(rc));
}

int sl_copy_self_to(int fd)
{
	_cleanup_fd_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (from < 0)
		return -errno;
	do {
		n = sendfile(fd, from, NULL, 1 << 20);
	} while (n > 0);
	return n < 0 ? -errno : 0;
}

int sl_copy_self(const char *dir, const char *name, char path[PATH_MAX])
{
	_cleanup_fd_ int fd = -1;
	int n = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	if (n < 0 || n >= PATH_MAX)
		return -ENAMETOOLONG;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0755) < 0)
		return -errno;
	return sl_copy_self_to(fd);
}

void sl_argv_add(struct sl_argv *argv, const char *fmt, ...)
{
	size_t room = sizeof(argv->text) - argv->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(argv->text + argv->used, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room || argv->n >= SL_ARGV_MAX) {
		argv->full = true;
		return;
	}
	argv->v[argv->n++] = argv->text + argv->used;
	argv->v[argv->n] = NULL;
	argv->used += (size_t)n + 1;
}

void sl_argv_start(struct sl_argv *argv, const char *path, const char *cmd)
{
	argv->n = 0;
	argv->used = 0;
	argv->full = false;
	sl_argv_add(argv, "%s", path);
	sl_argv_add(argv, "%s", cmd);
}

static void add_number(struct sl_argv *argv, const char *name, uint64_t value)
{
	if (value == SL_UNSET)
		return;
	sl_argv_add(argv, "--%s", name);
	sl_argv_add(argv, "%llu", (unsigned long long)value);
}

static void add_text(struct sl_argv *argv, const char *name, const char *value)
{
	if (!value)
		return;
	sl_argv_add(argv, "--%s", name);
	sl_argv_add(argv, "%s", value);
}

void sl_argv_tail(struct sl_argv *argv, const struct sl_opts *o)
{
	char text[SL_ADDR_TEXT];

	if (o->n_servers > 0) {
		sl_addr_text(&o->server[0], text);
		add_text(argv, "server", text);
	}
	add_number(argv, "bytes", o->bytes);
	add_number(argv, "count", o->count);
	add_text(argv, "via", o->via);
	add_text(argv, "dir", o->dir);
	if (o->identify)
		sl_argv_add(argv, "--identify");
	if (o->hold)
		sl_argv_add(argv, "--hold");
	if (!o->tail)
		return;
	sl_argv_add(argv, "--");
	for (char **arg = o->tail; *arg; arg++) {
		if (argv->n >= SL_ARGV_MAX) {
			argv->full = true;
			return;
		}
		argv->v[argv->n++] = *arg;
	}
	argv->v[argv->n] = NULL;
}

int sl_exec(const char *path, struct sl_argv *argv)
{
	if (argv->full)
		return sl_fail("exec", E2BIG);
	execv(path, argv->v);
	return sl_fail("exec", errno);
}

int sl_self_path(const struct sl_opts *o, const char *name, char path[PATH_MAX])
{
	ssize_t n;

	if (o->dir)
		return sl_copy_self(o->dir, name, path);
	n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

void sl_sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000L };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

void sl_pace(uint64_t start_ns, uint64_t i, uint64_t rate)
{
	uint64_t due, now;

	if (rate == 0)
		return;
	due = start_ns + i * NS_PER_S / rate;
	now = sl_now_ns();
	if (due > now)
		sl_sleep_ms((unsigned int)((due - now) / 1000000));
}

void sl_wait_stdin(void)
{
	char text[256];
	ssize_t n;

	do {
		n = read(STDIN_FILENO, text, sizeof(text));
	} while (n > 0 || (n < 0 && errno == EINTR));
}

struct sl_ident sl_ident_self(uint32_t n)
{
	struct sl_self self;

	sl_self_read(&self);
	return (struct sl_ident){ self.start_ticks, (uint32_t)self.pid, n };
}
