/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Policy DNS with a way out: what asks port 53 of any address is answered by the sandbox's
 * own resolver (here: an echo), and sees the address that it asked.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guard/dns.h"
#include "kernel/cgroup.h"
#include "kernel/netns.h"
#include "system/expect.h"
#include "system/guarded.h"
#include "system/member.h"

static struct load echo[4];
static struct sl_dns_listeners listeners;

static void start_echo(const char *loopback, const char *address, struct sl_endpoint *out,
		       struct load *udp, struct load *tcp)
{
	char text[64];
	unsigned int port;

	snprintf(text, sizeof(text), "%s:0", address);
	port = server_start_at(udp, OUTSIDE, "udp-server --echo", text);
	snprintf(text, sizeof(text), "%s:%u", address, port);
	cr_assert_eq(server_start_at(tcp, OUTSIDE, "tcp-server --echo", text), port);
	cr_assert_eq(inet_pton(AF_INET6, loopback, out->addr_be), 1);
	out->port_be = htons((uint16_t)port);
}

static void redirect_up(void)
{
	struct sl_err err = { 0 };

	guarded_up();
	start_echo("::ffff:127.0.0.1", "127.0.0.1", &listeners.v4, &echo[0], &echo[1]);
	start_echo("::1", "[::1]", &listeners.v6, &echo[2], &echo[3]);
	cr_assert_eq(sl_guard_dns(world.set, world.sandbox, &listeners, &err), 0, "%s", err.text);
}

static void redirect_down(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(echo); i++) {
		load_end(&echo[i]);
		load_free(&echo[i]);
	}
	guarded_down();
}

TestSuite(dns_redirect, .init = redirect_up, .fini = redirect_down, .timeout = 60);

/* --- in the member --- */

struct shared {
	unsigned int port; /* local one of the last UDP socket */
};

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t resolver(union address *out, int family, const char *text)
{
	memset(out, 0, sizeof(*out));
	out->any.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		out->in.sin_port = htons(SL_DNS_PORT);
		member_need(inet_pton(AF_INET, text, &out->in.sin_addr) == 1, text);
		return sizeof(out->in);
	}
	out->in6.sin6_port = htons(SL_DNS_PORT);
	member_need(inet_pton(AF_INET6, text, &out->in6.sin6_addr) == 1, text);
	return sizeof(out->in6);
}

static unsigned int local_port(int fd)
{
	union address local;
	socklen_t len = sizeof(local);

	member_need(!getsockname(fd, &local.any, &len), "getsockname");
	return ntohs(local.any.sa_family == AF_INET ? local.in.sin_port : local.in6.sin6_port);
}

static void expect_peer(int fd, const union address *asked, socklen_t len)
{
	union address peer = { 0 };
	socklen_t peer_len = sizeof(peer);

	member_need(!getpeername(fd, &peer.any, &peer_len), "getpeername");
	member_need(peer_len == len && !memcmp(&peer, asked, len), "the peer that was asked");
}

/* One question over a socket that is connected. */
static void ask_connected(struct shared *shared, int socket_family, int type, int family,
			  const char *text)
{
	_cleanup_fd_ int fd = socket(socket_family, type | SOCK_CLOEXEC, 0);
	union address asked, from = { 0 };
	socklen_t len = resolver(&asked, family, text), from_len = sizeof(from);
	char answer[8];

	member_need(!connect(fd, &asked.any, len), text);
	if (socket_family == family)
		expect_peer(fd, &asked, len);
	member_need(send(fd, "query", 5, 0) == 5, "send");
	member_need(recvfrom(fd, answer, sizeof(answer), 0, &from.any, &from_len) == 5, "answer");
	if (type == SOCK_DGRAM && socket_family == family)
		member_need(!memcmp(&from, &asked, len), "an answer from who was asked");
	if (type == SOCK_DGRAM)
		shared->port = local_port(fd);
}

/* As musl does: several resolvers asked at once, and an answer from one of them is taken. */
static void ask_several(int family, const char *first, const char *second)
{
	_cleanup_fd_ int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union address one, two, from;
	socklen_t len = resolver(&one, family, first), from_len;
	char answer[8];

	resolver(&two, family, second);
	member_need(sendto(fd, "query", 5, 0, &one.any, len) == 5, first);
	member_need(sendto(fd, "query", 5, 0, &two.any, len) == 5, second);
	for (int i = 0; i < 2; i++) {
		memset(&from, 0, sizeof(from));
		from_len = sizeof(from);
		member_need(recvfrom(fd, answer, sizeof(answer), 0, &from.any, &from_len) == 5,
			    "answer");
		member_need(!memcmp(&from, &one, len) || !memcmp(&from, &two, len),
			    "an answer from one that was asked");
	}
}

static void ask_all(struct member *self)
{
	struct shared *shared = self->shared;

	for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
		ask_connected(shared, AF_INET, type, AF_INET, "192.0.2.53");
		ask_connected(shared, AF_INET, type, AF_INET, "127.0.0.53");
		ask_connected(shared, AF_INET6, type, AF_INET6, "2001:db8::53");
		ask_connected(shared, AF_INET6, type, AF_INET6, "::ffff:192.0.2.53");
	}
	ask_connected(shared, AF_INET6, SOCK_DGRAM, AF_INET, "192.0.2.53");
	ask_several(AF_INET, "192.0.2.53", "198.51.100.53");
	ask_several(AF_INET6, "2001:db8::53", "::ffff:192.0.2.53");
}

Test(dns_redirect, every_way_to_ask)
{
	struct shared *shared = member_shared(sizeof(*shared));
	struct member member;

	member_start(&member, INSIDE, ask_all, shared);
	member_end(&member);
	cr_expect_eq(counter(SL_COUNTER_DENIED), 0);
	cr_expect_eq(counter(SL_COUNTER_UNSOLICITED), 0);
	expect_conserved(0);
	expect_no_faults();
}

/* --- records --- */

static void ask_once(struct member *self)
{
	ask_connected(self->shared, AF_INET, SOCK_DGRAM, AF_INET, "192.0.2.53");
	ask_connected(self->shared, AF_INET, SOCK_STREAM, AF_INET, "192.0.2.53");
}

static void connect_elsewhere(struct member *self)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in else_where = { .sin_family = AF_INET,
					  .sin_port = htons(54),
					  .sin_addr.s_addr = htonl(0xc0000235) };
	union address asked;
	socklen_t len = resolver(&asked, AF_INET, "192.0.2.53");

	(void)self;
	member_need(!connect(fd, &asked.any, len), "connect");
	member_need(connect(fd, (struct sockaddr *)&else_where, sizeof(else_where)) &&
			    errno == EACCES,
		    "port 54 is denied");
}

static struct sl_sock closed_of(const struct member *member, int type)
{
	struct sl_sock found = closed_by((uint64_t)member->pid, 0);

	if (found.type != type)
		cr_assert_fail("a socket of type %d is found first", found.type);
	return found;
}

/* The record has where it went, and what was asked for; the resolver is told who asks. */
Test(dns_redirect, records)
{
	struct shared *shared = member_shared(sizeof(*shared));
	struct sl_sock_more more;
	struct member member;
	struct sl_sock sock;
	struct sl_err err = { 0 };
	__u64 cookie = 0;
	int ns = -1;

	member_start(&member, INSIDE, ask_once, shared);
	member_end(&member);
	cr_assert_eq(sl_netns_of(getpid(), &ns, &err), 0, "%s", err.text);
	cr_assert_eq(sl_netns_cookie(ns, &cookie), 0);
	close(ns);
	cr_assert_eq(sl_sock_by_datagram(world.set, cookie, IPPROTO_UDP,
					 htons((uint16_t)shared->port), &sock),
		     0);
	cr_expect_eq(sock.owner.tgid, (__u32)member.pid);
	cr_expect_eq(sock.owner.sandbox, world.sandbox);
	cr_expect(endpoint_is(&sock.remote, INADDR_LOOPBACK, ntohs(listeners.v4.port_be)));
	cr_assert_eq(sl_sock_more_read(world.set, &sock, &more), 0);
	cr_expect(endpoint_is(&more.original, 0xc0000235, SL_DNS_PORT));
	cr_expect_eq(sl_sock_by_datagram(world.set, cookie + 1, IPPROTO_UDP,
					 htons((uint16_t)shared->port), &sock),
		     -ENOENT);
	/* One that was redirected is not for ever. */
	member_start(&member, INSIDE, connect_elsewhere, shared);
	member_end(&member);
	sock = closed_of(&member, SOCK_DGRAM);
	cr_assert_eq(sl_sock_more_read(world.set, &sock, &more), 0);
	cr_expect(endpoint_is(&more.original, 0xc0000235, SL_DNS_PORT), "a denial changes nothing");
}

/* --- what it is not for --- */

static void expect_errno(const char *before, const char *want)
{
	struct load load;

	load_start(&load, INSIDE, "do %s socket=udp connect=192.0.2.53:53 sendto=192.0.2.53:53",
		   before);
	load_end(&load);
	cr_expect_str_eq(did_errno(&load, "connect", 0), want, "%s connect", before);
	cr_expect_str_eq(did_errno(&load, "sendto", 0), want, "%s sendto", before);
	load_free(&load);
}

Test(dns_redirect, modes)
{
	struct sl_err err = { 0 };
	char words[128], mount[64], path[PATH_MAX];
	struct load load;

	expect_errno("", "0");
	/* What is loaded meanwhile leaves it as it is. */
	guarded_load_more("");
	expect_errno("", "0");
	/* Elsewhere the sandbox's hooks don't see the socket: it needs a rule. */
	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	snprintf(words, sizeof(words), "cgroup=%s", mount);
	expect_errno(words, "EACCES");
	load_start(&load, INSIDE, "do --until-eof socket=udp");
	load_await(&load, "did", 1);
	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_FROZEN, &err), 0);
	do_more(&load, "connect=192.0.2.53:53");
	do_more(&load, "sendto=192.0.2.53:53");
	load_end(&load);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "EACCES", "frozen");
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "EACCES", "frozen");
	load_free(&load);
	cr_assert_eq(sl_guard_thaw(world.set, world.sandbox, &err), 0);
	expect_errno("", "0");
	/* Nothing is routed there. */
	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_OBSERVE, &err), 0);
	expect_errno("", "ENETUNREACH");
	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_ENFORCE, &err), 0);
	snprintf(path, sizeof(path), "%s/sandbox/%u/on_recvmsg4", world.dir, world.sandbox);
	cr_expect_eq(access(path, F_OK), 0);
	cr_assert_eq(sl_guard_dns(world.set, world.sandbox, NULL, &err), 0, "%s", err.text);
	cr_expect_neq(access(path, F_OK), 0);
	expect_errno("", "EACCES");
}

/* A reload ends connections that no rule allows any more, but not these: none had to. */
Test(dns_redirect, outlives_a_reload)
{
	struct load load;

	load_start(&load, INSIDE, "do --until-eof socket=tcp connect=192.0.2.53:53 send");
	load_await(&load, "did", 3);
	guarded_load_more("");
	do_more(&load, "send");
	load_await(&load, "did", 4);
	load_end(&load);
	cr_expect_str_eq(did_errno(&load, "send", 1), "0");
	cr_expect_eq(counter(SL_COUNTER_REVOKED), 0);
	cr_expect_eq(counter(SL_COUNTER_DENIED), 0);
	load_free(&load);
}

/* Of a sandbox whose datagrams all are published, for a relay. */
Test(dns_redirect, datagrams_of_a_relay)
{
	struct sl_err err = { 0 };
	struct sl_sock sock;
	struct load load;
	const char *line;
	__u64 cookie = 0;
	int ns = -1;

	cr_assert_eq(sl_guard_datagrams(world.set, world.sandbox, true, &err), 0, "%s", err.text);
	load_run(&load, INSIDE, "udp-send --count 2 --server %s --bind 127.0.0.1:4567",
		 guarded.open_udp.text);
	line = fact_next(&load, NULL, "sock");
	cr_assert_not_null(line);
	cr_assert_eq(sl_netns_of(getpid(), &ns, &err), 0);
	cr_assert_eq(sl_netns_cookie(ns, &cookie), 0);
	close(ns);
	cr_assert_eq(sl_sock_by_datagram(world.set, cookie, IPPROTO_UDP, htons(4567), &sock), 0);
	cr_expect_eq(sock.cookie, fact_u64(line, "cookie"));
	load_free(&load);
}
