/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of several addresses the relay connects to. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "relay_world.h"

TestSuite(relay_dial, .fini = relay_stop);

/*
 * An address of loopback that answers no SYN: its listener's queue is full. The same port as
 * the server's, so that both are one target.
 */
static int fill_backlog(const char *text, int *filler)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(relay_world.server_port),
				    .sin_addr.s_addr = relay_v4(text).be[3] };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(fd, 0), 0);
	for (unsigned int i = 0; i < 2; i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(filler[i], (struct sockaddr *)&addr, sizeof(addr)))
			cr_assert_eq(errno, EINPROGRESS);
	}
	return fd;
}

Test(relay_dial, silent_first_address)
{
	_cleanup_fd_ int client = -1, server = -1, silent = -1;
	int filler[2];

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ .stagger_ms = 20 });
	silent = fill_backlog("127.0.0.2", filler);
	relay_world.addresses[0] = relay_v4("127.0.0.2");
	relay_world.addresses[1] = relay_v4("127.0.0.1");
	relay_world.target.count = 2;
	client = relay_connect();
	server = relay_accept();
	relay_send_text(client, "second");
	relay_expect_text(server, "second");
	sl_cleanup_fd(&server);
	sl_cleanup_fd(&client);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.address.be[3], htonl(INADDR_LOOPBACK));
	close(filler[0]);
	close(filler[1]);
}

/* A refusal is no reason to wait: with a stagger of an hour it would be one. */
Test(relay_dial, refused_first_addresses)
{
	_cleanup_fd_ int client = -1, server = -1;

	relay_start(SL_RELAY_TRANSPARENT,
		    (struct sl_relay_options){ .stagger_ms = 3600000, .connect_ms = 3600000 });
	relay_world.addresses[0] = relay_v4("127.0.0.2");
	relay_world.addresses[1] = relay_v4("::1");
	relay_world.addresses[2] = relay_v4("127.0.0.1");
	relay_world.target.count = 3;
	client = relay_connect();
	server = relay_accept();
	relay_send_text(client, "third");
	relay_expect_text(server, "third");
}

/* The other family's turn comes second, wherever its addresses are in the list. */
Test(relay_dial, families_take_turns)
{
	_cleanup_fd_ int client = -1, server = -1, v6 = -1, silent = -1;
	const int on = 1;
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int filler[2];

	relay_start(SL_RELAY_TRANSPARENT,
		    (struct sl_relay_options){ .stagger_ms = 20, .connect_ms = 3600000 });
	addr.sin6_port = htons(relay_world.server_port);
	v6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(v6, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (v6 < 0 || bind(v6, (struct sockaddr *)&addr, sizeof(addr)))
		cr_skip_test("no IPv6 on loopback: %s", strerror(errno));
	cr_assert_eq(listen(v6, 5), 0);
	silent = fill_backlog("127.0.0.2", filler);
	relay_world.addresses[0] = relay_v4("127.0.0.2");
	relay_world.addresses[1] = relay_v4("127.0.0.1");
	relay_world.addresses[2] = relay_v4("::1");
	relay_world.target.count = 3;
	client = relay_connect();
	RELAY_UNTIL((server = accept4(v6, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0);
	relay_send_text(client, "over v6");
	relay_expect_text(server, "over v6");
	close(filler[0]);
	close(filler[1]);
}

Test(relay_dial, nobody_answers)
{
	_cleanup_fd_ int client = -1, silent = -1;
	int filler[2];

	relay_start(SL_RELAY_TRANSPARENT,
		    (struct sl_relay_options){ .stagger_ms = 10, .connect_ms = 60 });
	silent = fill_backlog("127.0.0.2", filler);
	relay_world.addresses[0] = relay_v4("127.0.0.2");
	client = relay_connect();
	relay_expect_reset(client);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_DIAL);
	cr_assert_eq(relay_world.end.code, ETIMEDOUT);
	close(filler[0]);
	close(filler[1]);
}

Test(relay_dial, nobody_is_there)
{
	_cleanup_fd_ int client = -1;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	relay_world.addresses[0] = relay_v4("127.0.0.2");
	relay_world.addresses[1] = relay_v4("127.0.0.3");
	relay_world.target.count = 2;
	client = relay_connect();
	relay_expect_reset(client);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_DIAL);
	cr_assert_eq(relay_world.end.code, ECONNREFUSED);
}

Test(relay_dial, head_goes_first)
{
	_cleanup_fd_ int client = -1, server = -1;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	relay_world.target.head = "HEAD ";
	relay_world.target.head_size = 5;
	client = relay_connect();
	relay_send_text(client, "body");
	server = relay_accept();
	relay_expect_text(server, "HEAD body");
	sl_cleanup_fd(&client);
	sl_cleanup_fd(&server);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.bytes_sent, 4);
}

Test(relay_dial, targets_that_are_none)
{
	static char head[SL_RELAY_FIRST_MAX + 1];
	struct sl_relay_target target;
	_cleanup_fd_ int client = -1, server = -1;

	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	relay_world.policy = RELAY_LATER;
	client = relay_connect();
	RELAY_UNTIL(relay_world.asked);
	target = relay_world.target;
	target.count = 0;
	cr_assert_eq(sl_relay_dial(relay_world.stream, &target), -EINVAL);
	target = relay_world.target;
	target.head = head;
	target.head_size = sizeof(head);
	cr_assert_eq(sl_relay_dial(relay_world.stream, &target), -EINVAL);
	target = relay_world.target;
	target.device = "longer-than-a-device";
	cr_assert_eq(sl_relay_dial(relay_world.stream, &target), -EINVAL);
	/* And it can still be answered. */
	cr_assert_eq(sl_relay_dial(relay_world.stream, &relay_world.target), 0);
	server = relay_accept();
}
