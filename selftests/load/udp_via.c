/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "udp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sock.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define BATCH 16

/* The destination of datagram number `i`; NULL on a connected socket. */
static const struct sl_addr *dest(const struct sl_flow *f, uint64_t i)
{
	return f->o->connected ? NULL : &f->peers[i % f->n_peers];
}

/* A harmless control message, the hop limit; for IPv4 and for IPv6. */
struct control {
	char text[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
};

static void add_control(struct msghdr *msg, struct control *c, int level, int type, int value)
{
	struct cmsghdr *cmsg;

	memset(c, 0, sizeof(*c));
	msg->msg_control = c->text;
	msg->msg_controllen = CMSG_SPACE(sizeof(int));
	cmsg = CMSG_FIRSTHDR(msg);
	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &value, sizeof(value));
}

static void fill(const struct sl_flow *f, struct msghdr *msg, struct iovec *iov, struct control *c,
		 uint64_t i)
{
	const struct sl_addr *to = dest(f, i);
	bool v6 = sl_sock_family(f->o, &f->peers[0]) == AF_INET6;

	*iov = (struct iovec){ (void *)sl_payload(), f->bytes };
	*msg = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 1 };
	if (to) {
		msg->msg_name = (void *)&to->sa;
		msg->msg_namelen = to->len;
	}
	/* An AF_INET destination takes IPv4 control messages on an IPv6 socket too. */
	if (f->o->cmsg && v6 && !f->o->mapped && !f->o->v4_on_v6)
		add_control(msg, c, IPPROTO_IPV6, IPV6_HOPLIMIT, 64);
	else if (f->o->cmsg)
		add_control(msg, c, IPPROTO_IP, IP_TTL, 64);
}

static int one(ssize_t rc)
{
	return rc < 0 ? -errno : 1;
}

static int send_send(struct sl_flow *f, uint64_t n)
{
	(void)n;
	return one(send(f->chan.fd, sl_payload(), f->bytes, 0));
}

static int send_sendto(struct sl_flow *f, uint64_t n)
{
	const struct sl_addr *to = dest(f, f->datagrams);

	(void)n;
	return one(sendto(f->chan.fd, sl_payload(), f->bytes, 0, to ? &to->sa : NULL,
			  to ? to->len : 0));
}

static int send_sendmsg(struct sl_flow *f, uint64_t n)
{
	struct msghdr msg;
	struct control c;
	struct iovec iov;

	(void)n;
	fill(f, &msg, &iov, &c, f->datagrams);
	return one(sendmsg(f->chan.fd, &msg, 0));
}

static int send_sendmmsg(struct sl_flow *f, uint64_t n)
{
	struct mmsghdr msgs[BATCH] = { 0 };
	struct control c[BATCH];
	struct iovec iov[BATCH];
	unsigned int count = n < BATCH ? (unsigned int)n : BATCH;
	int rc;

	for (unsigned int i = 0; i < count; i++)
		fill(f, &msgs[i].msg_hdr, &iov[i], &c[i], f->datagrams + i);
	rc = sendmmsg(f->chan.fd, msgs, count, 0);
	return rc < 0 ? -errno : rc;
}

/* One call whose payload the kernel cuts into datagrams of `bytes`. */
static int send_gso(struct sl_flow *f, uint64_t n)
{
	uint16_t size = (uint16_t)f->bytes;
	char text[CMSG_SPACE(sizeof(size))] __attribute__((aligned(8))) = { 0 };
	uint64_t fit = SL_UDP_MAX / f->bytes;
	struct msghdr msg;
	struct cmsghdr *cmsg;
	struct control c;
	struct iovec iov;

	fill(f, &msg, &iov, &c, f->datagrams);
	n = n < fit ? n : fit;
	n = n < BATCH ? n : BATCH;
	iov.iov_len = f->bytes * n;
	msg.msg_control = text;
	msg.msg_controllen = sizeof(text);
	cmsg = CMSG_FIRSTHDR(&msg);
	cmsg->cmsg_level = SOL_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(cmsg), &size, sizeof(size));
	return sendmsg(f->chan.fd, &msg, 0) < 0 ? -errno : (int)n;
}

static int send_uring(struct sl_flow *f, uint64_t n)
{
	struct msghdr msg;
	struct control c;
	struct iovec iov;
	int rc = sl_chan_uring(&f->chan);

	(void)n;
	if (rc < 0)
		return rc;
	fill(f, &msg, &iov, &c, f->datagrams);
	rc = (int)sl_uring_sendmsg(f->chan.uring, f->chan.fd, &msg);
	return rc < 0 ? rc : 1;
}

static int send_splice(struct sl_flow *f, uint64_t n)
{
	int rc = sl_chan_pipe(&f->chan);
	ssize_t len;

	(void)n;
	if (rc < 0)
		return rc;
	if (write(f->chan.pipe[1], sl_payload(), f->bytes) != (ssize_t)f->bytes)
		return -EIO;
	len = splice(f->chan.pipe[0], NULL, f->chan.fd, NULL, f->bytes, 0);
	if (len < 0)
		return -errno;
	return len == (ssize_t)f->bytes ? 1 : -EMSGSIZE;
}

static int send_sendfile(struct sl_flow *f, uint64_t n)
{
	int rc = sl_chan_file(&f->chan);
	off_t offset = 0;
	ssize_t len;

	(void)n;
	if (rc < 0)
		return rc;
	len = sendfile(f->chan.fd, f->chan.file, &offset, f->bytes);
	if (len < 0)
		return -errno;
	return len == (ssize_t)f->bytes ? 1 : -EMSGSIZE;
}

static const struct sl_udp_via vias[] = {
	{ "sendto", false, false, send_sendto },  { "send", true, false, send_send },
	{ "sendmsg", false, true, send_sendmsg }, { "sendmmsg", false, true, send_sendmmsg },
	{ "gso", false, false, send_gso },        { "uring", false, true, send_uring },
	{ "splice", true, false, send_splice },   { "sendfile", true, false, send_sendfile },
};

static ssize_t recv_from(struct sl_flow *f, char *buf, size_t len)
{
	struct sl_addr from = { .len = sizeof(from.in6) };

	return recvfrom(f->chan.fd, buf, len, 0, &from.sa, &from.len);
}

static ssize_t recv_mmsg(struct sl_flow *f, char *buf, size_t len)
{
	struct iovec iov = { buf, len };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	return recvmmsg(f->chan.fd, &msg, 1, 0, NULL) < 0 ? -1 : (ssize_t)msg.msg_len;
}

/* A buffer of half the datagram: what is read is the half, the rest is gone. */
static ssize_t recv_trunc(struct sl_flow *f, char *buf, size_t len)
{
	struct iovec iov = { buf, f->bytes / 2 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(f->chan.fd, &msg, MSG_TRUNC);

	(void)len;
	if (n < 0)
		return n;
	if (msg.msg_flags & MSG_TRUNC)
		f->truncated += (uint64_t)n - iov.iov_len;
	return n < (ssize_t)iov.iov_len ? n : (ssize_t)iov.iov_len;
}

static ssize_t recv_peek(struct sl_flow *f, char *buf, size_t len)
{
	ssize_t n = recv(f->chan.fd, buf, len, MSG_PEEK);

	if (n < 0)
		return n;
	f->chan.peeked += (uint64_t)n;
	return recv(f->chan.fd, buf, len, 0);
}

static const struct sl_udp_take takes[] = {
	{ "recvfrom", recv_from },
	{ "recvmmsg", recv_mmsg },
	{ "recvmsg-trunc", recv_trunc },
	{ "peek", recv_peek },
};

const struct sl_udp_via *sl_udp_via_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(vias); i++) {
		if (!name || !strcmp(name, vias[i].name))
			return &vias[i];
	}
	return NULL;
}

const struct sl_udp_take *sl_udp_take_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(takes); i++) {
		if (!strcmp(name, takes[i].name))
			return &takes[i];
	}
	return NULL;
}
