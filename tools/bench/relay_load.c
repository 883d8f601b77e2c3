/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay.h"
#include "world.h"

#define EVENTS 256
#define WRITE_TURN (256 << 10)
/* Before it is measured: connections grow their windows. */
#define WARM_NS 200000000ULL

static const char data[WRITE_TURN];

int relay_connect(uint16_t port, char what)
{
	const struct linger now = { .l_onoff = 1 };
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(SL_WORLD_ADDR) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* Closed by RST: nothing stays in TIME_WAIT. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    send(fd, &what, 1, MSG_NOSIGNAL) != 1)
		return -errno;
	return TAKE_FD(fd);
}

struct load {
	int epoll;
	int *fds;
	unsigned int count;
};

static void close_all(struct load *load)
{
	for (unsigned int i = 0; load->fds && i < load->count; i++)
		close(load->fds[i]);
	free(load->fds);
	sl_cleanup_fd(&load->epoll);
}

static int open_all(struct load *load, uint16_t port, unsigned int streams)
{
	load->fds = calloc(streams, sizeof(*load->fds));
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!load->fds || load->epoll < 0)
		return -ENOMEM;
	while (load->count < streams) {
		int fd = relay_connect(port, RELAY_SINK);
		struct epoll_event event = { .events = EPOLLOUT, .data.fd = fd };

		if (fd < 0)
			return fd;
		load->fds[load->count++] = fd;
		if (fcntl(fd, F_SETFL, O_NONBLOCK) ||
		    epoll_ctl(load->epoll, EPOLL_CTL_ADD, fd, &event))
			return -errno;
	}
	return 0;
}

static int send_until(struct load *load, uint64_t until)
{
	struct epoll_event events[EVENTS];

	while (sl_bench_now_ns() < until) {
		int n = epoll_wait(load->epoll, events, EVENTS, 100);

		for (int i = 0; i < n; i++)
			if (send(events[i].data.fd, data, sizeof(data), MSG_NOSIGNAL) < 0 &&
			    errno != EAGAIN)
				return -errno;
	}
	return 0;
}

int relay_bulk(uint16_t port, unsigned int streams, uint64_t ms, struct relay_shared *shared,
	       double *rate, struct sl_err *err)
{
	__attribute__((cleanup(close_all))) struct load load = { .epoll = -1 };
	uint64_t begin, bytes;
	int ret = open_all(&load, port, streams);

	if (!ret)
		ret = send_until(&load, sl_bench_now_ns() + WARM_NS);
	begin = sl_bench_now_ns();
	bytes = atomic_load(&shared->bytes);
	if (!ret)
		ret = send_until(&load, begin + ms * 1000000);
	bytes = atomic_load(&shared->bytes) - bytes;
	if (ret)
		return sl_err_sys(err, -ret, "can't send through port %u", port);
	*rate = (double)bytes * 1e9 / (double)(sl_bench_now_ns() - begin);
	return 0;
}

int relay_setup(uint16_t port, unsigned int count, double *ns, struct sl_err *err)
{
	uint64_t begin = sl_bench_now_ns();
	char byte;

	for (unsigned int i = 0; i < count; i++) {
		int fd = relay_connect(port, RELAY_ECHO);

		if (fd < 0)
			return sl_err_sys(err, -fd, "can't connect to port %u", port);
		if (recv(fd, &byte, 1, 0) != 1) {
			close(fd);
			return sl_err_set(err, EPROTO, "no answer through port %u", port);
		}
		close(fd);
	}
	*ns = (double)(sl_bench_now_ns() - begin) / count;
	return 0;
}
