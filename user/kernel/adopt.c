// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "kernel/adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pidns.h"
#include "kernel/set_private.h"

/* Of a thread that has descriptors of its own (6.9; PIDFD_THREAD). */
#define PIDFD_OF_THREAD O_EXCL

/* Looks until all sockets found have a cookie. */
#define SEED_ROUNDS 10

struct row {
	struct sl_sock sock;
	struct sl_iter_sock now;
};

bool sl_adopt_by_fd(const struct sl_set *set)
{
	char path[PATH_MAX];

	return !sl_set_path(path, set->dir, SL_SET_ITERS, "find_socks") && !access(path, F_OK);
}

/* A copy of the descriptor, or -errno; *cookie is the socket's, which has one from now on. */
static int copy(const struct sl_iter_sock *now, __u64 *cookie)
{
	const __u32 tid = now->holder_tid;
	socklen_t len = sizeof(*cookie);
	_cleanup_fd_ int process = -1;
	int fd;

	process = (int)syscall(SYS_pidfd_open, tid, tid == now->holder.tgid ? 0 : PIDFD_OF_THREAD);
	if (process < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, process, now->fd, 0);
	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &len)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* 1: it had no cookie when it was found, so that it may be another one than is described. */
static int seed(const struct sl_set *set, const struct row *row)
{
	struct sl_adopted adopted = { .sandbox = row->sock.owner.sandbox };
	_cleanup_fd_ int fd = -1;
	__u64 cookie = 0;

	if (!sl_in_first_pid_ns())
		return -EOPNOTSUPP;
	fd = copy(&row->now, &cookie);
	if (fd == -ESRCH || fd == -EBADF || fd == -ENOENT)
		return 0; /* it has been closed */
	if (fd < 0)
		return fd;
	if (cookie != row->sock.cookie)
		return 1;
	/* A hook may have been first. */
	if (bpf_map_update_elem(set->maps[SL_MAP_ADOPTED], &fd, &row->sock, BPF_NOEXIST))
		return errno == EEXIST ? 0 : -errno;
	return sl_prog_run(set, SL_PROG_ADOPTED, &adopted, sizeof(adopted));
}

static int seed_all(const struct sl_set *set)
{
	_cleanup_fd_ int fd = sl_iter_open(set, "find_socks");
	struct row row;
	int rc, again = 0;

	if (fd < 0)
		return fd;
	while ((rc = sl_iter_read(fd, &row, sizeof(row))) > 0) {
		rc = seed(set, &row);
		if (rc < 0)
			return rc;
		again |= rc;
	}
	return rc < 0 ? rc : again;
}

int sl_adopt_seed(struct sl_set *set)
{
	int rc = 1;

	for (int i = 0; rc > 0 && i < SEED_ROUNDS; i++)
		rc = seed_all(set);
	return rc > 0 ? -EAGAIN : rc;
}

int sl_adopt_unseed(struct sl_set *set)
{
	_cleanup_fd_ int iter = sl_iter_open(set, "dump_socks_found");
	struct sl_sandbox sandbox;
	struct sl_sock adopted;
	struct row row;
	__u64 cookie;
	int rc;

	if (iter < 0)
		return iter;
	while ((rc = sl_iter_read(iter, &row, sizeof(row))) > 0) {
		_cleanup_fd_ int fd = row.now.maybe_adopted ? copy(&row.now, &cookie) : -1;

		if (fd >= 0 && !sl_map_lookup(set->maps[SL_MAP_ADOPTED], &fd, &adopted) &&
		    sl_map_lookup(set->maps[SL_MAP_SANDBOXES], &adopted.owner.sandbox, &sandbox))
			bpf_map_delete_elem(set->maps[SL_MAP_ADOPTED], &fd);
	}
	return rc;
}

/* The iterator, which did not know, counted without the SYN that who connects sends. */
static void take_syn(__u64 *bytes)
{
	if (*bytes)
		--*bytes;
}

int sl_adopt_complete(const struct sl_set *set, struct sl_sock *sock, struct sl_iter_sock *now)
{
	const struct sl_endpoint local = sock->local;
	struct sl_sock adopted;
	_cleanup_fd_ int fd = -1;
	__u64 cookie = 0;

	fd = copy(now, &cookie);
	if (fd < 0 || cookie != sock->cookie ||
	    sl_map_lookup(set->maps[SL_MAP_ADOPTED], &fd, &adopted))
		return sock->owner.sandbox ? 0 : -ENOENT;
	*sock = adopted;
	if (!sock->local.port_be)
		sock->local = local;
	if (sock->protocol != IPPROTO_TCP || now->state == TCP_LISTEN) {
		now->bytes_sent = sock->bytes_sent;
		now->bytes_received = sock->bytes_received;
	} else if (!(sock->flags & SL_SOCK_ACCEPTED)) {
		take_syn(&now->bytes_sent);
		take_syn(&now->bytes_acked);
	}
	return 0;
}
