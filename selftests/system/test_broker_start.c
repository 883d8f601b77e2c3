/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The hand-over of a listener, and what goes wrong before the workload runs. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "broker/listener.h"
#include "broker/notify.h"
#include "broker/probe.h"
#include "broker/task.h"
#include "system/held.h"

TestSuite(broker_start, .timeout = 60);

static struct sl_handoff handoff = { -1, -1 };
static struct sl_filter filter;

static void make(const struct sl_filter_options *options)
{
	cr_assert_eq(sl_filter_make(&filter, options, NULL), 0);
	cr_assert_eq(sl_handoff_new(&handoff, NULL), 0);
}

/* 0: went on; else the errno that give returned. */
static pid_t start(bool nested)
{
	pid_t pid = fork();
	struct sl_filter own;
	unsigned long flags;
	const char *why;
	int listener;

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nested && (sl_filter_make(&own, &hold_connect, NULL) ||
		       sl_filter_install(&own, 0, &listener, NULL)))
		_exit(255);
	sl_probe_listener_flags(&flags, &why);
	_exit(-sl_handoff_give(&handoff, &filter, flags, NULL));
}

/* N14 */
Test(broker_start, second_listener)
{
	struct sl_err err = {};
	int listener = -7;
	pid_t pid;

	make(&hold_exec);
	pid = start(true);
	cr_expect_eq(sl_handoff_take(&handoff, 10000, &listener, &err), -EBUSY);
	cr_expect_neq(strstr(err.text, "another supervisor"), NULL, "%s", err.text);
	cr_expect_neq(err.hint[0], '\0');
	cr_expect_eq(listener, -7);
	cr_expect_eq(held_wait(pid), EBUSY);
	sl_handoff_end(&handoff);
}

Test(broker_start, profile_that_holds_the_hand_over)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sl_err err = {};
	int listener = -7;
	pid_t pid;

	make(&hold_exec);
	memcpy(filter.code, code, sizeof(code));
	filter.len = ARRAY_SIZE(code);
	pid = start(false);
	cr_expect_eq(sl_handoff_take(&handoff, 100, &listener, &err), -ETIMEDOUT);
	cr_expect_neq(strstr(err.hint, "sendmsg"), NULL, "%s", err.hint);
	kill(pid, SIGKILL);
	cr_expect_eq(held_wait(pid), 128 + SIGKILL);
	sl_handoff_end(&handoff);
}

/* sluice's own that holds sendmsg() is fetched. */
static int send_all_ways(void *arg)
{
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct mmsghdr many = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "/nowhere" };
	int fds[2];

	(void)arg;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds))
		return 1;
	if (send(fds[0], "x", 1, 0) != 1 || sendmsg(fds[0], &many.msg_hdr, 0) != 1 ||
	    sendmmsg(fds[0], &many, 1, 0) != 1)
		return 2;
	return sendto(fds[0], "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? errno : 3;
}

Test(broker_start, filter_that_holds_sends)
{
	static const struct sl_filter_options sends = { .hold = SL_HOLD_SEND };

	held.decide = NULL;
	held_up(NULL);
	cr_expect_eq(held_call(&sends, send_all_ways, NULL), ENOENT);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 3);
	held_down();
}

Test(broker_start, number_that_is_no_listener)
{
	struct {
		struct sl_err result;
		int listener;
	} message = { .listener = STDERR_FILENO };
	int listener = -7;

	make(&hold_exec);
	cr_assert_eq(send(handoff.child, &message, sizeof(message), 0), (ssize_t)sizeof(message));
	cr_expect_eq(sl_handoff_take(&handoff, 10000, &listener, NULL), -EBADMSG);
	sl_handoff_end(&handoff);
	make(&hold_exec);
	message.listener = 9999;
	cr_assert_eq(send(handoff.child, &message, sizeof(message), 0), (ssize_t)sizeof(message));
	cr_expect_eq(sl_handoff_take(&handoff, 10000, &listener, NULL), -EBADF);
	cr_expect_eq(listener, -7);
	sl_handoff_end(&handoff);
}

/* N15: no release, no exec. */
Test(broker_start, nobody_answers)
{
	int listener;
	pid_t pid;

	make(&hold_exec);
	pid = start(false);
	cr_assert_eq(sl_handoff_take(&handoff, 10000, &listener, NULL), 0);
	cr_expect_eq(waitpid(pid, NULL, WNOHANG), 0, "it went on without release");
	sl_handoff_end(&handoff);
	cr_expect_eq(held_wait(pid), EPIPE);
	close(listener);
}

Test(broker_start, child_is_gone)
{
	struct sl_err err = {};
	int listener = -7;
	pid_t pid;

	make(&hold_exec);
	pid = fork();
	if (!pid)
		_exit(0);
	cr_expect_eq(held_wait(pid), 0);
	cr_expect_eq(sl_handoff_take(&handoff, 10000, &listener, &err), -ECHILD);
	cr_expect_eq(listener, -7);
	sl_handoff_end(&handoff);
}

Test(broker_start, filter_without_a_listener)
{
	static const struct sl_filter_options none;
	int listener = -7;
	pid_t pid;

	make(&none);
	pid = start(false);
	cr_assert_eq(sl_handoff_take(&handoff, 10000, &listener, NULL), 0);
	cr_expect_eq(listener, -1);
	cr_assert_eq(sl_handoff_release(&handoff, NULL), 0);
	cr_expect_eq(held_wait(pid), 0);
	sl_handoff_end(&handoff);
}

/* Sends what the child should not: `count` descriptors and a message of `len` bytes. */
static int take_forged(const int *fds, unsigned int count, size_t len)
{
	static char bytes[2 * sizeof(struct sl_err)];
	char control[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int listener = -7, ret;

	make(&hold_exec);
	if (count) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	cr_assert_eq(sendmsg(handoff.child, &msg, 0), (ssize_t)len);
	ret = sl_handoff_take(&handoff, 10000, &listener, NULL);
	cr_expect_eq(listener, -7);
	sl_handoff_end(&handoff);
	return ret;
}

Test(broker_start, what_arrives_is_checked)
{
	int fds[16], next, after;

	for (int i = 0; i < 16; i++)
		fds[i] = STDERR_FILENO;
	next = dup(STDERR_FILENO);
	close(next);
	cr_expect_eq(take_forged(fds, 1, sizeof(struct sl_err)), -EBADMSG);
	cr_expect_eq(take_forged(fds, 3, sizeof(struct sl_err)), -EBADMSG);
	cr_expect_eq(take_forged(fds, 16, sizeof(struct sl_err)), -EBADMSG);
	cr_expect_eq(take_forged(fds, 0, 1), -EBADMSG);
	cr_expect_eq(take_forged(fds, 0, sizeof(struct sl_err) + 1), -EBADMSG);
	after = dup(STDERR_FILENO);
	cr_expect_eq(after, next, "a descriptor leaked");
	close(after);
}

/* N11: in the child and here the listener is descriptor 0. */
Test(broker_start, listener_zero)
{
	int listener = -7;
	pid_t pid;

	held_up(NULL);
	make(&hold_connect);
	close(STDIN_FILENO);
	pid = fork();
	if (!pid)
		_exit(sl_handoff_give(&handoff, &filter, 0, NULL) ? 99 : held_connect(1));
	cr_assert_eq(sl_handoff_take(&handoff, 10000, &listener, NULL), 0);
	cr_expect_eq(listener, 0);
	held_start();
	cr_assert_eq(sl_broker_add(held.broker, listener, 1, NULL), 0);
	cr_assert_eq(sl_handoff_release(&handoff, NULL), 0);
	cr_expect_eq(held_wait(pid), ECONNREFUSED);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 1);
	sl_handoff_end(&handoff);
	held_down();
}

/* N16: found at the start, with its cause. */
Test(broker_start, privilege_is_checked_first)
{
	pid_t pid = fork();

	if (!pid) {
		struct sl_broker_options options = { .threads = 1 };
		struct sl_broker *broker = NULL;
		struct sl_err err = {};

		if (setgroups(0, NULL) || setresuid(65534, 65534, 65534))
			_exit(90);
		if (sl_broker_new(&broker, &options, &err) != -EPERM || broker)
			_exit(1);
		_exit(strstr(err.hint, "CAP_SYS_PTRACE") ? 0 : 2);
	}
	cr_expect_eq(held_wait(pid), 0);
}

#define KILLS 30

/*
 * Whoever answers is killed while it looks whether it may: what it has forked for that has all
 * its listeners, and would keep the calls of who waits for them from ever failing.
 */
Test(broker_start, killed_while_it_checks)
{
	struct pollfd poller = { .events = POLLIN };
	char bytes[3];
	int fds[2];
	pid_t pid;

	for (int i = 0; i < KILLS; i++) {
		cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
		pid = fork();
		cr_assert_geq(pid, 0);
		while (!pid && write(fds[1], "", 1) == 1 && !sl_task_check_access(NULL))
			;
		if (!pid)
			_exit(1);
		close(fds[1]);
		for (size_t n = 0; n < sizeof(bytes); n++)
			cr_assert_eq(read(fds[0], bytes, 1), 1);
		cr_assert_eq(kill(pid, SIGKILL), 0);
		cr_expect_eq(held_wait(pid), 128 + SIGKILL);
		/* The end comes when nobody has the pipe any longer. */
		poller.fd = fds[0];
		while (poll(&poller, 1, 10000) == 1 && read(fds[0], bytes, sizeof(bytes)) > 0)
			;
		cr_assert(poller.revents, "round %d: somebody is left", i);
		close(fds[0]);
	}
}

Test(broker_start, what_is_added_is_checked)
{
	struct sl_err err = {};

	held_up(NULL);
	cr_expect_eq(sl_broker_add(held.broker, STDERR_FILENO, 1, &err), -EBADF);
	cr_expect_eq(sl_broker_add(held.broker, 9999, 1, &err), -EBADF);
	held_down();
}
