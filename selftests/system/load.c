/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of a system test, and the facts that sl-load prints. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/world.h"

#define WORDS_MAX 64
#define SKIPPED 77
#define TEXT_MAX (8UL << 20)

static void child(enum load_where where, int in, int out, char *const argv[])
{
	/* A test that fails must not leave its programs behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(126);
	if (where == INSIDE && sl_cgroup_enter(world.cgroup, 0, NULL) < 0)
		_exit(125);
	/*
	 * The leak checker forks a tracer: in a sandbox one process more than the truth. Leaks
	 * are looked for outside (test_leaks.c).
	 */
	if (where == INSIDE)
		setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
	execv(argv[0], argv);
	_exit(127);
}

/* fork(), with a certain pid when it is not 0 (clone3(2), set_tid). */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};

	return pid ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
}

/* False when the pid is taken. */
static bool spawn(struct load *load, pid_t pid, enum load_where where, char *const argv[])
{
	int in[2], out[2];

	*load = (struct load){ .in = -1, .out = -1 };
	cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	load->pid = fork_as(pid);
	if (!load->pid)
		child(where, in[0], out[1], argv);
	close(in[0]);
	close(out[1]);
	load->in = in[1];
	load->out = out[0];
	if (load->pid > 0)
		return true;
	cr_assert_eq(errno, EEXIST, "fork: %s", strerror(errno));
	return false;
}

void load_exec(struct load *load, enum load_where where, char *const argv[])
{
	cr_assert(spawn(load, 0, where, argv));
}

__attribute__((format(printf, 4, 0))) static bool
start(struct load *load, pid_t pid, enum load_where where, const char *fmt, va_list ap)
{
	char *words[WORDS_MAX] = { world_load() };
	_cleanup_free_ char *line = NULL;
	unsigned int n = 1;
	char *save = NULL;

	cr_assert_geq(vasprintf(&line, fmt, ap), 0);
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		cr_assert_lt(n, WORDS_MAX - 1);
		words[n++] = word;
	}
	return spawn(load, pid, where, words);
}

void load_start(struct load *load, enum load_where where, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cr_assert(start(load, 0, where, fmt, ap));
	va_end(ap);
}

bool load_start_as(struct load *load, pid_t pid, enum load_where where, const char *fmt, ...)
{
	va_list ap;
	bool started;

	va_start(ap, fmt);
	started = start(load, pid, where, fmt, ap);
	va_end(ap);
	return started;
}

/* One read(2) more of its output; false at the end. The text never moves. */
static bool more(struct load *load)
{
	ssize_t n;

	if (!load->text)
		load->text = malloc(TEXT_MAX);
	cr_assert_not_null(load->text);
	do
		n = read(load->out, load->text + load->len, TEXT_MAX - 1 - load->len);
	while (n < 0 && errno == EINTR);
	cr_assert_geq(n, 0);
	load->len += n;
	load->text[load->len] = '\0';
	cr_assert_lt(load->len, TEXT_MAX - 1, "too much output");
	return n;
}

void load_await(struct load *load, const char *what, unsigned int count)
{
	while (fact_count(load, what) < count)
		cr_assert(more(load), "no %u lines what=%s in: %s", count, what,
			  load->text ? load->text : "(nothing)");
}

int load_end(struct load *load)
{
	int status;

	sl_cleanup_fd(&load->in);
	while (more(load))
		;
	sl_cleanup_fd(&load->out);
	cr_assert_eq(waitpid(load->pid, &status, 0), load->pid);
	load->pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void load_free(struct load *load)
{
	sl_cleanup_fd(&load->in);
	sl_cleanup_fd(&load->out);
	sl_cleanup_free(&load->text);
	load->len = 0;
}

static void expect_end(struct load *load, const char *what)
{
	int code = load_end(load);

	if (code == SKIPPED)
		cr_skip_test("the kernel lacks it: %s", load->text ? load->text : "");
	cr_assert_eq(code, 0, "%s: exit %d: %s", what, code, load->text ? load->text : "");
}

void load_run(struct load *load, enum load_where where, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cr_assert(start(load, 0, where, fmt, ap));
	va_end(ap);
	expect_end(load, fmt);
}

void load_shell(struct load *load, enum load_where where, const char *fmt, ...)
{
	char *argv[] = { "/bin/sh", "-c", NULL, NULL };
	_cleanup_free_ char *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	cr_assert_geq(vasprintf(&line, fmt, ap), 0);
	va_end(ap);
	argv[2] = line;
	load_exec(load, where, argv);
	expect_end(load, line);
}

unsigned int server_start_at(struct load *load, enum load_where where, const char *words,
			     const char *address)
{
	load_start(load, where, "%s --until-eof --timeout 120 --listen %s", words, address);
	load_await(load, "listen", 1);
	return fact_u64(fact_next(load, NULL, "listen"), "port");
}

unsigned int server_start(struct load *load, const char *words)
{
	return server_start_at(load, OUTSIDE, words, "127.0.0.1:0");
}

/* Only whole lines count: the last one may be half read. */
static bool line_is(const char *line, const char *what)
{
	size_t len = strlen(what);

	return strchr(line, '\n') && !strncmp(line, "what=", 5) && !strncmp(line + 5, what, len) &&
	       (line[5 + len] == ' ' || line[5 + len] == '\n');
}

const char *fact_next(const struct load *load, const char *line, const char *what)
{
	if (line) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	} else {
		line = load->text;
	}
	while (line && *line && !line_is(line, what)) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return line && *line ? line : NULL;
}

unsigned int fact_count(const struct load *load, const char *what)
{
	unsigned int n = 0;

	for (const char *line = NULL; (line = fact_next(load, line, what));)
		n++;
	return n;
}

bool fact_text(const char *line, const char *key, char *out, size_t size)
{
	const char *end = strchrnul(line, '\n');
	size_t len = strlen(key);

	for (const char *p = line; p < end; p++) {
		p = p == line ? p : p + 1;
		if (!strncmp(p, key, len) && p[len] == '=') {
			size_t n = strcspn(p + len + 1, " \n");

			cr_assert_lt(n, size);
			memcpy(out, p + len + 1, n);
			out[n] = '\0';
			return true;
		}
		p += strcspn(p, " \n");
		if (*p != ' ')
			break;
		p--;
	}
	return false;
}

uint64_t fact_u64(const char *line, const char *key)
{
	char text[32];

	cr_assert_not_null(line, "no fact with %s", key);
	cr_assert(fact_text(line, key, text, sizeof(text)), "no %s in %.400s", key, line);
	return strtoull(text, NULL, 10);
}

const char *fact_with(const struct load *load, const char *what, const char *key, uint64_t value)
{
	for (const char *line = NULL; (line = fact_next(load, line, what));) {
		if (fact_u64(line, key) == value)
			return line;
	}
	return NULL;
}
