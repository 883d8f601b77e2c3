// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages between worker and keeper: a request, with a listener or not, and an errno. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "broker/keeper_private.h"

enum request_kind { REQUEST_HOLD, REQUEST_DROP };

struct request {
	uint64_t tag;
	enum request_kind kind;
};

int sl_keeper_sockets(int *keeper, int *worker)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	*keeper = fds[0];
	*worker = fds[1];
	return 0;
}

void sl_keeper_close_all(struct sl_keeper_link *link)
{
	while (link->count)
		sl_cleanup_fd(&link->listeners[--link->count].fd);
}

/* *fd is -1 when none came; the sender is our own child, so one is all there can be. */
static int receive_request(int sock, struct request *request, int *fd)
{
	struct sl_fds fds;
	ssize_t n;

	*fd = -1;
	n = sl_fds_receive(sock, request, sizeof(*request), &fds);
	if (n == -EPROTO) /* the descriptor was cut off: hold() answers that */
		return 0;
	if (n <= 0)
		return n ? (int)n : -EPIPE;
	if (fds.count)
		*fd = sl_fds_take(&fds, 0);
	sl_fds_close(&fds);
	return n == (ssize_t)sizeof(*request) ? 0 : -EBADMSG;
}

static struct sl_keeper_listener *find(struct sl_keeper_link *link, uint64_t tag)
{
	for (size_t i = 0; i < link->count; i++) {
		if (link->listeners[i].tag == tag)
			return &link->listeners[i];
	}
	return NULL;
}

static int hold(struct sl_keeper_link *link, uint64_t tag, int *fd)
{
	/* Without: it was cut off, this process has no descriptor free. */
	if (*fd < 0)
		return -EMFILE;
	if (find(link, tag))
		return -EEXIST;
	if (link->count == SL_KEEPER_LISTENERS)
		return -ENOSPC;
	link->listeners[link->count++] = (struct sl_keeper_listener){ tag, TAKE_FD(*fd) };
	return 0;
}

static int drop(struct sl_keeper_link *link, uint64_t tag)
{
	struct sl_keeper_listener *listener = find(link, tag);

	if (!listener)
		return -ENOENT;
	sl_cleanup_fd(&listener->fd);
	*listener = link->listeners[--link->count];
	return 0;
}

int sl_keeper_serve(struct sl_keeper_link *link, int sock)
{
	_cleanup_fd_ int fd = -1;
	struct request request;
	int ret = receive_request(sock, &request, &fd), answer;

	if (ret == -EBADMSG)
		return 0;
	if (ret)
		return ret;
	answer = request.kind == REQUEST_HOLD ? hold(link, request.tag, &fd)
					      : drop(link, request.tag);
	/* A worker that died meanwhile needs no answer. */
	(void)!send(sock, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
	return 0;
}

static int ask(struct sl_keeper_link *link, enum request_kind kind, uint64_t tag, int fd)
{
	struct request request;
	int ret, answer;
	ssize_t n;

	/* Padding goes over the socket too. */
	memset(&request, 0, sizeof(request));
	request.kind = kind;
	request.tag = tag;
	pthread_mutex_lock(&link->lock);
	ret = sl_fd_send(link->sock, &request, sizeof(request), fd);
	if (!ret) {
		do
			n = recv(link->sock, &answer, sizeof(answer), 0);
		while (n < 0 && errno == EINTR);
		ret = n == (ssize_t)sizeof(answer) ? answer : -EPIPE;
	}
	pthread_mutex_unlock(&link->lock);
	return ret;
}

int sl_keeper_hold(struct sl_keeper_link *link, int listener, uint64_t tag)
{
	return listener < 0 ? -EBADF : ask(link, REQUEST_HOLD, tag, listener);
}

int sl_keeper_drop(struct sl_keeper_link *link, uint64_t tag)
{
	return ask(link, REQUEST_DROP, tag, -1);
}

void sl_keeper_beat(struct sl_keeper_link *link)
{
	atomic_store(link->beat_ms, sl_monotonic_ms());
}

struct sl_inflight *sl_keeper_inflight(const struct sl_keeper_link *link)
{
	return link->inflight;
}

unsigned int sl_keeper_generation(const struct sl_keeper_link *link)
{
	return link->generation;
}

int sl_keeper_take(struct sl_keeper_link *link, uint64_t tag, int *fd)
{
	struct sl_keeper_listener *listener = find(link, tag);

	if (!listener || listener->fd < 0)
		return -ENOENT;
	*fd = TAKE_FD(listener->fd);
	return 0;
}

bool sl_keeper_inherited(struct sl_keeper_link *link, size_t *at, int *fd, uint64_t *tag)
{
	for (; *at < link->count; (*at)++) {
		struct sl_keeper_listener *listener = &link->listeners[*at];

		if (listener->fd < 0)
			continue;
		*fd = TAKE_FD(listener->fd);
		*tag = listener->tag;
		(*at)++;
		return true;
	}
	return false;
}
