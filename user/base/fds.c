/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"

union control {
	char room[CMSG_SPACE(SL_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

void sl_fds_close(struct sl_fds *fds)
{
	for (unsigned int i = 0; i < fds->count; i++)
		sl_cleanup_fd(&fds->fd[i]);
	fds->count = 0;
}

int sl_fds_take(struct sl_fds *fds, unsigned int index)
{
	if (index >= fds->count || fds->fd[index] < 0)
		return -EBADF;
	return TAKE_FD(fds->fd[index]);
}

int sl_fds_copy(struct sl_fds *to, const struct sl_fds *from)
{
	to->count = 0;
	for (unsigned int i = 0; i < from->count; i++) {
		int fd = fcntl(from->fd[i], F_DUPFD_CLOEXEC, 0);
		int code = errno;

		if (fd < 0) {
			sl_fds_close(to);
			return -code;
		}
		to->fd[to->count++] = fd;
	}
	return 0;
}

static ssize_t send_with(int sock, const void *data, size_t size, const struct sl_fds *fds,
			 int flags)
{
	union control control = {};
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fds && fds->count) {
		size_t bytes = fds->count * sizeof(int);

		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.align), fds->fd, bytes);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(bytes);
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t sl_fds_send(int sock, const void *data, size_t size, const struct sl_fds *fds)
{
	return send_with(sock, data, size, fds, MSG_DONTWAIT);
}

int sl_fd_send(int sock, const void *data, size_t size, int fd)
{
	const struct sl_fds fds = { .fd = { fd }, .count = fd >= 0 };
	ssize_t n = send_with(sock, data, size, &fds, 0);

	return n < 0 ? (int)n : 0;
}

ssize_t sl_fds_receive(int sock, void *data, size_t size, struct sl_fds *fds)
{
	union control control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	fds->count = 0;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* The kernel makes one such message of all that came. */
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		fds->count = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds->fd, CMSG_DATA(c), fds->count * sizeof(int));
	}
	if (msg.msg_flags & MSG_CTRUNC) {
		sl_fds_close(fds);
		return -EPROTO;
	}
	return n;
}

int sl_socket_unlink(const char *path, struct sl_err *err)
{
	struct stat st;

	if (lstat(path, &st)) {
		if (errno == ENOENT)
			return 0;
		return sl_err_sys(err, errno, "can't listen at '%s'", path);
	}
	if (!S_ISSOCK(st.st_mode)) {
		sl_err_set(err, EEXIST, "'%s' is there and no socket", path);
		return sl_err_hint(err, "name a path where a socket can be made");
	}
	if (unlink(path) && errno != ENOENT)
		return sl_err_sys(err, errno, "can't remove the socket at '%s'", path);
	return 0;
}
