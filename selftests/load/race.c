/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread changes what a call of another thread is about to use: the address, or the
 * socket behind the descriptor. Whoever decides on a first look is fooled sooner or later.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc.h"
#include "truth.h"

struct race {
	const struct sl_opts *o;
	volatile struct sl_addr addr; /* what the calls use; flipped by the other thread */
	int fds[2];                   /* a TCP and a UDP socket */
	int fd;                       /* now the one, now the other */
	atomic_bool stop;
	uint64_t tried, ok, refused, other;
};

static void *flip_addr(void *arg)
{
	struct race *r = arg;

	/* Only the address and the port differ: a torn one is still one of the four. */
	for (unsigned int i = 0; !atomic_load_explicit(&r->stop, memory_order_relaxed); i++) {
		r->addr.in.sin_addr.s_addr = r->o->server[i & 1].in.sin_addr.s_addr;
		r->addr.in.sin_port = r->o->server[i & 1].in.sin_port;
	}
	return NULL;
}

static void *flip_fd(void *arg)
{
	struct race *r = arg;

	for (unsigned int i = 0; !atomic_load_explicit(&r->stop, memory_order_relaxed); i++)
		dup3(r->fds[i & 1], r->fd, O_CLOEXEC);
	return NULL;
}

static void tally(struct race *r, long rc)
{
	r->tried++;
	if (rc >= 0)
		r->ok++;
	else if (errno == EACCES)
		r->refused++;
	else
		r->other++;
}

static int new_socket(int type)
{
	const struct linger reset = { .l_onoff = 1 };
	const struct timeval most = { .tv_usec = 200000 };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || type != SOCK_STREAM)
		return fd;
	/* Ports of closed connections must not run out, and a full queue must not hold it up. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	return fd;
}

static void try_connect(struct race *r)
{
	_cleanup_fd_ int fd = new_socket(SOCK_STREAM);

	tally(r, connect(fd, (struct sockaddr *)&r->addr.in, sizeof(r->addr.in)));
}

static void try_sendto(struct race *r)
{
	tally(r, sendto(r->fds[1], "x", 1, 0, (struct sockaddr *)&r->addr.in, sizeof(r->addr.in)));
}

/* TCP may go to the address, UDP may not: the call must not be taken for the other's. */
static void try_fd(struct race *r)
{
	sl_cleanup_fd(&r->fds[0]);
	r->fds[0] = new_socket(SOCK_STREAM);
	tally(r, sendto(r->fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&r->addr.in,
			sizeof(r->addr.in)));
}

static const struct {
	const char *name;
	void *(*flip)(void *arg);
	void (*attempt)(struct race *r);
} kinds[] = {
	{ "connect", flip_addr, try_connect },
	{ "sendto", flip_addr, try_sendto },
	{ "fd", flip_fd, try_fd },
};

static void tell(const struct race *r)
{
	struct sl_line line;

	sl_line_start(&line, "total");
	sl_line_self(&line);
	sl_line_u64(&line, "tried", r->tried);
	sl_line_u64(&line, "ok", r->ok);
	sl_line_u64(&line, "refused", r->refused);
	sl_line_u64(&line, "other", r->other);
	sl_line_end(&line);
}

static int run(struct race *r, size_t kind)
{
	uint64_t end = sl_now_ns() + sl_or(r->o->seconds, 1) * 1000000000ULL;
	uint64_t most = sl_or(r->o->count, SL_UNSET);
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, kinds[kind].flip, r);

	if (rc)
		return sl_fail("pthread_create", rc);
	while (r->tried < most && sl_now_ns() < end)
		kinds[kind].attempt(r);
	atomic_store(&r->stop, true);
	pthread_join(thread, NULL);
	tell(r);
	return 0;
}

static int race(const struct sl_opts *o)
{
	struct race r = { .o = o, .fds = { -1, -1 }, .fd = -1 };
	size_t kind = 0;
	int rc;

	if (o->n_servers != 2)
		return sl_usage("%s needs two --server", o->cmd);
	while (kind < ARRAY_SIZE(kinds) && (!o->kind || strcmp(o->kind, kinds[kind].name) != 0))
		kind++;
	if (kind == ARRAY_SIZE(kinds))
		return sl_usage("--kind: no such race");
	memcpy((void *)&r.addr, &o->server[0], sizeof(r.addr));
	r.fds[0] = new_socket(SOCK_STREAM);
	r.fds[1] = new_socket(SOCK_DGRAM);
	r.fd = fcntl(r.fds[1], F_DUPFD_CLOEXEC, 0);
	rc = r.fd < 0 ? sl_fail("socket", errno) : run(&r, kind);
	sl_cleanup_fd(&r.fds[0]);
	sl_cleanup_fd(&r.fds[1]);
	sl_cleanup_fd(&r.fd);
	return rc;
}

const struct sl_cmd sl_race_cmds[] = {
	{ .name = "race",
	  .run = race,
	  .options = "server kind seconds count",
	  .help = "for SECONDS (1) or COUNT calls, a thread changes what they use. --kind connect, "
		  "sendto: the address, one --server or the other; fd: the socket, TCP or UDP, to "
		  "the first --server" },
	{ 0 },
};
