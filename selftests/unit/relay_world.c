/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "relay_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

struct relay_world relay_world = { .listener = -1, .server = -1 };

static void note(const struct sl_relay_ask *ask)
{
	relay_world.asked++;
	relay_world.ask = *ask;
	relay_world.host[0] = '\0';
	if (ask->host)
		strcpy(relay_world.host, ask->host);
}

static void admit(void *arg, struct sl_relay_stream *stream, const struct sl_relay_ask *ask)
{
	struct relay_world *world = arg;

	note(ask);
	world->stream = stream;
	if (world->policy == RELAY_DIAL)
		cr_assert_eq(sl_relay_dial(stream, &world->target), 0);
	else if (world->policy == RELAY_REFUSE)
		cr_assert_eq(sl_relay_refuse(stream, SL_RELAY_DENIED, "endpoint", "add \"it\""), 0);
}

static void flow_admit(void *arg, struct sl_relay_flow *flow, const struct sl_relay_ask *ask)
{
	struct relay_world *world = arg;

	note(ask);
	world->flow = flow;
	if (world->policy == RELAY_DIAL)
		cr_assert_eq(sl_relay_flow_dial(flow, &world->target), 0);
	else if (world->policy == RELAY_REFUSE)
		cr_assert_eq(sl_relay_flow_refuse(flow), 0);
}

static void gone(void *arg, struct sl_relay_stream *stream)
{
	(void)arg;
	(void)stream;
	relay_world.gone++;
}

static void flow_gone(void *arg, struct sl_relay_flow *flow)
{
	(void)arg;
	(void)flow;
	relay_world.gone++;
}

static void ended(void *arg, struct sl_relay_stream *stream, const struct sl_relay_end *end)
{
	(void)arg;
	(void)stream;
	relay_world.ended++;
	relay_world.end = *end;
}

static void flow_ended(void *arg, struct sl_relay_flow *flow, const struct sl_relay_end *end)
{
	(void)arg;
	(void)flow;
	relay_world.ended++;
	relay_world.end = *end;
}

static void unreachable(void *arg, struct sl_relay_stream *stream, const struct sl_relay_end *end)
{
	(void)arg;
	(void)stream;
	relay_world.unmade++;
	relay_world.unreachable = *end;
}

static void malformed(void *arg, void *listener, enum sl_head_fault fault)
{
	cr_assert_eq(arg, listener);
	relay_world.malformed++;
	relay_world.fault = fault;
}

static const struct sl_relay_ops ops = { .admit = admit,
					 .gone = gone,
					 .ended = ended,
					 .unreachable = unreachable,
					 .malformed = malformed,
					 .flow_admit = flow_admit,
					 .flow_gone = flow_gone,
					 .flow_ended = flow_ended };

struct sl_addr relay_v4(const char *text)
{
	struct sl_addr addr;

	cr_assert_eq(sl_parse_addr(text, addr.be), 0);
	return addr;
}

static int bind_any(int type, uint16_t *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*port = ntohs(addr.sin_port);
	return fd;
}

int relay_listen_any(uint16_t *port, int backlog)
{
	int fd = bind_any(SOCK_STREAM, port);

	cr_assert_eq(listen(fd, backlog), 0);
	return fd;
}

void relay_start(enum sl_relay_kind kind, struct sl_relay_options options)
{
	struct relay_world *world = &relay_world;
	struct sl_relay_listener listener = { .kind = kind, .netns = -1, .arg = world };
	struct sl_err err = { 0 };
	bool udp = kind == SL_RELAY_UDP;

	signal(SIGPIPE, SIG_IGN);
	options.ops = &ops;
	options.arg = world;
	cr_assert_eq(sl_relay_new(&world->relay, &options, &err), 0, "%s", err.text);
	world->listener = udp ? bind_any(SOCK_DGRAM, &world->port)
			      : relay_listen_any(&world->port, 4096);
	world->server = udp ? bind_any(SOCK_DGRAM, &world->server_port)
			    : relay_listen_any(&world->server_port, 4096);
	world->addresses[0] = relay_v4("127.0.0.1");
	world->target.addresses = world->addresses;
	world->target.count = 1;
	world->target.port = world->server_port;
	listener.fd = world->listener;
	cr_assert_eq(sl_relay_listen(world->relay, &listener, &err), 0, "%s", err.text);
}

void relay_stop(void)
{
	sl_relay_free(&relay_world.relay);
	sl_cleanup_fd(&relay_world.listener);
	sl_cleanup_fd(&relay_world.server);
}

uint64_t relay_count(enum sl_relay_count which)
{
	struct sl_relay_stats stats;

	sl_relay_stats(relay_world.relay, &stats);
	return stats.counts[which];
}

unsigned int relay_streams(void)
{
	struct sl_relay_stats stats;

	sl_relay_stats(relay_world.relay, &stats);
	return stats.streams;
}

int relay_connect_to(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		cr_assert_eq(errno, EINPROGRESS);
	return fd;
}

int relay_connect(void)
{
	return relay_connect_to(relay_world.port);
}

int relay_accept(void)
{
	int fd;

	RELAY_UNTIL((fd = accept4(relay_world.server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >=
		    0);
	return fd;
}

void relay_send(int fd, const void *data, size_t size)
{
	const char *at = data;
	ssize_t n = 0;

	while (size) {
		RELAY_UNTIL((n = send(fd, at, size, MSG_NOSIGNAL)) >= 0 || errno != EAGAIN);
		cr_assert_geq(n, 0, "send: %s", strerror(errno));
		at += n;
		size -= (size_t)n;
	}
}

void relay_send_text(int fd, const char *text)
{
	relay_send(fd, text, strlen(text));
}

static ssize_t receive(int fd, void *dst, size_t size)
{
	ssize_t n;

	RELAY_UNTIL((n = recv(fd, dst, size, 0)) >= 0 || errno != EAGAIN);
	return n;
}

void relay_expect(int fd, const void *data, size_t size)
{
	const char *want = data;
	char got[4096];

	while (size) {
		ssize_t n = receive(fd, got, size < sizeof(got) ? size : sizeof(got));

		cr_assert_gt(n, 0, "%zu bytes are missing: %s", size, n ? strerror(errno) : "EOF");
		cr_assert_arr_eq(got, want, (size_t)n);
		want += n;
		size -= (size_t)n;
	}
}

void relay_expect_text(int fd, const char *text)
{
	relay_expect(fd, text, strlen(text));
}

size_t relay_read_all(int fd, char *dst, size_t size)
{
	size_t at = 0;
	ssize_t n;

	while ((n = receive(fd, dst + at, size - at - 1)) > 0)
		at += (size_t)n;
	cr_assert_eq(n, 0, "%s", strerror(errno));
	dst[at] = '\0';
	return at;
}

void relay_expect_eof(int fd)
{
	char byte;

	cr_assert_eq(receive(fd, &byte, 1), 0, "%s", strerror(errno));
}

void relay_expect_reset(int fd)
{
	char byte;

	cr_assert_eq(receive(fd, &byte, 1), -1, "data or an end");
	cr_assert_eq(errno, ECONNRESET, "%s", strerror(errno));
}

void relay_reset(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	sl_cleanup_fd(fd);
}
