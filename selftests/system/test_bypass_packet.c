/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* B17, B18, B23: what only the packets show. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guard/guard.h"
#include "system/guarded.h"
#include "system/member.h"

#define AWAIT_MS 5000

TestSuite(bypass_packet, .init = guarded_up, .fini = guarded_down, .timeout = 60);

/* An address of this namespace that is not loopback. */
static void add_address(const char *addr)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo:1" };
	struct sockaddr_in *in = (struct sockaddr_in *)&ifr.ifr_addr;

	in->sin_family = AF_INET;
	cr_assert_eq(inet_pton(AF_INET, addr, &in->sin_addr), 1);
	cr_assert_eq(ioctl(fd, SIOCSIFADDR, &ifr), 0, "%s", strerror(errno));
}

#define OUTER "192.0.2.1"

/* A client from outside the sandbox: whether a connection comes about within a second. */
static bool reaches(const char *addr, unsigned int port)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	cr_assert_eq(inet_pton(AF_INET, addr, &in.sin_addr), 1);
	if (connect(fd, (struct sockaddr *)&in, sizeof(in)) && errno != EINPROGRESS)
		return false;
	/* On loopback an answer is there at once, or never. */
	if (poll(&pfd, 1, 1000) != 1)
		return false;
	return !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err;
}

/* B17: listening may be refused, or its clients get no answer. */
static bool can_serve_as(const char *type, const char *bind, const char *addr)
{
	const char *line;
	struct load load;
	bool served;

	load_start(&load, INSIDE, "do --until-eof socket=%s %s listen", type, bind);
	load_await(&load, "did", *bind ? 3 : 2);
	line = did_line(&load, "listen", 0);
	served = strcmp(did_errno(&load, "bind", 0), "EACCES") != 0 && fact_u64(line, "result") &&
		 reaches(addr, (unsigned int)fact_u64(line, "result"));
	cr_expect_eq(load_end(&load), 0);
	load_free(&load);
	return served;
}

static bool can_serve(const char *bind, const char *addr)
{
	return can_serve_as("tcp", bind, addr);
}

/* What listens is a socket of the kernel's own, which plain TCP clients reach as well. */
Test(bypass_packet, mptcp_listen)
{
	add_address(OUTER);
	cr_expect_not(can_serve_as("mptcp", "bind=0.0.0.0:0", OUTER), "0.0.0.0");
	cr_expect(can_serve_as("mptcp", "bind=127.0.0.1:0", "127.0.0.1"), "loopback");
}

Test(bypass_packet, listen_without_an_entry)
{
	add_address(OUTER);
	cr_expect_not(can_serve("bind=0.0.0.0:0", OUTER), "0.0.0.0");
	cr_expect_not(can_serve("bind=" OUTER ":0", OUTER), "its own address");
	cr_expect_not(can_serve("", OUTER), "listen() without bind()");
}

Test(bypass_packet, listen_on_loopback)
{
	struct load load;

	cr_expect(can_serve("bind=127.0.0.1:0", "127.0.0.1"));
	/* bind() before connect() is no listening. */
	load_run(&load, INSIDE,
		 "do socket=tcp bind=0.0.0.0:0 connect=%s socket=udp bind=0.0.0.0:0 "
		 "sendto=%s",
		 guarded.open.text, guarded.open_udp.text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "0");
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "0");
	cr_expect_eq(sink_take(&guarded.open), 1);
	cr_expect_eq(sink_take(&guarded.open_udp), 1);
	load_free(&load);
}

Test(bypass_packet, listen_with_an_entry)
{
	char more[512];

	add_address(OUTER);
	snprintf(more, sizeof(more),
		 "  serve:\n    listen: [{ port: 8080 }]\n    binaries: [{ path: %s }]\n",
		 getenv("SL_LOAD"));
	guarded_load_more(more);
	cr_expect(can_serve("bind=0.0.0.0:8080", OUTER));
	cr_expect_not(can_serve("bind=0.0.0.0:8081", OUTER));
}

/* Sees what leaves, in the sender's own context: nothing is still to come. */
static int tap_open(void)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));

	cr_assert_geq(fd, 0);
	return fd;
}

/* Packets since the last call that are to be sent on by who receives them. */
static unsigned int tap_routed(int tap)
{
	unsigned char packet[64];
	struct sockaddr_ll from = {};
	socklen_t len = sizeof(from);
	unsigned int n = 0;

	while (recvfrom(tap, packet, sizeof(packet), 0, (struct sockaddr *)&from, &len) > 0) {
		if (from.sll_pkttype != PACKET_OUTGOING)
			continue;
		n += packet[0] >> 4 == 4 && (packet[0] & 15) > 5;
		n += packet[0] >> 4 == 6 && packet[6] == IPPROTO_ROUTING;
	}
	return n;
}

/* B18: the packets go to the first hop, whatever address the call named. */
static void routed(const char *words, const char *verb, const char *to)
{
	_cleanup_fd_ int tap = tap_open();
	struct load load;

	load_run(&load, OUTSIDE, "do %s %s=%s", words, verb, to);
	cr_expect_str_eq(did_errno(&load, verb, 0), "0");
	cr_expect_eq(tap_routed(tap), 1, "what is tested works outside");
	load_free(&load);
	load_run(&load, INSIDE, "do %s %s=%s", words, verb, to);
	cr_expect_str_eq(did_errno(&load, verb, 0), "EPERM", "%s: %s", words,
			 did_errno(&load, verb, 0));
	cr_expect_eq(tap_routed(tap), 0, "%s has left", words);
	load_free(&load);
}

Test(bypass_packet, source_route)
{
	guarded_expect_do(true, "socket=udp", "sendto");
	routed("socket=udp source-route=127.0.0.2", "sendto", guarded.open_udp.text);
}

Test(bypass_packet, routing_header)
{
	struct sink sink;
	char more[512];

	sink_open(&sink, true, "::1", 0);
	snprintf(more, sizeof(more),
		 "  also:\n"
		 "    endpoints: [{ cidr: '::1/128', port: %u, transport: udp, "
		 "allow_reserved: true }]\n"
		 "    binaries: [{ path: %s }]\n",
		 sink.port, getenv("SL_LOAD"));
	guarded_load_more(more);
	routed("socket=udp6 routing-header=::1", "sendto", sink.text);
	close(sink.fd);
}

/* TCP is not told: it tries again until it gives up, which is not waited for. */
static unsigned int routed_syns(enum load_where where)
{
	_cleanup_fd_ int tap = tap_open();
	struct load load;

	load_start(&load, where, "do socket=tcp source-route=127.0.0.2 connect=%s",
		   guarded.open.text);
	load_await(&load, "did", 2);
	await_syscall(load.pid, SYS_connect);
	kill(load.pid, SIGKILL);
	load_end(&load);
	load_free(&load);
	return tap_routed(tap);
}

Test(bypass_packet, source_route_of_a_connection)
{
	cr_expect_gt(routed_syns(OUTSIDE), 0, "what is tested works outside");
	cr_expect_eq(routed_syns(INSIDE), 0);
	cr_expect_eq(sink_take(&guarded.open), 0);
}

/* B23: the connection whose rule is removed ends; another one lives. */
Test(bypass_packet, rule_removed_while_connected)
{
	struct sink *removed = &guarded.shut[OTHER_PORT];
	struct load ends, lives;
	char more[512];
	char byte;
	int served, kept;

	snprintf(more, sizeof(more),
		 "  also:\n"
		 "    endpoints: [{ cidr: 127.0.0.1/32, port: %u, allow_reserved: true }]\n"
		 "    binaries: [{ path: %s }]\n",
		 removed->port, getenv("SL_LOAD"));
	guarded_load_more(more);
	load_start(&ends, INSIDE, "do --until-eof socket=tcp connect=%s send", removed->text);
	load_start(&lives, INSIDE, "do --until-eof socket=tcp connect=%s send", guarded.open.text);
	load_await(&ends, "did", 3);
	load_await(&lives, "did", 3);
	served = accept(removed->fd, NULL, NULL);
	kept = accept(guarded.open.fd, NULL, NULL);
	cr_expect_eq(recv(served, &byte, 1, 0), 1);
	cr_expect_eq(recv(kept, &byte, 1, 0), 1);
	guarded_load_more("");
	cr_assert_eq(write(ends.in, "send\nsend\n", 10), 10);
	cr_assert_eq(write(lives.in, "send\n", 5), 5);
	load_await(&ends, "did", 5);
	load_await(&lives, "did", 4);
	cr_expect_str_eq(did_errno(&lives, "send", 1), "0");
	cr_expect_eq(recv(kept, &byte, 1, 0), 1, "what still has a rule lives");
	/* Whatever the sender was told, nothing of it may arrive. */
	cr_expect_leq(recv(served, &byte, 1, MSG_DONTWAIT), 0, "it goes on without a rule");
	close(served);
	close(kept);
	kill(ends.pid, SIGKILL);
	load_end(&ends);
	cr_expect_eq(load_end(&lives), 0);
	load_free(&ends);
	load_free(&lives);
}

/*
 * A policy that comes into force ends connections that are older and that it would not have
 * allowed, and lives with the others; so does one that was loaded to observe.
 */
Test(bypass_packet, older_than_the_policy)
{
	struct sink *shut = &guarded.shut[OTHER_PORT];
	struct load ends, lives;
	char byte;
	int served, kept;

	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_OBSERVE, NULL), 0);
	load_start(&ends, INSIDE, "do --until-eof socket=tcp connect=%s send", shut->text);
	load_start(&lives, INSIDE, "do --until-eof socket=tcp connect=%s send", guarded.open.text);
	load_await(&ends, "did", 3);
	load_await(&lives, "did", 3);
	served = accept(shut->fd, NULL, NULL);
	kept = accept(guarded.open.fd, NULL, NULL);
	cr_expect_eq(recv(served, &byte, 1, 0), 1);
	cr_expect_eq(recv(kept, &byte, 1, 0), 1);
	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_ENFORCE, NULL), 0);
	cr_assert_eq(write(ends.in, "send\n", 5), 5);
	cr_assert_eq(write(lives.in, "send\n", 5), 5);
	load_await(&ends, "did", 4);
	load_await(&lives, "did", 4);
	cr_expect_eq(recv(kept, &byte, 1, 0), 1, "what a rule names lives");
	cr_expect_leq(recv(served, &byte, 1, MSG_DONTWAIT), 0, "it goes on without a rule");
	close(served);
	close(kept);
	kill(ends.pid, SIGKILL);
	load_end(&ends);
	cr_expect_eq(load_end(&lives), 0);
	load_free(&ends);
	load_free(&lives);
}
