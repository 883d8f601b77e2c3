/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "truth.h"
#include "uring.h"

#define DRAIN_MS 50
#define BUFFER_BYTES (32 << 20)

int sl_sock_new(int family, int type, int protocol, int *fd)
{
	int rc = socket(family, type | SOCK_CLOEXEC, protocol);

	if (rc < 0)
		return -errno;
	*fd = rc;
	return 0;
}

int sl_sock_family(const struct sl_opts *o, const struct sl_addr *to)
{
	return o->v6 || o->mapped || o->v4_on_v6 ? AF_INET6 : to->sa.sa_family;
}

struct sl_addr sl_sock_dest(const struct sl_opts *o, const struct sl_addr *to)
{
	return o->v6 || o->mapped ? sl_addr_mapped(to) : *to;
}

int sl_sock_linger0(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0 ? -errno : 0;
}

void sl_sock_buffer(int fd)
{
	int size = BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

uint64_t sl_sock_drops(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	(void)getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len);
	return info[SK_MEMINFO_DROPS];
}

int sl_sock_bind(const struct sl_opts *o, int family, int fd)
{
	struct sl_addr addr = o->bind;

	if (addr.len == 0)
		return 0;
	if (family == AF_INET6)
		addr = sl_addr_mapped(&addr);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0)
		return -errno;
	return bind(fd, &addr.sa, addr.len) < 0 ? -errno : 0;
}

int sl_sock_tcp(const struct sl_opts *o, const struct sl_addr *to, int *out)
{
	int family = sl_sock_family(o, to);
	_cleanup_fd_ int fd = -1;
	int rc = sl_sock_new(family, SOCK_STREAM, o->mptcp ? IPPROTO_MPTCP : 0, &fd);

	if (o->mptcp && (rc == -EPROTONOSUPPORT || rc == -ENOPROTOOPT))
		return sl_skip("MPTCP", -rc);
	if (rc == 0 && o->rst)
		rc = sl_sock_linger0(fd);
	if (rc < 0)
		return sl_fail("socket", -rc);
	rc = sl_sock_bind(o, family, fd);
	if (rc < 0)
		return sl_fail("bind", -rc);
	*out = TAKE_FD(fd);
	return 0;
}

int sl_sock_finish(int fd, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0, rc;

	do {
		rc = poll(&pfd, 1, timeout_ms);
	} while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return -ETIMEDOUT;
	if (rc < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

static int connect_nonblock(int fd, const struct sl_addr *to, bool *in_progress)
{
	int flags = fcntl(fd, F_GETFL);
	int rc = 0;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	if (connect(fd, &to->sa, to->len) < 0)
		rc = -errno;
	if (rc == -EINPROGRESS) {
		if (in_progress)
			*in_progress = true;
		rc = sl_sock_finish(fd, -1);
	}
	if (fcntl(fd, F_SETFL, flags) < 0)
		return -errno;
	return rc;
}

static int connect_uring(const struct sl_opts *o, int fd, const struct sl_addr *to)
{
	_cleanup_(sl_uring_free) struct sl_uring *ring = NULL;
	int rc = sl_uring_new(&ring, o->uring);

	if (rc == -ENOSYS)
		return sl_skip("io_uring", -rc);
	return rc < 0 ? rc : sl_uring_connect(ring, fd, &to->sa, to->len);
}

int sl_sock_connect(const struct sl_opts *o, int fd, const struct sl_addr *to, bool *in_progress)
{
	if (!o->connect || !strcmp(o->connect, "plain"))
		return connect(fd, &to->sa, to->len) < 0 ? -errno : 0;
	if (!strcmp(o->connect, "nonblock"))
		return connect_nonblock(fd, to, in_progress);
	if (!strcmp(o->connect, "uring"))
		return connect_uring(o, fd, to);
	return sl_usage("--connect: no such way");
}

static void tell_listen(int fd)
{
	struct sl_sock_note note = { 0 };
	struct sl_line line;

	sl_sock_note(&note, fd);
	sl_line_start(&line, "listen");
	sl_line_add(&line, "port", "%u", sl_addr_port(&note.local));
	sl_line_self(&line);
	sl_line_note(&line, &note);
	sl_line_end(&line);
}

static int listen_tcp(const struct sl_opts *o, int fd)
{
	int backlog = (int)sl_or(o->backlog, 4096);

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0)
		return -errno;
	if (bind(fd, &o->listen.sa, o->listen.len) < 0)
		return -errno;
	if (o->fastopen && setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN, &(int){ 64 }, sizeof(int)) < 0)
		return -errno;
	return listen(fd, backlog) < 0 ? -errno : 0;
}

static int listen_udp(const struct sl_opts *o, int fd)
{
	sl_sock_buffer(fd);
	return bind(fd, &o->listen.sa, o->listen.len) < 0 ? -errno : 0;
}

int sl_sock_listen(const struct sl_opts *o, int type, int *out)
{
	_cleanup_fd_ int fd = -1;
	int rc;

	if (o->listen.len == 0)
		return sl_usage("%s needs --listen", o->cmd);
	rc = sl_sock_new(o->listen.sa.sa_family, type, o->mptcp ? IPPROTO_MPTCP : 0, &fd);
	if (o->mptcp && (rc == -EPROTONOSUPPORT || rc == -ENOPROTOOPT))
		return sl_skip("MPTCP", -rc);
	if (rc < 0)
		return sl_fail("socket", -rc);
	rc = type == SOCK_STREAM ? listen_tcp(o, fd) : listen_udp(o, fd);
	if (rc < 0)
		return sl_fail("listen", -rc);
	tell_listen(fd);
	*out = TAKE_FD(fd);
	return 0;
}

/* Whether stdin has ended; takes what it holds. */
static bool stdin_ended(void)
{
	char text[256];

	return read(STDIN_FILENO, text, sizeof(text)) == 0;
}

int sl_sock_next(const struct sl_opts *o, int fd, bool *draining)
{
	for (;;) {
		struct pollfd pfds[2] = {
			{ .fd = fd, .events = POLLIN },
			{ .fd = o->until_eof && !*draining ? STDIN_FILENO : -1, .events = POLLIN },
		};
		int rc = poll(pfds, 2, *draining ? DRAIN_MS : -1);

		if (rc < 0 && errno == EINTR)
			continue;
		if (rc < 0)
			return -errno;
		if (pfds[0].revents)
			return 1;
		if (rc == 0)
			return 0;
		if (stdin_ended())
			*draining = true;
	}
}
