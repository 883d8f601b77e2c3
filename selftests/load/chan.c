/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "chan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"

const char *sl_payload(void)
{
	static char payload[SL_CHUNK];

	if (payload[1] == 0) {
		for (size_t i = 0; i < sizeof(payload); i++)
			payload[i] = (char)(i % 251);
	}
	return payload;
}

static ssize_t result(ssize_t rc)
{
	return rc < 0 ? -errno : rc;
}

int sl_chan_pipe(struct sl_chan *chan)
{
	if (chan->pipe[0] < 0 && pipe2(chan->pipe, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

int sl_chan_file(struct sl_chan *chan)
{
	_cleanup_fd_ int fd = -1;

	if (chan->file >= 0)
		return 0;
	fd = memfd_create("sl-load-payload", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, sl_payload(), SL_CHUNK) != SL_CHUNK)
		return -EIO;
	chan->file = TAKE_FD(fd);
	return 0;
}

int sl_chan_uring(struct sl_chan *chan)
{
	return chan->uring ? 0 : sl_uring_new(&chan->uring, chan->uring_mode);
}

void sl_chan_close(struct sl_chan *chan)
{
	sl_cleanup_fd(&chan->pipe[0]);
	sl_cleanup_fd(&chan->pipe[1]);
	sl_cleanup_fd(&chan->file);
	sl_uring_free(&chan->uring);
}

ssize_t sl_chan_from_pipe(struct sl_chan *chan, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = splice(chan->pipe[0], NULL, chan->fd, NULL, len - done, 0);

		if (n < 0 && done == 0)
			return -errno;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static ssize_t send_send(struct sl_chan *chan, const void *buf, size_t len)
{
	return result(send(chan->fd, buf, len, 0));
}

static ssize_t send_write(struct sl_chan *chan, const void *buf, size_t len)
{
	return result(write(chan->fd, buf, len));
}

/* Two pieces, the first the smaller half. */
static void halves(struct iovec iov[2], const void *buf, size_t len)
{
	iov[0] = (struct iovec){ (void *)buf, len / 2 };
	iov[1] = (struct iovec){ (char *)buf + len / 2, len - len / 2 };
}

static ssize_t send_writev(struct sl_chan *chan, const void *buf, size_t len)
{
	struct iovec iov[2];

	halves(iov, buf, len);
	return result(writev(chan->fd, iov, 2));
}

static ssize_t send_sendmsg(struct sl_chan *chan, const void *buf, size_t len)
{
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	halves(iov, buf, len);
	return result(sendmsg(chan->fd, &msg, 0));
}

static ssize_t send_sendmmsg(struct sl_chan *chan, const void *buf, size_t len)
{
	struct mmsghdr msgs[2] = { 0 };
	struct iovec iov[2];
	ssize_t sum = 0;
	int n;

	halves(iov, buf, len);
	for (int i = 0; i < 2; i++) {
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(chan->fd, msgs, 2, 0);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++)
		sum += msgs[i].msg_len;
	return sum;
}

static ssize_t send_sendfile(struct sl_chan *chan, const void *buf, size_t len)
{
	off_t offset = 0;
	int rc = sl_chan_file(chan);

	(void)buf; /* the memfd holds the same bytes */
	return rc < 0 ? rc : result(sendfile(chan->fd, chan->file, &offset, len));
}

static ssize_t send_splice(struct sl_chan *chan, const void *buf, size_t len)
{
	int rc = sl_chan_pipe(chan);
	ssize_t n;

	if (rc < 0)
		return rc;
	n = write(chan->pipe[1], buf, len);
	return n < 0 ? -errno : sl_chan_from_pipe(chan, (size_t)n);
}

static ssize_t send_vmsplice(struct sl_chan *chan, const void *buf, size_t len)
{
	struct iovec iov = { (void *)buf, len };
	int rc = sl_chan_pipe(chan);
	ssize_t n;

	if (rc < 0)
		return rc;
	n = vmsplice(chan->pipe[1], &iov, 1, 0);
	return n < 0 ? -errno : sl_chan_from_pipe(chan, (size_t)n);
}

static ssize_t send_uring(struct sl_chan *chan, const void *buf, size_t len)
{
	int rc = sl_chan_uring(chan);

	return rc < 0 ? rc : sl_uring_send(chan->uring, chan->fd, buf, len);
}

static ssize_t send_uring_msg(struct sl_chan *chan, const void *buf, size_t len)
{
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int rc = sl_chan_uring(chan);

	halves(iov, buf, len);
	return rc < 0 ? rc : sl_uring_sendmsg(chan->uring, chan->fd, &msg);
}

static ssize_t send_uring_zc(struct sl_chan *chan, const void *buf, size_t len)
{
	int rc = sl_chan_uring(chan);

	return rc < 0 ? rc : sl_uring_send_zc(chan->uring, chan->fd, buf, len);
}

static ssize_t send_zerocopy(struct sl_chan *chan, const void *buf, size_t len)
{
	ssize_t n;

	if (setsockopt(chan->fd, SOL_SOCKET, SO_ZEROCOPY, &(int){ 1 }, sizeof(int)) < 0)
		return -errno;
	n = send(chan->fd, buf, len, MSG_ZEROCOPY);
	if (n < 0)
		return -errno;
	chan->zerocopy++;
	return n;
}

static ssize_t send_fastopen(struct sl_chan *chan, const void *buf, size_t len)
{
	const struct sl_addr *to = chan->to;

	if (!to)
		return send_send(chan, buf, len);
	chan->to = NULL;
	return result(sendto(chan->fd, buf, len, MSG_FASTOPEN, &to->sa, to->len));
}

static ssize_t send_fastopen_msg(struct sl_chan *chan, const void *buf, size_t len)
{
	const struct sl_addr *to = chan->to;
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (!to)
		return send_sendmsg(chan, buf, len);
	chan->to = NULL;
	halves(iov, buf, len);
	msg.msg_name = (void *)&to->sa;
	msg.msg_namelen = to->len;
	return result(sendmsg(chan->fd, &msg, MSG_FASTOPEN));
}

int sl_chan_flush(struct sl_chan *chan)
{
	while (chan->zerocopy > 0) {
		struct pollfd pfd = { .fd = chan->fd };
		char control[128];
		struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
		struct sock_extended_err *err;
		struct cmsghdr *cmsg;

		if (poll(&pfd, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (recvmsg(chan->fd, &msg, MSG_ERRQUEUE) < 0) {
			if (errno == EAGAIN && !(pfd.revents & POLLHUP))
				continue;
			return -errno;
		}
		cmsg = CMSG_FIRSTHDR(&msg);
		if (!cmsg)
			continue;
		/* One notification covers the range of sends [ee_info, ee_data]. */
		err = (struct sock_extended_err *)CMSG_DATA(cmsg);
		chan->zerocopy -= err->ee_data - err->ee_info + 1;
	}
	return 0;
}

static ssize_t recv_recv(struct sl_chan *chan, void *buf, size_t len)
{
	return result(recv(chan->fd, buf, len, 0));
}

static ssize_t recv_read(struct sl_chan *chan, void *buf, size_t len)
{
	return result(read(chan->fd, buf, len));
}

static ssize_t recv_splice(struct sl_chan *chan, void *buf, size_t len)
{
	int rc = sl_chan_pipe(chan);
	ssize_t n;

	if (rc < 0)
		return rc;
	n = splice(chan->fd, NULL, chan->pipe[1], NULL, len, 0);
	if (n <= 0)
		return result(n);
	return read(chan->pipe[0], buf, (size_t)n) == n ? n : -EIO;
}

static ssize_t recv_recvmmsg(struct sl_chan *chan, void *buf, size_t len)
{
	struct mmsghdr msgs[2] = { 0 };
	struct iovec iov[2];
	ssize_t sum = 0;
	int n;

	halves(iov, buf, len);
	for (int i = 0; i < 2; i++) {
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	/* An empty first piece would read as the end of the stream. */
	n = recvmmsg(chan->fd, len > 1 ? msgs : &msgs[1], len > 1 ? 2 : 1, MSG_WAITFORONE, NULL);
	if (n < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		sum += msgs[i].msg_len;
	return sum;
}

static ssize_t recv_uring(struct sl_chan *chan, void *buf, size_t len)
{
	int rc = sl_chan_uring(chan);

	return rc < 0 ? rc : sl_uring_recv(chan->uring, chan->fd, buf, len);
}

static ssize_t recv_peek(struct sl_chan *chan, void *buf, size_t len)
{
	ssize_t n = recv(chan->fd, buf, len, MSG_PEEK);

	if (n <= 0)
		return result(n);
	chan->peeked += (uint64_t)n;
	return result(recv(chan->fd, buf, len, 0));
}

static const struct sl_via vias[] = {
	{ .name = "send", .send = send_send },
	{ .name = "write", .send = send_write },
	{ .name = "writev", .send = send_writev },
	{ .name = "sendmsg", .send = send_sendmsg },
	{ .name = "sendmmsg", .send = send_sendmmsg },
	{ .name = "sendfile", .send = send_sendfile },
	{ .name = "splice", .send = send_splice },
	{ .name = "vmsplice", .send = send_vmsplice },
	{ .name = "uring-send", .send = send_uring },
	{ .name = "uring-sendmsg", .send = send_uring_msg },
	{ .name = "uring-sendzc", .send = send_uring_zc },
	{ .name = "msg-zerocopy", .send = send_zerocopy },
	{ .name = "fastopen", .fastopen = true, .send = send_fastopen },
	{ .name = "fastopen-sendmsg", .fastopen = true, .send = send_fastopen_msg },
	{ .name = "fastopen-connect", .fastopen_connect = true, .send = send_send },
};

static const struct sl_take takes[] = {
	{ "recv", recv_recv },         { "read", recv_read },        { "splice", recv_splice },
	{ "recvmmsg", recv_recvmmsg }, { "uring-recv", recv_uring }, { "peek", recv_peek },
};

const struct sl_via *sl_via_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(vias); i++) {
		if (!name || !strcmp(name, vias[i].name))
			return &vias[i];
	}
	return NULL;
}

const struct sl_take *sl_take_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(takes); i++) {
		if (!name || !strcmp(name, takes[i].name))
			return &takes[i];
	}
	return NULL;
}
