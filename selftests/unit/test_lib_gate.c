/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libsluice: the gate between fork() and execve(). */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "broker/notify.h"

#define TAKE_MS 20000
#define PASSED 7
#define REFUSED 8

TestSuite(lib_gate, .timeout = 60);

static struct sl_gate *gate;
static int own;

static void make(void)
{
	cr_assert_eq(sl_gate_new(&gate), 0);
	cr_assert_eq(sl_gate_set(gate, SL_PLAN_EXEC, 0), 0, "%s", sl_gate_error(gate));
	own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_geq(own, 0);
}

/* A child at the gate; `files`: how many it may have open, 0: enough. */
static pid_t start(rlim_t files)
{
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (!child) {
		const struct rlimit limit = { files, files };

		if (files)
			setrlimit(RLIMIT_NOFILE, &limit);
		_exit(sl_gate_pass(gate) ? REFUSED : PASSED);
	}
	return child;
}

static int end(pid_t child)
{
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* It waits, without the runtime's network sockets, until it is let go. */
Test(lib_gate, passes)
{
	char path[64];
	pid_t child;
	int listener = -1;

	make();
	child = start(0);
	cr_assert_eq(sl_gate_listener(gate, TAKE_MS, &listener), 0, "%s", sl_gate_error(gate));
	cr_expect(sl_notify_is_listener(listener));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", child, own);
	cr_expect_eq(access(path, F_OK), -1);
	cr_expect_eq(waitpid(child, NULL, WNOHANG), 0);
	cr_expect_eq(sl_gate_open(gate), 0, "%s", sl_gate_error(gate));
	cr_expect_eq(end(child), PASSED);
	close(listener);
	sl_gate_free(&gate);
	cr_expect_null(gate);
	sl_gate_free(NULL);
	close(own);
}

/* Nobody attached it: it does not go on. */
Test(lib_gate, is_not_opened)
{
	int listener = -1;
	pid_t child;

	make();
	child = start(0);
	cr_assert_eq(sl_gate_listener(gate, TAKE_MS, &listener), 0, "%s", sl_gate_error(gate));
	sl_gate_free(&gate);
	cr_expect_eq(end(child), REFUSED);
	close(listener);
	close(own);
}

/* What fails in the child is told to the parent. */
Test(lib_gate, fails)
{
	int listener = -1;
	pid_t child;

	make();
	child = start(3);
	cr_expect_eq(sl_gate_listener(gate, TAKE_MS, &listener), -EMFILE);
	cr_expect_not_null(strstr(sl_gate_error(gate), "can't look for sockets"), "%s",
			   sl_gate_error(gate));
	cr_expect_eq(listener, -1);
	cr_expect_eq(end(child), REFUSED);
	sl_gate_free(&gate);
	close(own);
}

Test(lib_gate, arguments)
{
	char name[65];

	cr_assert_eq(sl_gate_new(&gate), 0);
	cr_expect_eq(sl_gate_set(gate, 1 << 5, 0), -EINVAL);
	cr_expect_eq(sl_gate_set(gate, 0, 1 << 3), -EINVAL);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(sl_gate_user(gate, 1, 1, name), -ENAMETOOLONG);
	cr_expect_eq(sl_gate_user(gate, 1, 1, NULL), 0);
	cr_expect_eq(sl_gate_set(gate, 0, SL_GATE_UNCONTAINED), -EINVAL);
	sl_gate_free(&gate);
}
