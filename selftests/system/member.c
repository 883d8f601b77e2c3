/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/expect.h"
#include "system/member.h"

void *member_shared(size_t size)
{
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(shared, MAP_FAILED);
	return shared;
}

void member_need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "member %d: %s: %s\n", getpid(), what, strerror(errno));
	_exit(1);
}

uint64_t member_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	member_need(!getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len), "SO_COOKIE");
	return cookie;
}

void member_start(struct member *member, enum load_where where, member_fn fn, void *shared)
{
	int there[2], back[2];

	cr_assert_eq(pipe2(there, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(back, O_CLOEXEC), 0);
	member->shared = shared;
	member->pid = fork();
	cr_assert_geq(member->pid, 0);
	if (!member->pid) {
		struct member self = { .in = there[0], .out = back[1], .shared = shared };

		/* A test that fails must not leave its programs behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(there[1]);
		close(back[0]);
		member_need(where == OUTSIDE || sl_cgroup_enter(world.cgroup, 0, NULL) >= 0,
			    "enter the cgroup");
		fn(&self);
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	member->in = back[0];
	member->out = there[1];
}

void member_move_in(const struct member *member)
{
	cr_assert_geq(sl_cgroup_enter(world.cgroup, member->pid, NULL), 0);
}

static bool step_in(int fd)
{
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

void member_await(struct member *member)
{
	cr_assert(step_in(member->in), "the member has ended before its next step");
}

void member_go(struct member *member)
{
	cr_assert_eq(write(member->out, "", 1), 1);
}

void member_say(struct member *self)
{
	member_need(write(self->out, "", 1) == 1, "step");
}

void member_wait(struct member *self)
{
	member_need(step_in(self->in), "wait for the test");
}

void member_end(struct member *member)
{
	int status;

	cr_assert_eq(waitpid(member->pid, &status, 0), member->pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "member ended with status %#x",
		  status);
	sl_cleanup_fd(&member->in);
	sl_cleanup_fd(&member->out);
}

struct blocked {
	char path[64];
	long number;
};

static bool is_blocked(void *arg)
{
	const struct blocked *blocked = arg;
	_cleanup_fd_ int fd = open(blocked->path, O_RDONLY | O_CLOEXEC);
	char text[256] = "";

	/* "running", or the number of the call and its arguments. */
	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && text[0] != 'r' &&
	       strtol(text, NULL, 10) == blocked->number;
}

void await_syscall(pid_t pid, long number)
{
	struct blocked blocked = { .number = number };

	snprintf(blocked.path, sizeof(blocked.path), "/proc/%d/syscall", pid);
	cr_assert(eventually(is_blocked, &blocked), "%d does not block in call %ld", pid, number);
}

void await_exit(pid_t pid)
{
	siginfo_t info;

	cr_assert_eq(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
}
