/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Streams of the relay: bytes, ends and resets both ways, stalled readers, limits of time. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay_world.h"
#include "system/scale.h"

#define BIG (4 << 20)

static void start(void)
{
	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
}

TestSuite(relay_stream, .init = start, .fini = relay_stop);

static unsigned int open_fds(void)
{
	_cleanup_dir_ DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (readdir(dir))
		count++;
	return count;
}

Test(relay_stream, bytes_go_both_ways)
{
	_cleanup_fd_ int client = relay_connect(), server = relay_accept();

	relay_send_text(client, "hello");
	relay_expect_text(server, "hello");
	relay_send_text(server, "and back");
	relay_expect_text(client, "and back");
	cr_assert_eq(relay_world.asked, 1);
	cr_assert_eq(relay_world.ask.way, SL_RELAY_WAY_TRANSPARENT);
	cr_assert_null(relay_world.ask.host);
	cr_assert_eq(relay_world.ask.listener, &relay_world);
	sl_cleanup_fd(&client);
	relay_expect_eof(server);
	sl_cleanup_fd(&server);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_DONE);
	cr_assert_eq(relay_world.end.bytes_sent, 5);
	cr_assert_eq(relay_world.end.bytes_received, 8);
	cr_assert(relay_world.end.connected);
	cr_assert_eq(relay_world.end.port, relay_world.server_port);
	cr_assert_eq(relay_streams(), 0);
}

Test(relay_stream, the_original_is_where_the_client_went)
{
	_cleanup_fd_ int client = relay_connect(), server = relay_accept();
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);

	cr_assert_eq(getpeername(client, (struct sockaddr *)&own, &len), 0);
	cr_assert_arr_eq(&own, &relay_world.ask.original, len);
	cr_assert_eq(getsockname(client, (struct sockaddr *)&own, &len), 0);
	cr_assert_arr_eq(&own, &relay_world.ask.client, len);
}

/* Each end may stop sending and go on receiving. */
Test(relay_stream, half_close)
{
	for (unsigned int turn = 0; turn < 2; turn++) {
		int ends[2] = { relay_connect(), relay_accept() };
		int *first = &ends[turn], *last = &ends[!turn];

		relay_send_text(*first, "last words");
		shutdown(*first, SHUT_WR);
		relay_expect_text(*last, "last words");
		relay_expect_eof(*last);
		for (unsigned int i = 0; i < 10; i++) {
			relay_send_text(*last, "still here");
			relay_expect_text(*first, "still here");
		}
		cr_assert_eq(relay_world.ended, turn);
		sl_cleanup_fd(last);
		relay_expect_eof(*first);
		sl_cleanup_fd(first);
		RELAY_UNTIL(relay_world.ended == turn + 1);
		cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_DONE);
	}
}

Test(relay_stream, reset)
{
	for (unsigned int turn = 0; turn < 2; turn++) {
		int ends[2] = { relay_connect(), relay_accept() };

		relay_send_text(ends[0], "x");
		relay_expect_text(ends[1], "x");
		relay_reset(&ends[turn]);
		relay_expect_reset(ends[!turn]);
		sl_cleanup_fd(&ends[!turn]);
		RELAY_UNTIL(relay_world.ended == turn + 1);
		cr_assert_eq(relay_world.end.cause,
			     turn ? SL_RELAY_CAUSE_SERVER : SL_RELAY_CAUSE_CLIENT);
		cr_assert_eq(relay_world.end.code, ECONNRESET);
	}
}

/* After a half-close too: then the kernel's word for it is EPIPE. */
Test(relay_stream, reset_after_half_close)
{
	for (unsigned int turn = 0; turn < 2; turn++) {
		int ends[2] = { relay_connect(), relay_accept() };

		shutdown(ends[turn], SHUT_WR);
		relay_expect_eof(ends[!turn]);
		relay_reset(&ends[turn]);
		RELAY_UNTIL(relay_world.ended == turn + 1);
		cr_assert_eq(send(ends[!turn], "x", 1, MSG_NOSIGNAL), -1);
		cr_assert(errno == EPIPE || errno == ECONNRESET);
		sl_cleanup_fd(&ends[!turn]);
	}
}

/* Whatever was received before a reset arrives before it. */
Test(relay_stream, reset_at_each_byte)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

	for (size_t n = 0; n < sizeof(answer); n++) {
		_cleanup_fd_ int client = relay_connect();
		int server = relay_accept();

		relay_send_text(client, "GET");
		relay_expect_text(server, "GET");
		/* In one piece: a reset takes what the server's own kernel has not sent yet. */
		relay_send(server, answer, n);
		relay_reset(&server);
		relay_expect(client, answer, n);
		relay_expect_reset(client);
	}
	RELAY_UNTIL(relay_world.ended == sizeof(answer));
}

/* Neither the relay's sockets nor its pipes are large enough for it to be held in them. */
Test(relay_stream, a_long_stream_arrives_whole)
{
	_cleanup_free_ uint8_t *sent = malloc(BIG), *got = malloc(BIG);
	_cleanup_fd_ int client = relay_connect(), server = relay_accept();
	size_t out = 0, in = 0;

	for (size_t i = 0; i < BIG; i++)
		sent[i] = (uint8_t)(i * 2654435761U >> 13);
	while (in < BIG) {
		ssize_t n = send(client, sent + out, BIG - out, MSG_NOSIGNAL);

		out += n > 0 ? (size_t)n : 0;
		if (out == BIG)
			shutdown(client, SHUT_WR);
		n = recv(server, got + in, BIG - in, 0);
		in += n > 0 ? (size_t)n : 0;
		sl_relay_run(relay_world.relay, 0);
	}
	cr_assert_arr_eq(sent, got, BIG);
	relay_expect_eof(server);
}

/* Fills what is between a client and a server that does not read; bytes. */
static size_t stall(int from)
{
	static const char data[65536];
	size_t sent = 0;
	unsigned int quiet = 0;

	while (quiet < 20) {
		ssize_t n = send(from, data, sizeof(data), MSG_NOSIGNAL);

		quiet = n > 0 ? 0 : quiet + 1;
		sent += n > 0 ? (size_t)n : 0;
		sl_relay_run(relay_world.relay, 1);
	}
	return sent;
}

Test(relay_stream, a_stalled_reader_stops_its_writer_only)
{
	enum { STREAMS = 200 };
	int clients[STREAMS], servers[STREAMS];
	uint64_t turns;

	for (unsigned int i = 0; i < STREAMS; i++) {
		clients[i] = relay_connect();
		servers[i] = relay_accept();
	}
	cr_assert_gt(stall(clients[0]), 0);
	for (turns = 0; turns < 3; turns++) {
		for (unsigned int i = 1; i < STREAMS; i++)
			relay_send_text(clients[i], "go on");
		for (unsigned int i = 1; i < STREAMS; i++)
			relay_expect_text(servers[i], "go on");
	}
	/* The other way of the stalled one as well. */
	relay_send_text(servers[0], "back");
	relay_expect_text(clients[0], "back");
	for (unsigned int i = 0; i < STREAMS; i++) {
		sl_cleanup_fd(&clients[i]);
		sl_cleanup_fd(&servers[i]);
	}
	RELAY_UNTIL(!relay_streams());
}

/* Its bytes arrive when it reads again. */
Test(relay_stream, a_stalled_reader_goes_on)
{
	_cleanup_fd_ int client = relay_connect(), server = relay_accept();
	static char buf[65536];
	size_t sent = stall(client), got = 0;

	shutdown(client, SHUT_WR);
	while (got < sent) {
		ssize_t n = recv(server, buf, sizeof(buf), 0);

		if (n > 0)
			got += (size_t)n;
		else
			cr_assert(n < 0 && errno == EAGAIN);
		sl_relay_run(relay_world.relay, 0);
	}
	relay_expect_eof(server);
	cr_assert_eq(got, sent);
}

/* A reset ends a stream whose other side does not read. */
Test(relay_stream, reset_while_stalled)
{
	_cleanup_fd_ int client = relay_connect();
	int server = relay_accept();

	cr_assert_gt(stall(client), 0);
	relay_reset(&server);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_SERVER);
}

Test(relay_stream, idle_streams_hold_no_pipe)
{
	enum { STREAMS = 300 };
	struct sl_relay_stats stats;
	int clients[STREAMS], servers[STREAMS];

	for (unsigned int i = 0; i < STREAMS; i++) {
		clients[i] = relay_connect();
		servers[i] = relay_accept();
		relay_send_text(clients[i], "x");
		relay_expect_text(servers[i], "x");
	}
	sl_relay_stats(relay_world.relay, &stats);
	cr_assert_eq(stats.streams, STREAMS);
	cr_assert_leq(stats.pipes, 2);
	for (unsigned int i = 0; i < STREAMS; i++) {
		sl_cleanup_fd(&clients[i]);
		sl_cleanup_fd(&servers[i]);
	}
}

Test(relay_stream, nothing_is_left_of_many)
{
	enum { TOTAL = SCALED(5000) };
	unsigned int before = 0;

	/* The first one has what is made once. */
	for (unsigned int i = 0; i <= TOTAL; i++) {
		int client = relay_connect(), server = relay_accept();

		relay_send_text(client, "ping");
		relay_expect_text(server, "ping");
		if (i % 3)
			relay_reset(i % 2 ? &client : &server);
		sl_cleanup_fd(&client);
		sl_cleanup_fd(&server);
		RELAY_UNTIL(!relay_streams());
		if (!i)
			before = open_fds();
	}
	cr_assert_eq(open_fds(), before);
	cr_assert_eq(relay_world.asked, TOTAL + 1);
	cr_assert_eq(relay_world.ended, TOTAL + 1);
	cr_assert_eq(relay_world.gone, 0);
}

/* Without a pipe to be had bytes are copied. */
Test(relay_stream, no_pipe)
{
	_cleanup_fd_ int client = relay_connect(), server = relay_accept();
	struct rlimit limit, none;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = limit.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (unsigned int i = 0; i < 100; i++) {
		relay_send_text(client, "there");
		relay_expect_text(server, "there");
		relay_send_text(server, "and back");
		relay_expect_text(client, "and back");
	}
	shutdown(client, SHUT_WR);
	relay_expect_eof(server);
	cr_assert_gt(relay_count(SL_RELAY_NO_PIPE), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	sl_cleanup_fd(&server);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.bytes_sent, 500);
}
