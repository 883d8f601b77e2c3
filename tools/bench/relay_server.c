/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay.h"
#include "world.h"

#define BACKLOG 4096
#define EVENTS 256
#define READ_TURN (256 << 10)

struct server {
	int listener, epoll;
	struct relay_shared *shared;
};

/* What the epoll has of a connection: its descriptor, and whether its first byte came. */
#define BEGUN (1ULL << 32)

int relay_listen(int *out, uint16_t *port, struct sl_err *err)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(*port),
				    .sin_addr.s_addr = htonl(SL_WORLD_ADDR) };
	socklen_t len = sizeof(addr);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		return sl_err_sys(err, errno, "can't listen on loopback");
	*port = ntohs(addr.sin_port);
	*out = TAKE_FD(fd);
	return 0;
}

static void take(struct server *server)
{
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)fd };

		if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event))
			close(fd);
	}
}

/* False: the connection is over. */
static bool begin(struct server *server, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)fd | BEGUN };
	char what;

	if (recv(fd, &what, 1, 0) != 1)
		return false;
	if (what == RELAY_ECHO) {
		(void)!send(fd, &what, 1, MSG_NOSIGNAL);
		return false;
	}
	if (what == RELAY_STALL)
		event.events = 0;
	return !epoll_ctl(server->epoll, EPOLL_CTL_MOD, fd, &event);
}

static bool sink(struct server *server, int fd)
{
	/* Discarded in the kernel: a server that is busy would hide what is measured. */
	ssize_t n = recv(fd, NULL, READ_TURN, MSG_TRUNC);

	if (n > 0)
		atomic_fetch_add_explicit(&server->shared->bytes, (uint64_t)n,
					  memory_order_relaxed);
	return n > 0 || (n < 0 && errno == EAGAIN);
}

static int serve(void *arg)
{
	struct server *server = arg;
	struct epoll_event events[EVENTS], event = { .events = EPOLLIN, .data.u64 = UINT64_MAX };

	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0 || epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->listener, &event))
		return 1;
	for (;;) {
		int n = epoll_wait(server->epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			uint64_t data = events[i].data.u64;
			int fd = (int)(uint32_t)data;

			if (data == UINT64_MAX)
				take(server);
			else if (!(data & BEGUN ? sink(server, fd) : begin(server, fd)))
				close(fd);
		}
	}
}

int relay_server_start(struct relay_party *server, struct relay_shared *shared, struct sl_err *err)
{
	struct server args = { .shared = shared };
	struct sl_child_spec spec = { .cpu = -1, .run = serve, .arg = &args };
	int ret = relay_listen(&server->listener, &server->port, err);

	args.listener = server->listener;
	return ret ?: sl_child_start(&server->child, &spec, err);
}
