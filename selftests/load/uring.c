/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct sl_uring {
	struct io_uring ring;
	unsigned int sqe_flags;
	bool open;
};

void sl_uring_free(struct sl_uring **ring)
{
	if (!*ring)
		return;
	if ((*ring)->open)
		io_uring_queue_exit(&(*ring)->ring);
	free(*ring);
	*ring = NULL;
}

int sl_uring_new(struct sl_uring **out, const char *mode)
{
	_cleanup_(sl_uring_free) struct sl_uring *ring = calloc(1, sizeof(*ring));
	struct io_uring_params params = { .sq_thread_idle = 100 };
	int rc;

	if (!ring)
		return -ENOMEM;
	if (mode && !strcmp(mode, "async"))
		ring->sqe_flags = IOSQE_ASYNC;
	else if (mode && !strcmp(mode, "sqpoll"))
		params.flags = IORING_SETUP_SQPOLL;
	else if (mode && strcmp(mode, "inline") != 0)
		return -EINVAL;
	rc = io_uring_queue_init_params(8, &ring->ring, &params);
	if (rc < 0)
		return rc;
	ring->open = true;
	*out = TAKE_PTR(ring);
	return 0;
}

/* The result of one completion; *more when another will follow for the same operation. */
static int complete(struct sl_uring *ring, bool *more)
{
	struct io_uring_cqe *cqe;
	int rc;

	do {
		rc = io_uring_wait_cqe(&ring->ring, &cqe);
	} while (rc == -EINTR);
	if (rc < 0)
		return rc;
	rc = cqe->res;
	*more = cqe->flags & IORING_CQE_F_MORE;
	io_uring_cqe_seen(&ring->ring, cqe);
	return rc;
}

static int run(struct sl_uring *ring, struct io_uring_sqe *sqe)
{
	bool more;
	int rc;

	/* prep cleared the flags, so they are set last. */
	io_uring_sqe_set_flags(sqe, ring->sqe_flags);
	rc = io_uring_submit(&ring->ring);
	return rc < 0 ? rc : complete(ring, &more);
}

int sl_uring_socket(struct sl_uring *ring, int family, int type, int protocol)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);

	if (!sqe)
		return -EBUSY;
	/* io_uring_prep_socket() came after what Debian 12 has. */
	io_uring_prep_rw(IORING_OP_SOCKET, sqe, family, NULL, (unsigned int)protocol,
			 (unsigned int)(type | SOCK_CLOEXEC));
	return run(ring, sqe);
}

int sl_uring_connect(struct sl_uring *ring, int fd, const struct sockaddr *sa, socklen_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_connect(sqe, fd, sa, len);
	return run(ring, sqe);
}

ssize_t sl_uring_send(struct sl_uring *ring, int fd, const void *buf, size_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_send(sqe, fd, buf, len, 0);
	return run(ring, sqe);
}

ssize_t sl_uring_sendmsg(struct sl_uring *ring, int fd, const struct msghdr *msg)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_sendmsg(sqe, fd, msg, 0);
	return run(ring, sqe);
}

static bool has_send_zc(struct sl_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&ring->ring);
	bool has = probe && io_uring_opcode_supported(probe, IORING_OP_SEND_ZC);

	if (probe)
		io_uring_free_probe(probe);
	return has;
}

ssize_t sl_uring_send_zc(struct sl_uring *ring, int fd, const void *buf, size_t len)
{
	struct io_uring_sqe *sqe;
	bool more, ignored;
	int rc, result;

	if (!has_send_zc(ring))
		return -EOPNOTSUPP;
	sqe = io_uring_get_sqe(&ring->ring);
	if (!sqe)
		return -EBUSY;
	io_uring_prep_send_zc(sqe, fd, buf, len, 0, 0);
	io_uring_sqe_set_flags(sqe, ring->sqe_flags);
	rc = io_uring_submit(&ring->ring);
	if (rc < 0)
		return rc;
	result = complete(ring, &more);
	if (more) {
		rc = complete(ring, &ignored);
		if (rc < 0)
			return rc;
	}
	return result;
}

ssize_t sl_uring_recv(struct sl_uring *ring, int fd, void *buf, size_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_recv(sqe, fd, buf, len, 0);
	return run(ring, sqe);
}
