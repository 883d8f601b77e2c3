/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The relay's limits: descriptors, streams, time; and answers that come late, or never. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay_world.h"

#define SHORT_MS 60

TestSuite(relay_limits, .fini = relay_stop);

static bool is_ready(void)
{
	struct sl_relay_stats stats;

	sl_relay_stats(relay_world.relay, &stats);
	return stats.ready;
}

Test(relay_limits, no_descriptors)
{
	struct rlimit limit, none;
	int client, server, lowest;
	unsigned int turns;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	client = relay_connect();
	lowest = fcntl(client, F_DUPFD_CLOEXEC, 0);
	close(lowest);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)lowest, .rlim_max = limit.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	RELAY_UNTIL(relay_count(SL_RELAY_NO_FDS) == 1);
	cr_assert_not(is_ready());
	/* It does not spin on the listener, which is still readable. */
	for (turns = 0; turns < 1000 && relay_count(SL_RELAY_NO_FDS) == 1; turns++)
		sl_relay_run(relay_world.relay, 0);
	cr_assert_eq(turns, 1000);
	/* It tries again by itself. */
	RELAY_UNTIL(relay_count(SL_RELAY_NO_FDS) == 2);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	server = relay_accept();
	cr_assert(is_ready());
	relay_send_text(client, "after all");
	relay_expect_text(server, "after all");
	close(client);
	close(server);
}

Test(relay_limits, all_streams_taken)
{
	int clients[3], first, second, third;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ .streams = 2 });
	for (unsigned int i = 0; i < 3; i++)
		clients[i] = relay_connect();
	first = relay_accept();
	second = relay_accept();
	RELAY_UNTIL(relay_count(SL_RELAY_FULL));
	cr_assert_not(is_ready());
	cr_assert_eq(relay_streams(), 2);
	cr_assert_eq(relay_world.asked, 2);
	relay_reset(&clients[0]);
	third = relay_accept();
	relay_send_text(clients[2], "third");
	relay_expect_text(third, "third");
	close(first);
	close(second);
	close(third);
	close(clients[1]);
	close(clients[2]);
}

Test(relay_limits, slow_head)
{
	_cleanup_fd_ int client = -1, silent = -1;
	char answer[1024];

	relay_start(SL_RELAY_PROXY, (struct sl_relay_options){ .head_ms = SHORT_MS });
	client = relay_connect();
	silent = relay_connect();
	relay_send_text(client, "GET http://a.example/ HTTP/1.1\r\n");
	relay_read_all(client, answer, sizeof(answer));
	cr_assert_eq(strncmp(answer, "HTTP/1.1 408 ", 13), 0, "%s", answer);
	relay_expect_reset(silent);
	cr_assert_eq(relay_count(SL_RELAY_SLOW), 2);
	cr_assert_eq(relay_world.asked, 0);
}

Test(relay_limits, idle)
{
	_cleanup_fd_ int client = -1, server = -1;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ .idle_ms = SHORT_MS });
	client = relay_connect();
	server = relay_accept();
	relay_expect_reset(client);
	relay_expect_reset(server);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_IDLE);
	cr_assert_eq(relay_count(SL_RELAY_IDLE), 1);
}

/* However much it moves. */
Test(relay_limits, life)
{
	_cleanup_fd_ int client = -1, server = -1;

	relay_start(SL_RELAY_TRANSPARENT,
		    (struct sl_relay_options){ .idle_ms = 60000, .life_ms = SHORT_MS });
	client = relay_connect();
	server = relay_accept();
	RELAY_UNTIL(send(client, "x", 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_LIFE);
}

/* From outside of a turn: its descriptor tells that there is something to do. */
Test(relay_limits, late_answer)
{
	struct pollfd waits = { .events = POLLIN };
	_cleanup_fd_ int client = -1, server = -1;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	relay_world.policy = RELAY_LATER;
	client = relay_connect();
	relay_send_text(client, "waiting");
	RELAY_UNTIL(relay_world.asked);
	while (sl_relay_run(relay_world.relay, 0) == 0)
		;
	waits.fd = sl_relay_fd(relay_world.relay);
	cr_assert_eq(poll(&waits, 1, 0), 0);
	cr_assert_eq(sl_relay_dial(relay_world.stream, &relay_world.target), 0);
	cr_assert_eq(poll(&waits, 1, 0), 1);
	cr_assert_eq(sl_relay_dial(relay_world.stream, &relay_world.target), -EALREADY);
	cr_assert_eq(sl_relay_refuse(relay_world.stream, SL_RELAY_DENIED, NULL, NULL), -EALREADY);
	server = relay_accept();
	relay_expect_text(server, "waiting");
}

Test(relay_limits, gone_unanswered)
{
	int client;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	relay_world.policy = RELAY_LATER;
	client = relay_connect();
	RELAY_UNTIL(relay_world.asked);
	relay_reset(&client);
	RELAY_UNTIL(relay_world.gone);
	cr_assert_eq(relay_world.ended, 0);
	cr_assert_eq(relay_streams(), 0);
}

/* Both are ready in one turn, the client's end first. */
Test(relay_limits, gone_while_it_is_connected)
{
	_cleanup_fd_ int later = -1, server = -1;
	int client;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	relay_world.policy = RELAY_LATER;
	client = relay_connect();
	RELAY_UNTIL(relay_world.asked);
	relay_reset(&client);
	cr_assert_eq(sl_relay_dial(relay_world.stream, &relay_world.target), 0);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_CLIENT);
	cr_assert_not(relay_world.end.connected);
	cr_assert_eq(relay_streams(), 0);
	/* And nothing of it is left in any list. */
	relay_world.policy = RELAY_DIAL;
	later = relay_connect();
	server = relay_accept();
	relay_expect_eof(server);
	sl_cleanup_fd(&server);
	server = relay_accept();
	relay_send_text(later, "fine");
	relay_expect_text(server, "fine");
}

Test(relay_limits, freed_with_all_kinds_open)
{
	int clients[2], server;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	clients[0] = relay_connect();
	server = relay_accept();
	relay_world.policy = RELAY_LATER;
	clients[1] = relay_connect();
	RELAY_UNTIL(relay_world.asked == 2);
	sl_relay_free(&relay_world.relay);
	cr_assert_eq(relay_world.gone, 1);
	cr_assert_eq(relay_world.ended, 1);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_FREED);
	cr_assert_eq(recv(clients[0], (char[1]){ 0 }, 1, 0), -1);
	cr_assert_eq(errno, ECONNRESET);
	close(server);
	close(clients[0]);
	close(clients[1]);
}

Test(relay_limits, refused_is_reset)
{
	_cleanup_fd_ int client = -1;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	relay_world.policy = RELAY_REFUSE;
	client = relay_connect();
	relay_expect_reset(client);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_REFUSED);
	cr_assert_not(relay_world.end.connected);
}

Test(relay_limits, unlisten)
{
	_cleanup_fd_ int client = -1, server = -1, later = -1;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	client = relay_connect();
	server = relay_accept();
	cr_assert_eq(sl_relay_unlisten(relay_world.relay, relay_world.listener), 0);
	cr_assert_eq(sl_relay_unlisten(relay_world.relay, relay_world.listener), -ENOENT);
	later = relay_connect();
	relay_send_text(client, "goes on");
	relay_expect_text(server, "goes on");
	cr_assert_eq(relay_world.asked, 1);
}
