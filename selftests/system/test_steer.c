/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steering: what a member opens in a relay's namespace arrives, with the address it meant. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/expect.h"
#include "system/guarded.h"
#include "system/relayed.h"

TestSuite(steer, .init = relayed_up, .fini = relayed_down, .timeout = 60);

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

#define NAME_MAX_LEN (INET6_ADDRSTRLEN + 8)

static void to_endpoint(const struct sockaddr_storage *addr, struct sl_endpoint *out)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	*out = (struct sl_endpoint){ .port_be = in->sin_port };
	if (addr->ss_family == AF_INET6) {
		memcpy(out->addr_be, &in6->sin6_addr, sizeof(out->addr_be));
		return;
	}
	out->addr_be[2] = htonl(0xffff);
	out->addr_be[3] = in->sin_addr.s_addr;
}

/* Who is at the other end of an accepted connection, as a relay asks: by its ends. */
static void expect_tuple(int fd, const struct load *client, const char *words)
{
	struct sl_endpoint local, remote;
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	struct sl_sock sock;
	__u64 cookie = 0;

	cr_assert_eq(getpeername(fd, (struct sockaddr *)&addr, &len), 0);
	to_endpoint(&addr, &local);
	len = sizeof(addr);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	to_endpoint(&addr, &remote);
	cr_assert_eq(sl_netns_cookie(relayed.ns, &cookie), 0);
	cr_assert_eq(sl_tuple_resolve(world.set, &local, &remote, cookie, &sock), 0, "%s", words);
	cr_expect_eq(sock.owner.tgid, (__u32)client->pid);
	cr_expect_eq(sock.owner.sandbox, world.sandbox);
}

static void expect_relayed(enum sl_steer_which which, const char *address, const char *words)
{
	char name[NAME_MAX_LEN], remote[NAME_MAX_LEN];
	struct load client;
	struct sl_sock sock;
	const char *line;
	int fd;

	load_start(&client, INSIDE, "tcp-send --server %s --bytes 100 --count 2 %s", address,
		   words);
	fd = relayed_accept(which, name);
	cr_expect_str_eq(name, address, "meant for %s (%s), arrived as %s", address, words, name);
	expect_tuple(fd, &client, words);
	cr_expect_eq(relayed_drain(fd), 200);
	cr_expect_eq(load_end(&client), 0, "%s", words);
	line = fact_next(&client, NULL, "sock");
	cr_assert_not_null(line);
	cr_assert(fact_text(line, "remote", remote, sizeof(remote)));
	sock = closed_sock(fact_u64(line, "cookie"));
	cr_expect_eq(ntohs(sock.remote.port_be), 443, "%s: %s", words, remote);
	load_free(&client);
}

Test(steer, connections_of_every_kind)
{
	static const char *const kinds[] = {
		"",
		"--mapped",
		"--connect nonblock",
		"--connect uring --uring inline",
		"--connect uring --uring async",
		"--connect uring --uring sqpoll",
		"--via fastopen",
		"--via fastopen-sendmsg",
		"--mptcp",
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		expect_relayed(SL_STEER_TCP_V4, "192.0.2.7:443", kinds[i]);
	expect_relayed(SL_STEER_TCP_V6, "[2001:db8::7]:443", "");
	expect_relayed(SL_STEER_TCP_V6, "[2001:db8::7]:443", "--via fastopen");
	/* Addresses that nobody routes, and those that metadata services have. */
	expect_relayed(SL_STEER_TCP_V4, "169.254.169.254:443", "");
	expect_relayed(SL_STEER_TCP_V4, "10.0.0.1:443", "");
	expect_no_faults();
}

/* What the relay does with a flow: a socket that is bound to the one end, connected to the other. */
static int flow_open(const struct datagram *first)
{
	int fd = socket(first->from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
	if (first->to.ss_family == AF_INET6)
		cr_assert_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &(int){ 1 }, sizeof(int)),
			     0);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&first->to, first->len), 0, "%s: %s",
		     first->name, strerror(errno));
	cr_assert_eq(connect(fd, (const struct sockaddr *)&first->from, first->len), 0);
	return fd;
}

static void expect_flow(enum sl_steer_which which, const char *address, const char *words)
{
	struct datagram first;
	struct load client;
	char buf[128];
	int fd;

	load_start(&client, INSIDE, "udp-send --server %s --bytes 10 --count 3 --recv recvfrom %s",
		   address, words);
	relayed_datagram(which, &first);
	cr_expect_str_eq(first.name, address, "%s: %s", words, first.name);
	fd = flow_open(&first);
	cr_assert_eq(send(fd, first.text, (size_t)first.size, 0), first.size);
	for (int i = 0; i < 2; i++) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		cr_assert_eq(poll(&pfd, 1, 5000), 1, "%s: not all of the flow comes here", words);
		cr_assert_eq(recv(fd, buf, sizeof(buf), 0), 10);
		cr_assert_eq(send(fd, buf, 10, 0), 10);
	}
	cr_expect_eq(load_end(&client), 0, "%s", words);
	close(fd);
	load_free(&client);
}

Test(steer, datagrams_of_a_flow)
{
	expect_flow(SL_STEER_UDP_V4, "192.0.2.9:4000", "");
	expect_flow(SL_STEER_UDP_V4, "192.0.2.9:4000", "--connected");
	expect_flow(SL_STEER_UDP_V4, "192.0.2.9:4000", "--mapped");
	expect_flow(SL_STEER_UDP_V4, "192.0.2.9:4000", "--v4-on-v6");
	expect_flow(SL_STEER_UDP_V4, "192.0.2.9:4000", "--via uring");
	expect_flow(SL_STEER_UDP_V6, "[2001:db8::9]:4000", "");
	expect_flow(SL_STEER_UDP_V6, "[2001:db8::9]:4000", "--connected");
	expect_no_faults();
}

/* The source of the reply is what was asked: of an IPv4 socket that serves all addresses. */
static void reply_from(int fd, const struct datagram *query)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)query->text, (size_t)query->size };
	struct msghdr msg = { .msg_name = (void *)(uintptr_t)&query->from,
			      .msg_namelen = query->len,
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control };
	struct in6_pktinfo info6 = { 0 };
	struct in_pktinfo info = { 0 };

	if (query->to.ss_family == AF_INET) {
		info.ipi_spec_dst = ((const struct sockaddr_in *)&query->to)->sin_addr;
		control.head.cmsg_level = IPPROTO_IP;
		control.head.cmsg_type = IP_PKTINFO;
		control.head.cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
		msg.msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		info6.ipi6_addr = ((const struct sockaddr_in6 *)&query->to)->sin6_addr;
		control.head.cmsg_level = IPPROTO_IPV6;
		control.head.cmsg_type = IPV6_PKTINFO;
		control.head.cmsg_len = CMSG_LEN(sizeof(info6));
		memcpy(CMSG_DATA(&control.head), &info6, sizeof(info6));
		msg.msg_controllen = CMSG_SPACE(sizeof(info6));
	}
	cr_assert_eq(sendmsg(fd, &msg, 0), query->size, "%s", strerror(errno));
}

static void expect_dns(enum sl_steer_which udp, const char *address)
{
	enum sl_steer_which tcp = udp & ~SL_STEER_UDP;
	char name[NAME_MAX_LEN];
	struct datagram query;
	struct load client;
	int fd;

	/* Connected: what comes from elsewhere is no answer. */
	load_start(&client, INSIDE,
		   "udp-send --server %s --bytes 10 --count 1 --recv recvfrom --connected",
		   address);
	relayed_datagram(udp, &query);
	cr_expect_str_eq(query.name, address);
	reply_from(relayed.listener[udp], &query);
	cr_expect_eq(load_end(&client), 0, "%s", address);
	load_free(&client);
	load_start(&client, INSIDE, "tcp-send --server %s --bytes 10 --count 1", address);
	fd = relayed_accept(tcp, name);
	cr_expect_str_eq(name, address);
	cr_expect_eq(relayed_drain(fd), 10);
	cr_expect_eq(load_end(&client), 0, "%s", address);
	load_free(&client);
}

Test(steer, dns_whatever_the_resolver)
{
	expect_dns(SL_STEER_DNS_UDP_V4, "127.0.0.53:53");
	expect_dns(SL_STEER_DNS_UDP_V4, "127.0.0.1:53");
	expect_dns(SL_STEER_DNS_UDP_V4, "192.0.2.53:53");
	expect_dns(SL_STEER_DNS_UDP_V6, "[2001:db8::53]:53");
	expect_dns(SL_STEER_DNS_UDP_V6, "[::1]:53");
	expect_no_faults();
}

/* A member that serves every address has what is sent to loopback, and nothing else. */
Test(steer, members_catch_nothing)
{
	char name[NAME_MAX_LEN];
	struct load tcp, udp, client;
	struct datagram first;
	int fd;

	load_start(&tcp, INSIDE, "tcp-server --until-eof --listen 0.0.0.0:443");
	load_await(&tcp, "listen", 1);
	load_start(&udp, INSIDE, "udp-server --until-eof --listen 0.0.0.0:4000");
	load_await(&udp, "listen", 1);
	load_start(&client, INSIDE, "tcp-send --server 192.0.2.7:443 --bytes 10 --count 1");
	fd = relayed_accept(SL_STEER_TCP_V4, name);
	cr_expect_str_eq(name, "192.0.2.7:443");
	relayed_drain(fd);
	cr_expect_eq(load_end(&client), 0);
	load_free(&client);
	load_run(&client, INSIDE, "udp-send --server 192.0.2.7:4000 --bytes 10 --count 1");
	relayed_datagram(SL_STEER_UDP_V4, &first);
	load_free(&client);
	load_run(&client, INSIDE, "tcp-send --server 127.0.0.1:443 --bytes 10 --count 1");
	load_free(&client);
	load_run(&client, INSIDE, "udp-send --server 127.0.0.1:4000 --bytes 10 --count 1");
	load_free(&client);
	cr_expect_eq(load_end(&tcp), 0);
	cr_expect_eq(load_end(&udp), 0);
	cr_expect_eq(fact_count(&tcp, "peer"), 1, "%s", tcp.text);
	cr_expect_eq(fact_u64(fact_next(&udp, NULL, "total"), "datagrams"), 1, "%s", udp.text);
	load_free(&tcp);
	load_free(&udp);
}

/* errno of a connection to an address of nobody. */
static void expect_connect(const char *address, const char *errnum)
{
	struct load load;

	load_start(&load, INSIDE, "do socket=tcp connect=%s", address);
	load_end(&load);
	cr_expect_str_eq(did_errno(&load, "connect", 0), errnum, "%s", address);
	load_free(&load);
}

/* Nobody there: refused. Whoever comes next takes over, by the pins. */
Test(steer, listeners_end_and_are_replaced)
{
	struct sl_steer *later = NULL;
	struct sl_err err = { 0 };
	char name[NAME_MAX_LEN];
	struct load load;

	cr_expect_eq(sl_steer_attach(&later, world.set, world.sandbox, relayed.ns, &err), -EEXIST);
	relayed_close();
	expect_connect("192.0.2.7:443", "ECONNREFUSED");
	expect_connect("127.0.0.53:53", "ECONNREFUSED");
	/* A member serves it, and still it is refused. */
	load_start(&load, INSIDE, "tcp-server --until-eof --listen 0.0.0.0:443");
	load_await(&load, "listen", 1);
	expect_connect("192.0.2.7:443", "ECONNREFUSED");
	load_end(&load);
	load_free(&load);

	sl_steer_free(&relayed.steer);
	cr_assert_eq(sl_steer_open(&relayed.steer, world.set, world.sandbox, &err), 0, "%s",
		     err.text);
	relayed_listen();
	expect_connect("192.0.2.7:443", "0");
	relayed_drain(relayed_accept(SL_STEER_TCP_V4, name));
	cr_assert_eq(sl_steer_clear(relayed.steer, SL_STEER_TCP_V4), 0);
	cr_assert_eq(sl_steer_clear(relayed.steer, SL_STEER_TCP_V4), 0);
	expect_connect("192.0.2.7:443", "ECONNREFUSED");
}

Test(steer, ends_with_the_sandbox)
{
	struct sl_steer *steer = NULL;
	struct sl_err err = { 0 };
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sandbox/%u/steer", world.dir, world.sandbox);
	cr_expect_eq(access(path, F_OK), 0);
	cr_assert_eq(sl_sandbox_detach(world.set, world.sandbox, &err), 0, "%s", err.text);
	cr_expect_neq(access(path, F_OK), 0);
	cr_expect_eq(sl_steer_open(&steer, world.set, world.sandbox, &err), -ENOENT);
	/* Nothing stands between a socket and who serves its address now: this test. */
	expect_connect("192.0.2.7:443", "ECONNREFUSED");
	cr_assert_eq(sl_steer_socket(relayed.ns, SL_STEER_DNS_TCP_V4, &relayed.listener[0], &err),
		     -EADDRINUSE);
	expect_connect("192.0.2.7:53", "0");
}

Test(steer, namespaces)
{
	struct sl_err err = { 0 };
	__u64 mine = 0, other = 0;
	int ns = -1;

	cr_assert_eq(sl_netns_cookie(relayed.ns, &mine), 0);
	cr_assert_eq(sl_netns_of(getpid(), &ns, &err), 0, "%s", err.text);
	cr_assert_eq(sl_netns_cookie(ns, &other), 0);
	cr_expect_eq(mine, other);
	cr_expect_eq(sl_netns_relay(ns, &err), 0, "again: %s", err.text);
	cr_expect_eq(sl_netns_relay(-1, &err), -EBADF);
	/* One that has a way out is left alone. */
	cr_assert_eq(system("ip link add sl0 type veth peer name sl1"), 0);
	cr_expect_eq(sl_netns_relay(ns, &err), -EEXIST);
	cr_expect(strlen(err.hint));
	close(ns);
}
