/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The other end of the soak's streams, outside of the sandbox. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay.h"
#include "soak.h"

#define EVENTS 64

struct server {
	int listener, epoll;
	struct soak_shared *shared;
};

struct conn {
	struct soak_stream stream;
	size_t head_size; /* that came */
};

static void take(struct server *server)
{
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct conn *conn = calloc(1, sizeof(*conn));
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

		if (conn)
			conn->stream.fd = fd;
		if (!conn || epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event)) {
			free(conn);
			close(fd);
		}
	}
}

static int read_head(struct server *server, struct conn *conn)
{
	struct epoll_event event = { .events = EPOLLOUT, .data.ptr = conn };
	struct soak_head *head = &conn->stream.head;
	ssize_t n = recv(conn->stream.fd, (char *)head + conn->head_size,
			 sizeof(*head) - conn->head_size, 0);

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 1 : -EPIPE;
	conn->head_size += (size_t)n;
	if (conn->head_size < sizeof(*head))
		return 1;
	if (head->what == SOAK_ECHO)
		return send(conn->stream.fd, head, 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;
	if (head->what == SOAK_DOWN &&
	    epoll_ctl(server->epoll, EPOLL_CTL_MOD, conn->stream.fd, &event))
		return -errno;
	return 1;
}

/* As soak_send(). */
static int go_on(struct server *server, struct conn *conn)
{
	struct soak_stream *stream = &conn->stream;
	uint64_t done = stream->done, wrong = stream->wrong;
	int ret;

	if (conn->head_size < sizeof(stream->head))
		return read_head(server, conn);
	if (stream->head.what == SOAK_DOWN)
		return soak_send(stream);
	ret = soak_receive(stream);
	wrong = stream->wrong - wrong;
	atomic_fetch_add(&server->shared->wrong, wrong);
	atomic_fetch_add(&server->shared->received, stream->done - done - wrong);
	return ret;
}

static int serve(void *arg)
{
	struct server *server = arg;
	struct epoll_event events[EVENTS], event = { .events = EPOLLIN };

	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0 || epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->listener, &event))
		return 1;
	for (;;) {
		int n = epoll_wait(server->epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct conn *conn = events[i].data.ptr;

			if (!conn) {
				take(server);
			} else if (go_on(server, conn) <= 0) {
				close(conn->stream.fd);
				free(conn);
			}
		}
	}
}

int soak_server_start(struct sl_child *child, uint16_t *port, struct soak_shared *shared,
		      struct sl_err *err)
{
	struct server server = { .shared = shared };
	struct sl_child_spec spec = { .cpu = -1, .run = serve, .arg = &server };
	int ret = relay_listen(&server.listener, port, err);

	ret = ret ?: sl_child_start(child, &spec, err);
	if (!ret)
		close(server.listener);
	return ret;
}
