/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams through the relay. Nothing steers them here, so the original destination is the
 * listener's own address; a flow's socket is on the same one and has to be preferred.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay_world.h"

TestSuite(relay_flow, .fini = relay_stop);

#define SHORT_MS 60

static int udp_client(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(relay_world.port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	/* Connected: an answer from anywhere else than the original is not received. */
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static struct sockaddr_in served;

/* The next datagram at the server, from `served`. */
static void serve(const char *text)
{
	char got[2048];
	socklen_t len = sizeof(served);
	ssize_t n;

	RELAY_UNTIL((n = recvfrom(relay_world.server, got, sizeof(got), 0,
				  (struct sockaddr *)&served, &len)) >= 0);
	cr_assert_eq((size_t)n, strlen(text));
	cr_assert_arr_eq(got, text, (size_t)n);
}

static void answer(const char *text)
{
	cr_assert_eq(sendto(relay_world.server, text, strlen(text), 0, (struct sockaddr *)&served,
			    sizeof(served)),
		     (ssize_t)strlen(text));
}

Test(relay_flow, there_and_back)
{
	_cleanup_fd_ int client = -1;
	char text[32];

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ .flow_idle_ms = SHORT_MS });
	client = udp_client();
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "question %u", i);
		relay_send_text(client, text);
		serve(text);
		snprintf(text, sizeof(text), "answer %u", i);
		answer(text);
		relay_expect_text(client, text);
	}
	cr_assert_eq(relay_world.asked, 1);
	cr_assert_eq(relay_world.ask.way, SL_RELAY_WAY_UDP);
	cr_assert_eq(((struct sockaddr_in *)&relay_world.ask.original)->sin_port,
		     htons(relay_world.port));
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_IDLE);
	cr_assert_eq(relay_world.end.datagrams_sent, 100);
	cr_assert_eq(relay_world.end.datagrams_received, 100);
}

/* Two clients of one original destination: each gets its own answers. */
Test(relay_flow, two_clients)
{
	int clients[2];
	struct sockaddr_in from[2];

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ 0 });
	for (unsigned int i = 0; i < 2; i++) {
		clients[i] = udp_client();
		relay_send_text(clients[i], i ? "two" : "one");
		serve(i ? "two" : "one");
		from[i] = served;
	}
	for (unsigned int i = 0; i < 2; i++) {
		served = from[!i];
		answer(i ? "to one" : "to two");
	}
	relay_expect_text(clients[0], "to one");
	relay_expect_text(clients[1], "to two");
	cr_assert_eq(relay_world.asked, 2);
	close(clients[0]);
	close(clients[1]);
}

/* More than a batch at once, in both directions, boundaries kept, empty ones too. */
Test(relay_flow, batches)
{
	enum { COUNT = 100 };
	_cleanup_fd_ int client = -1;
	char text[32];

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ 0 });
	client = udp_client();
	relay_send_text(client, "first");
	serve("first");
	for (unsigned int i = 0; i < COUNT; i++)
		cr_assert_eq(send(client, "0123456789", i % 11, 0), i % 11);
	for (unsigned int i = 0; i < COUNT; i++) {
		snprintf(text, sizeof(text), "%.*s", (int)(i % 11), "0123456789");
		serve(text);
		answer(text);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		ssize_t n;

		RELAY_UNTIL((n = recv(client, text, sizeof(text), 0)) >= 0);
		cr_assert_eq(n, i % 11);
	}
}

Test(relay_flow, late_answer)
{
	_cleanup_fd_ int client = -1;

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ 0 });
	relay_world.policy = RELAY_LATER;
	client = udp_client();
	relay_send_text(client, "one");
	relay_send_text(client, "two");
	RELAY_UNTIL(relay_world.asked);
	while (sl_relay_run(relay_world.relay, 0) == 0)
		;
	cr_assert_eq(recv(relay_world.server, (char[1]){ 0 }, 1, 0), -1);
	cr_assert_eq(sl_relay_flow_dial(relay_world.flow, &relay_world.target), 0);
	cr_assert_eq(sl_relay_flow_dial(relay_world.flow, &relay_world.target), -EALREADY);
	serve("one");
	serve("two");
	answer("yes");
	relay_expect_text(client, "yes");
	cr_assert_eq(relay_world.asked, 1);
}

/* What waits for an answer is bounded. */
Test(relay_flow, unanswered)
{
	static char large[16000];
	_cleanup_fd_ int client = -1;

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ .flow_idle_ms = 500 });
	relay_world.policy = RELAY_LATER;
	client = udp_client();
	for (unsigned int i = 0; i < 10; i++)
		relay_send(client, large, sizeof(large));
	RELAY_UNTIL(relay_count(SL_RELAY_FLOW_DROPPED) == 6);
	RELAY_UNTIL(relay_world.gone);
	cr_assert_eq(relay_world.ended, 0);
}

Test(relay_flow, refused)
{
	_cleanup_fd_ int client = -1;

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ .flow_idle_ms = 300 });
	relay_world.policy = RELAY_REFUSE;
	client = udp_client();
	for (unsigned int i = 1; i <= 10; i++) {
		relay_send_text(client, "no");
		RELAY_UNTIL(relay_count(SL_RELAY_FLOW_DROPPED) == i);
	}
	cr_assert_eq(relay_world.asked, 1);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_REFUSED);
	cr_assert_eq(recv(relay_world.server, (char[1]){ 0 }, 1, 0), -1);
	/* It is asked anew after that. */
	relay_world.policy = RELAY_DIAL;
	relay_send_text(client, "now");
	serve("now");
}

Test(relay_flow, bounded_number)
{
	int clients[3];

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ .flows = 2 });
	for (unsigned int i = 0; i < 3; i++) {
		clients[i] = udp_client();
		relay_send_text(clients[i], "x");
		if (i < 2)
			serve("x");
	}
	RELAY_UNTIL(relay_count(SL_RELAY_FLOWS_FULL) == 1);
	cr_assert_eq(relay_world.asked, 2);
	for (unsigned int i = 0; i < 3; i++)
		close(clients[i]);
}

/* A port of the target that is closed ends the flow; the next datagram begins another. */
Test(relay_flow, target_that_is_closed)
{
	_cleanup_fd_ int client = -1;

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ 0 });
	sl_cleanup_fd(&relay_world.server);
	client = udp_client();
	relay_send_text(client, "anybody?");
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_SERVER);
	cr_assert_eq(relay_world.end.code, ECONNREFUSED);
	relay_send_text(client, "again");
	RELAY_UNTIL(relay_world.asked == 2);
}

/* A client that is gone is told to the server by its own kernel. */
Test(relay_flow, client_that_is_closed)
{
	_cleanup_fd_ int client = -1;
	struct sockaddr_in unspec = { .sin_family = AF_UNSPEC };

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ 0 });
	client = udp_client();
	relay_send_text(client, "bye");
	serve("bye");
	sl_cleanup_fd(&client);
	cr_assert_eq(connect(relay_world.server, (struct sockaddr *)&served, sizeof(served)), 0);
	relay_send_text(relay_world.server, "too late");
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_CLIENT);
	cr_assert_eq(relay_world.end.code, ECONNREFUSED);
	RELAY_UNTIL(send(relay_world.server, "x", 1, 0) < 0);
	cr_assert_eq(errno, ECONNREFUSED);
	connect(relay_world.server, (struct sockaddr *)&unspec, sizeof(unspec));
}

Test(relay_flow, freed)
{
	_cleanup_fd_ int client = -1;

	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ 0 });
	client = udp_client();
	relay_send_text(client, "open");
	serve("open");
	sl_relay_free(&relay_world.relay);
	cr_assert_eq(relay_world.ended, 1);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_FREED);
}
