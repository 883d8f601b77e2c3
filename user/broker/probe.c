// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "broker/listener.h"
#include "broker/notify.h"

#define CALLS 1500   /* some 15 ms */
#define SIGNAL_US 40 /* a little more than a round trip takes */
#define TAKE_MS 5000
#define MARK ENOTBLK /* an errno that getppid() never gives */

static void on_alarm(int sig)
{
	(void)sig;
}

/* Makes the calls; tells how many were answered. */
static _Noreturn void child_main(struct sl_handoff *h, const struct sl_filter *filter,
				 unsigned int calls, unsigned int *answered)
{
	/* No SA_RESTART: an interrupted call is to be seen. */
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval timer = { { 0, SIGNAL_US }, { 0, SIGNAL_US } };
	sigset_t none;

	if (sl_handoff_give(h, filter, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, NULL))
		_exit(1);
	sigemptyset(&none);
	sigaction(SIGALRM, &action, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (unsigned int i = 0; i < calls; i++)
		*answered += syscall(SYS_getppid) < 0 && errno == MARK;
	_exit(0);
}

/*
 * Answers all calls at once; returns how many answers the kernel took. Before 6.11 a listener
 * has not ended while its last task is a zombie (seccomp_filter_release() runs when it is
 * reaped), so the task is watched as well.
 */
static unsigned int answer_all(int listener, int pidfd)
{
	static const struct sl_answer answer = { .code = MARK };
	struct pollfd fds[] = { { .fd = listener, .events = POLLIN },
				{ .fd = pidfd, .events = POLLIN } };
	unsigned int sent = 0;
	union sl_notif notif;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return sent;
		if (!(fds[0].revents & POLLIN)) {
			if (fds[0].revents || fds[1].revents)
				return sent;
			continue;
		}
		if (!sl_notify_receive(listener, &notif))
			sent += !sl_notify_answer(listener, notif.notif.id, &answer);
	}
}

static void filter_getppid(struct sl_filter *filter)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter->notifies = true;
	filter->len = ARRAY_SIZE(code);
	for (size_t i = 0; i < ARRAY_SIZE(code); i++)
		filter->code[i] = code[i];
}

int sl_probe_killable_race(unsigned int calls, unsigned int *lost, struct sl_err *err)
{
	_cleanup_(sl_handoff_end) struct sl_handoff h = { -1, -1 };
	_cleanup_fd_ int listener = -1, pidfd = -1;
	unsigned int *answered, sent = 0;
	struct sl_filter filter;
	pid_t pid;
	int ret;

	answered = mmap(NULL, sizeof(*answered), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (answered == MAP_FAILED)
		return sl_err_sys(err, errno, "can't map memory");
	filter_getppid(&filter);
	ret = sl_handoff_new(&h, err);
	pid = ret ? -1 : fork();
	if (!pid)
		child_main(&h, &filter, calls, answered);
	if (!ret && pid < 0)
		ret = sl_err_sys(err, errno, "can't fork");
	if (!ret) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		ret = pidfd < 0 ? sl_err_sys(err, errno, "can't watch a process") : 0;
	}
	if (!ret)
		ret = sl_handoff_take(&h, TAKE_MS, &listener, err);
	if (!ret)
		ret = sl_handoff_release(&h, err);
	if (!ret)
		sent = answer_all(listener, pidfd);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (!ret)
		*lost = sent > *answered ? sent - *answered : 0;
	munmap(answered, sizeof(*answered));
	return ret;
}

static bool has_fix(void)
{
	unsigned int major, minor;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 18));
}

void sl_probe_listener_flags(unsigned long *flags, const char **why)
{
	unsigned long all = SECCOMP_FILTER_FLAG_NEW_LISTENER |
			    SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	unsigned int lost = 0;

	*flags = 0;
	*why = NULL;
	/* Flags are looked at before the filter, which is none. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all, NULL) >= 0 || errno != EFAULT)
		*why = "this kernel has no WAIT_KILLABLE_RECV (5.19): signals repeat held calls";
	else if (!has_fix() && sl_probe_killable_race(CALLS, &lost, NULL))
		*why = "WAIT_KILLABLE_RECV could not be tested";
	else if (!has_fix() && lost)
		*why = "WAIT_KILLABLE_RECV of this kernel loses answers (fixed in 6.18)";
	else
		*flags = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
}
