// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/listener.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "broker/notify.h"

#define FDS_MAX 8 /* received at most; more are cut off by the kernel, and refused */

/* What the child sends: the result, with the listener attached, or with its number. */
struct numbered {
	struct sl_err result;
	int listener;
};

int sl_handoff_new(struct sl_handoff *h, struct sl_err *err)
{
	const int on = 1;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return sl_err_sys(err, errno, "can't make a socket pair");
	/* The kernel tells whose number it is. */
	if (setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on))) {
		int code = errno;

		close(fds[0]);
		close(fds[1]);
		return sl_err_sys(err, code, "can't ask for credentials");
	}
	h->parent = fds[0];
	h->child = fds[1];
	return 0;
}

void sl_handoff_end(struct sl_handoff *h)
{
	sl_cleanup_fd(&h->parent);
	sl_cleanup_fd(&h->child);
}

static int await_release(int sock, struct sl_err *err)
{
	char byte;
	ssize_t n;

	do
		n = recv(sock, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return 0;
	return sl_err_set(err, EPIPE, "nobody answers for this command: it is not started");
}

/* By send(), which is sendto() without an address and so never held. */
static int send_number(int sock, const struct sl_err *result, int listener)
{
	struct numbered message;
	ssize_t n;

	memset(&message, 0, sizeof(message));
	message.result = *result;
	message.listener = listener;
	do
		n = send(sock, &message, sizeof(message), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

void sl_handoff_fail(struct sl_handoff *h, const struct sl_err *cause)
{
	sl_fd_send(h->child, cause, sizeof(*cause), -1);
	sl_handoff_end(h);
}

int sl_handoff_give(struct sl_handoff *h, const struct sl_filter *filter, unsigned long flags,
		    struct sl_err *err)
{
	struct sl_err result = { .code = 0 };
	_cleanup_fd_ int listener = -1;
	int ret, sent;

	sl_cleanup_fd(&h->parent);
	ret = sl_filter_install(filter, flags, &listener, &result);
	/* An error, or code 0 and the listener if there is one. */
	if (!ret && filter->holds_send)
		sent = send_number(h->child, &result, listener);
	else
		sent = sl_fd_send(h->child, &result, sizeof(result), listener);
	if (ret) {
		if (err)
			*err = result;
	} else if (sent) {
		ret = sl_err_sys(err, EPIPE, "can't hand the listener over: %s", strerror(-sent));
	} else {
		/*
		 * Held by the handler alone from here on: its death is to be noticed. Not
		 * before it was fetched, which release says; then exec closes it.
		 */
		if (!filter->holds_send)
			sl_cleanup_fd(&listener);
		ret = await_release(h->child, err);
	}
	sl_handoff_end(h);
	return ret;
}

static int await_message(int sock, int timeout_ms, struct sl_err *err)
{
	int64_t end = sl_monotonic_ms() + timeout_ms;
	struct pollfd poll_fd = { .fd = sock, .events = POLLIN };
	int n, left;

	do {
		left = (int)(end - sl_monotonic_ms());
		n = poll(&poll_fd, 1, left > 0 ? left : 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return 0;
	if (n < 0)
		return sl_err_sys(err, errno, "can't wait for the listener");
	sl_err_set(err, ETIMEDOUT, "the listener was not handed over within %d ms", timeout_ms);
	return sl_err_hint(err, "a seccomp profile that holds sendmsg() stops the hand-over");
}

/* All descriptors of a message, returns how many; and who sent it. */
static size_t fds_of(struct msghdr *msg, int fds[FDS_MAX], pid_t *pid)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		struct ucred sender;

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			*pid = sender.pid;
		}
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n && count < FDS_MAX; i++)
			memcpy(&fds[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return count;
}

/* The descriptor `number` of another process; -1 or -errno. */
static int fetch(pid_t pid, int number)
{
	_cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);

	return fd < 0 ? -errno : fd;
}

static int receive_result(int sock, struct sl_err *result, int *listener, struct sl_err *err)
{
	char control[CMSG_SPACE(FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))]
		__attribute__((aligned(8)));
	struct numbered message = { .listener = -1 };
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fds[FDS_MAX];
	size_t count;
	pid_t pid = 0;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return sl_err_sys(err, errno, "can't receive the listener");
	if (!n)
		return sl_err_set(err, ECHILD, "the command's process ended before it was started");
	count = fds_of(&msg, fds, &pid);
	*result = message.result;
	if (n == (ssize_t)sizeof(message) && !count) {
		fds[0] = fetch(pid, message.listener);
		if (fds[0] < 0)
			return sl_err_sys(err, -fds[0], "can't fetch the listener");
		count = 1;
	} else if (n != (ssize_t)sizeof(message.result)) {
		msg.msg_flags |= MSG_TRUNC;
	}
	if (!(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    (!count || (count == 1 && sl_notify_is_listener(fds[0])))) {
		*listener = count ? fds[0] : -1;
		return 0;
	}
	while (count)
		close(fds[--count]);
	return sl_err_set(err, EBADMSG, "what arrived in place of the listener is no listener");
}

int sl_handoff_take(struct sl_handoff *h, int timeout_ms, int *listener, struct sl_err *err)
{
	struct sl_err result = { .code = 0 };
	_cleanup_fd_ int fd = -1;
	int ret;

	sl_cleanup_fd(&h->child);
	ret = await_message(h->parent, timeout_ms, err);
	if (!ret)
		ret = receive_result(h->parent, &result, &fd, err);
	if (ret)
		return ret;
	if (result.code) {
		result.text[sizeof(result.text) - 1] = '\0';
		result.hint[sizeof(result.hint) - 1] = '\0';
		if (err)
			*err = result;
		return -result.code;
	}
	*listener = TAKE_FD(fd);
	return 0;
}

int sl_handoff_release(struct sl_handoff *h, struct sl_err *err)
{
	ssize_t n;

	do
		n = send(h->parent, "", 1, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : sl_err_sys(err, errno, "the command's process ended before its start");
}
