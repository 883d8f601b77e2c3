/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The relay's own end of a flow in a namespace with loopback only, where a route makes every
 * address local: clients ask addresses that no interface has, and are answered from there.
 * Without a steering program, listeners on all addresses stand for what it would choose.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay_world.h"

#define PORT 5000

static int own = -1, inside = -1;

static void stop(void)
{
	relay_stop();
	sl_cleanup_fd(&own);
	sl_cleanup_fd(&inside);
}

TestSuite(relay_netns, .fini = stop);

static void enter(int netns)
{
	cr_assert_eq(setns(netns, CLONE_NEWNET), 0, "%s", strerror(errno));
}

/* Ends with this process: nothing else refers to it. */
static void make_netns(void)
{
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (unshare(CLONE_NEWNET))
		cr_skip_test("can't make a network namespace: %s", strerror(errno));
	inside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(system("ip link set lo up && "
			    "ip route add local 0.0.0.0/0 dev lo src 127.0.0.1 && "
			    "ip -6 route add local ::/0 dev lo src ::1"),
		     0);
	enter(own);
}

static socklen_t address(struct sockaddr_storage *out, const char *text)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(PORT);
		return sizeof(*v4);
	}
	cr_assert_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(PORT);
	return sizeof(*v6);
}

/* A socket in the namespace, bound to all addresses, or connected to one. */
static int socket_inside(int type, const char *text, bool listens)
{
	struct sockaddr_storage addr;
	socklen_t len = address(&addr, text);
	const int on = 1;
	int fd;

	enter(inside);
	fd = socket(addr.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	enter(own);
	if (listens) {
		if (addr.ss_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), 0, "%s", strerror(errno));
		cr_assert(type == SOCK_DGRAM || !listen(fd, 10));
	} else if (connect(fd, (struct sockaddr *)&addr, len)) {
		cr_assert_eq(errno, EINPROGRESS, "%s", strerror(errno));
	}
	return fd;
}

static int listen_inside(int type, const char *text)
{
	struct sl_relay_listener listener = {
		.fd = socket_inside(type, text, true),
		.kind = type == SOCK_DGRAM ? SL_RELAY_UDP : SL_RELAY_TRANSPARENT,
		.netns = inside,
	};
	struct sl_err err = { 0 };

	cr_assert_eq(sl_relay_listen(relay_world.relay, &listener, &err), 0, "%s", err.text);
	return listener.fd;
}

static void check_original(const char *text)
{
	struct sockaddr_storage want;
	socklen_t len = address(&want, text);

	cr_assert_arr_eq(&relay_world.ask.original, &want, len);
}

/* Its socket is connected, so only an answer from the address that was asked arrives. */
static void ask_and_answer(const char *text)
{
	_cleanup_fd_ int client = socket_inside(SOCK_DGRAM, text, false);
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	char got[16];

	for (unsigned int i = 0; i < 5; i++) {
		relay_send_text(client, "question");
		RELAY_UNTIL(recvfrom(relay_world.server, got, sizeof(got), 0,
				     (struct sockaddr *)&from, &len) == 8);
		cr_assert_eq(sendto(relay_world.server, "answer", 6, 0, (struct sockaddr *)&from,
				    len),
			     6);
		relay_expect_text(client, "answer");
	}
	check_original(text);
}

Test(relay_netns, datagrams)
{
	static const char *const asked[] = { "192.0.2.9", "198.51.100.1", "2001:db8::9" };
	_cleanup_fd_ int v4 = -1, v6 = -1;

	make_netns();
	relay_start(SL_RELAY_UDP, (struct sl_relay_options){ 0 });
	v4 = listen_inside(SOCK_DGRAM, "0.0.0.0");
	v6 = listen_inside(SOCK_DGRAM, "::");
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
		ask_and_answer(asked[i]);
	cr_assert_eq(relay_world.asked, ARRAY_SIZE(asked));
}

Test(relay_netns, streams)
{
	static const char *const asked[] = { "192.0.2.9", "2001:db8::9" };
	_cleanup_fd_ int v4 = -1, v6 = -1;

	make_netns();
	relay_start(SL_RELAY_TRANSPARENT, (struct sl_relay_options){ 0 });
	v4 = listen_inside(SOCK_STREAM, "0.0.0.0");
	v6 = listen_inside(SOCK_STREAM, "::");
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		_cleanup_fd_ int client = socket_inside(SOCK_STREAM, asked[i], false);
		_cleanup_fd_ int server = relay_accept();

		relay_send_text(client, "out");
		relay_expect_text(server, "out");
		relay_send_text(server, "in");
		relay_expect_text(client, "in");
		check_original(asked[i]);
	}
}
