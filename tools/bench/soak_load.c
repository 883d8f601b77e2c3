/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program in the sandbox. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "soak.h"

#define EVENTS 64
#define STREAMS_MAX 1000
#define PLACE 7919 /* of one stream from the next */

struct load {
	struct sockaddr_storage addr;
	socklen_t addr_len;
	struct soak_stream stalled;
	struct soak_stream streams[STREAMS_MAX];
	struct soak_result result; /* of the order under way */
};

static int look_up(struct load *load, const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(host, port, &hints, &found))
		return -ENOENT;
	memcpy(&load->addr, found->ai_addr, found->ai_addrlen);
	load->addr_len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static int open_stream(const struct load *load, struct soak_stream *stream)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&load->addr, load->addr_len) ||
	    send(fd, &stream->head, sizeof(stream->head), MSG_NOSIGNAL) != sizeof(stream->head))
		return -errno;
	stream->fd = TAKE_FD(fd);
	return 0;
}

static void fail(struct load *load, int ret)
{
	load->result.failed++;
	load->result.error = -ret;
}

static int connect_once(const struct load *load)
{
	struct soak_stream stream = { .head.what = SOAK_ECHO };
	int ret = open_stream(load, &stream);
	char byte;

	if (ret)
		return ret;
	if (recv(stream.fd, &byte, 1, 0) != 1 || byte != SOAK_ECHO)
		ret = -EPIPE;
	close(stream.fd);
	return ret;
}

static void connections(struct load *load, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		int ret = connect_once(load);

		if (ret)
			fail(load, ret);
	}
}

/* What one turn of a stream comes to, as soak_send(). */
static int go_on(struct soak_stream *stream, int epoll)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = stream };
	int ret;

	if (stream->head.what == SOAK_DOWN)
		return soak_receive(stream);
	if (stream->done < stream->head.bytes) {
		ret = soak_send(stream);
		if (ret)
			return ret;
		/* All is there when the server has closed its side. */
		if (shutdown(stream->fd, SHUT_WR) ||
		    epoll_ctl(epoll, EPOLL_CTL_MOD, stream->fd, &event))
			return -errno;
		return 1;
	}
	return soak_receive(stream);
}

static void end_stream(struct load *load, struct soak_stream *stream, int ret)
{
	if (ret)
		fail(load, ret);
	close(stream->fd);
	load->result.wrong += stream->wrong;
	if (stream->head.what == SOAK_DOWN)
		load->result.received += stream->done - stream->wrong;
}

static unsigned int begin_streams(struct load *load, int epoll, uint64_t count, uint64_t bytes)
{
	unsigned int live = 0;

	for (uint64_t i = 0; i < count && i < STREAMS_MAX; i++) {
		struct soak_stream *stream = &load->streams[i];
		struct epoll_event event = { .events = i % 2 ? EPOLLIN : EPOLLOUT,
					     .data.ptr = stream };
		int ret;

		*stream = (struct soak_stream){
			.head = { .what = i % 2 ? SOAK_DOWN : SOAK_UP,
				  .place = i * PLACE,
				  .bytes = bytes },
		};
		ret = open_stream(load, stream);
		if (!ret && epoll_ctl(epoll, EPOLL_CTL_ADD, stream->fd, &event)) {
			ret = -errno;
			close(stream->fd);
		}
		if (ret)
			fail(load, ret);
		else
			live++;
	}
	return live;
}

static void streams(struct load *load, uint64_t count, uint64_t bytes)
{
	_cleanup_fd_ int epoll = epoll_create1(EPOLL_CLOEXEC);
	unsigned int live = begin_streams(load, epoll, count, bytes);
	struct epoll_event events[EVENTS];

	while (live) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct soak_stream *stream = events[i].data.ptr;
			int ret = go_on(stream, epoll);

			if (ret > 0)
				continue;
			end_stream(load, stream, ret);
			live--;
		}
	}
}

static void stall(struct load *load, uint64_t bytes)
{
	int ret;

	load->stalled = (struct soak_stream){ .head = { .what = SOAK_DOWN, .bytes = bytes } };
	ret = open_stream(load, &load->stalled);
	if (ret)
		fail(load, ret);
}

static void resume(struct load *load)
{
	_cleanup_fd_ int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };
	int ret = 1;

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, load->stalled.fd, &event))
		ret = -errno;
	while (ret > 0) {
		if (epoll_wait(epoll, &event, 1, -1) == 1)
			ret = soak_receive(&load->stalled);
	}
	end_stream(load, &load->stalled, ret);
}

static void obey(struct load *load, const struct soak_order *order)
{
	uint64_t begin_ns = sl_bench_now_ns();

	load->result = (struct soak_result){ 0 };
	if (order->what == SOAK_CONNECTIONS)
		connections(load, order->count);
	else if (order->what == SOAK_STREAMS)
		streams(load, order->count, order->bytes);
	else if (order->what == SOAK_STALL)
		stall(load, order->bytes);
	else
		resume(load);
	load->result.ns = sl_bench_now_ns() - begin_ns;
}

int soak_load_main(int argc, char **argv)
{
	struct load *load = calloc(1, sizeof(*load));
	struct soak_order order;
	int status = 1;

	if (argc != 4 || !load || look_up(load, argv[2], argv[3]))
		goto out;
	while (read(STDIN_FILENO, &order, sizeof(order)) == sizeof(order) &&
	       order.what != SOAK_QUIT) {
		obey(load, &order);
		if (write(STDOUT_FILENO, &load->result, sizeof(load->result)) !=
		    sizeof(load->result))
			goto out;
	}
	status = 0;
out:
	free(load);
	return status;
}
