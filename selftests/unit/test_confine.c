/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the agent takes from itself, and what it has left. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confine.h"

TestSuite(confine, .timeout = 60);

/* In a child that is confined: 0, or the number of what was not as it should be. */
static int refused(void)
{
	struct sl_err err = {};

	if (sl_confine(&err))
		return 1;
	if (!execl("/bin/true", "true", NULL) || errno != EPERM)
		return 2;
	/* All but the last argument are wrong as well: it is not the kernel's own refusal. */
	if (!syscall(SYS_execveat, -1, "", NULL, NULL, 0) || errno != EPERM)
		return 3;
	if (!mount(NULL, NULL, NULL, ~0UL, NULL) || errno != EPERM)
		return 4;
	if (syscall(SYS_io_uring_setup, 0, NULL) != -1 || errno != EPERM)
		return 5;
#ifdef __x86_64__
	/* getpid() by the x32 table. */
	if (syscall(0x40000000 | SYS_getpid) != -1 || errno != EPERM)
		return 6;
#endif
	return 0;
}

static int left(void)
{
	int status, fd, fds[2];
	struct sl_err err = {};
	pid_t pid;

	if (sl_confine(&err))
		return 1;
	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return 2;
	pid = fork();
	if (!pid)
		_exit(7);
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
		return 3;
	/* A relay has sockets in other network namespaces: not refused, but wrong. */
	if (!setns(-1, CLONE_NEWNET) || errno != EBADF)
		return 4;
	return 0;
}

static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(fn());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

Test(confine, never_done)
{
	cr_expect_eq(in_child(refused), 0);
}

Test(confine, what_is_left)
{
	cr_expect_eq(in_child(left), 0);
}
