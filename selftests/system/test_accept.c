/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server that is a member asks who is at the other end by its accepted descriptor
 * (sl_sock_by_fd()). The truth is what the client says of itself over the connection.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "system/scale.h"
#include "system/expect.h"
#include "system/member.h"

TestSuite(accept, .fini = world_down, .timeout = 120);

/* Shared with the server. */
struct serve {
	/* What it does: */
	unsigned int count; /* connections */
	bool after_end;     /* looks only when the client has closed its direction */
	bool mptcp, fastopen;
	/* What it saw: */
	unsigned int port;
	unsigned int seen, unknown, wrong, changed;
	struct sl_sock last;
	uint64_t listener_cookie, last_cookie; /* SO_COOKIE */
};

/* What sl-load --identify sends. */
struct ident {
	uint64_t start_ticks;
	uint32_t pid;
	uint32_t n;
};

static int serve_listen(struct serve *serve)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, serve->mptcp ? IPPROTO_MPTCP : 0);
	socklen_t len = sizeof(addr);
	int queue = 64;

	member_need(fd >= 0, "socket");
	member_need(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)), "bind");
	member_need(!serve->fastopen ||
			    !setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue)),
		    "TCP_FASTOPEN");
	member_need(!listen(fd, 4096), "listen");
	member_need(!getsockname(fd, (struct sockaddr *)&addr, &len), "getsockname");
	serve->port = ntohs(addr.sin_port);
	serve->listener_cookie = member_cookie(fd);
	return fd;
}

/* Looked up twice: asking does not use the answer up (O15). */
static bool look(struct serve *serve, int conn, struct sl_sock *sock)
{
	struct sl_sock again;

	if (sl_sock_by_fd(world.set, conn, sock) || !(sock->flags & SL_SOCK_PEER_KNOWN))
		return false;
	if (sl_sock_by_fd(world.set, conn, &again) || again.cookie != sock->cookie ||
	    memcmp(&again.peer, &sock->peer, sizeof(sock->peer)) != 0)
		serve->changed++;
	return true;
}

static void read_to_end(int conn)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(conn, buf, sizeof(buf), 0)) > 0)
		;
	member_need(!n, "read to the end");
}

static void serve_one(struct serve *serve, int fd)
{
	_cleanup_fd_ int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	uint64_t tick_ns = 1000000000ULL / sysconf(_SC_CLK_TCK);
	struct sl_sock sock = {};
	struct ident ident;
	bool known = false;

	member_need(conn >= 0, "accept");
	/* Before the client is asked who it is, as a real server has to. */
	if (!serve->after_end)
		known = look(serve, conn, &sock);
	member_need(recv(conn, &ident, sizeof(ident), MSG_WAITALL) == sizeof(ident), "recv");
	if (serve->after_end) {
		read_to_end(conn);
		known = look(serve, conn, &sock);
	}
	serve->seen++;
	if (!known)
		serve->unknown++;
	else if (sock.peer.tgid != ident.pid || sock.peer.start_ns / tick_ns != ident.start_ticks)
		serve->wrong++;
	serve->last = sock;
	serve->last_cookie = member_cookie(conn);
}

static void serve_all(struct member *self)
{
	struct serve *serve = self->shared;
	_cleanup_fd_ int fd = serve_listen(serve);

	member_say(self);
	for (unsigned int i = 0; i < serve->count; i++)
		serve_one(serve, fd);
}

static struct serve *serve_start(struct member *server, struct serve how)
{
	struct serve *serve = member_shared(sizeof(*serve));

	*serve = how;
	member_start(server, INSIDE, serve_all, serve);
	member_await(server);
	return serve;
}

static void expect_all_known(const struct serve *serve)
{
	cr_expect_eq(serve->seen, serve->count);
	cr_expect_eq(serve->unknown, 0, "%u of %u are unknown", serve->unknown, serve->seen);
	cr_expect_eq(serve->wrong, 0, "%u of %u are wrong", serve->wrong, serve->seen);
	cr_expect_eq(serve->changed, 0, "%u answered otherwise when asked again", serve->changed);
}

#define CLIENTS SCALED(20000)

/* O1, O15: the client has usually exited by the time the server looks. */
Test(accept, connect_and_exit, .init = world_up, .timeout = 600)
{
	struct member server;
	struct serve *serve = serve_start(&server, (struct serve){ .count = CLIENTS });
	struct load load;

	load_run(
		&load, INSIDE,
		"tcp-exit --server 127.0.0.1:%u --count %u --jobs 16 --identify --quiet --timeout 500",
		serve->port, CLIENTS);
	member_end(&server);
	expect_all_known(serve);
	cr_expect_eq(counter(SL_COUNTER_SOCK_ACCEPT), CLIENTS);
	cr_expect_eq(counter(SL_COUNTER_SOCK_PEER_KNOWN), CLIENTS);
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

/* O6: only a half-closed connection is left when the server looks. */
Test(accept, half_closed_before_the_look, .init = world_up)
{
	struct member server;
	struct serve *serve =
		serve_start(&server, (struct serve){ .count = 20, .after_end = true });

	for (unsigned int i = 0; i < serve->count; i++) {
		struct load load;

		load_run(&load, INSIDE, "tcp-send --server 127.0.0.1:%u --identify --half-close",
			 serve->port);
		load_free(&load);
	}
	member_end(&server);
	expect_all_known(serve);
	cr_expect_eq(serve->last.flags & (SL_SOCK_ACCEPTED | SL_SOCK_ESTABLISHED),
		     SL_SOCK_ACCEPTED | SL_SOCK_ESTABLISHED);
	expect_conserved(0);
	expect_no_faults();
}

/* O12: whoever waits in accept() when the sandbox is attached runs no hook in between. */
Test(accept, blocked_in_accept_before_attach)
{
	struct member server;
	struct serve *serve;
	struct load load;

	world_make(NULL, false);
	serve = serve_start(&server, (struct serve){ .count = 1 });
	await_syscall(server.pid, SYS_accept4);
	world_attach();
	load_run(&load, INSIDE, "tcp-send --server 127.0.0.1:%u --identify", serve->port);
	await_exit(server.pid);
	expect_owner_pid(&serve->last.owner, server.pid, "owner by the listener");
	member_end(&server);
	expect_all_known(serve);
	cr_expect_eq(serve->last.owner.sandbox, world.sandbox);
	cr_expect(serve->last.flags & SL_SOCK_PREEXISTING, "its listener was there before");
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

/* O9: both ends have the address of the one that is IPv4. */
Test(accept, mapped_client, .init = world_up)
{
	struct member server;
	struct serve *serve = serve_start(&server, (struct serve){ .count = 1 });
	struct load load;
	struct sl_sock sock;

	load_run(&load, INSIDE, "tcp-send --server 127.0.0.1:%u --mapped --identify", serve->port);
	member_end(&server);
	expect_all_known(serve);
	sock = closed_sock(fact_u64(fact_next(&load, NULL, "sock"), "cookie"));
	cr_expect_eq(sock.family, AF_INET6);
	cr_expect(endpoint_is(&sock.remote, INADDR_LOOPBACK, serve->port));
	cr_expect(endpoint_is(&serve->last.remote, INADDR_LOOPBACK, ntohs(sock.local.port_be)));
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

/* A network namespace of the test's own, in which the server takes data in a SYN. */
static void fastopen_netns(void)
{
	_cleanup_fd_ int sysctl = -1, fd = -1;
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	cr_assert_eq(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	sysctl = open("/proc/sys/net/ipv4/tcp_fastopen", O_WRONLY | O_CLOEXEC);
	cr_assert_geq(sysctl, 0);
	/* Client and server, and no cookie needed: data is in the first SYN already. */
	cr_assert_eq(write(sysctl, "519", 3), 3);
}

/* Connections whose first data came in a SYN, in this namespace. */
static unsigned long long fastopens(void)
{
	_cleanup_file_ FILE *file = fopen("/proc/net/netstat", "re");
	char names[8192], values[8192], *name, *value, *save_name, *save_value;

	cr_assert_not_null(file);
	cr_assert_not_null(fgets(names, sizeof(names), file));
	cr_assert_not_null(fgets(values, sizeof(values), file));
	name = strtok_r(names, " ", &save_name);
	value = strtok_r(values, " ", &save_value);
	while (name && value && strcmp(name, "TCPFastOpenPassive") != 0) {
		name = strtok_r(NULL, " ", &save_name);
		value = strtok_r(NULL, " ", &save_value);
	}
	cr_assert(name && value, "no TCPFastOpenPassive");
	return strtoull(value, NULL, 10);
}

static void fastopen(const char *via)
{
	struct sl_sock sock;
	struct member server;
	struct serve *serve;
	struct load load;

	fastopen_netns();
	world_up();
	serve = serve_start(&server,
			    (struct serve){ .count = 1, .fastopen = true, .after_end = true });
	/* The server takes the first bytes for an identity, whatever they are. */
	load_run(&load, INSIDE, "tcp-send --server 127.0.0.1:%u --via %s --bytes 1000", serve->port,
		 via);
	member_end(&server);
	cr_expect_eq(fastopens(), 1, "the data was not in the SYN");
	cr_expect_eq(serve->unknown, 0);
	sock = closed_sock(fact_u64(fact_next(&load, NULL, "sock"), "cookie"));
	expect_owner(&sock.owner, fact_next(&load, NULL, "sock"), "owner");
	expect_owner(&serve->last.peer, fact_next(&load, NULL, "sock"), "peer");
	cr_expect(endpoint_is(&sock.remote, INADDR_LOOPBACK, serve->port));
	cr_expect_eq(sock.flags & (SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED),
		     SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED);
	cr_expect_eq(sock.bytes_sent, 1000);
	cr_expect_eq(sock.bytes_acked, 1000);
	sock = closed_sock(serve->last_cookie);
	cr_expect_eq(sock.bytes_received, 1000);
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

Test(accept, fastopen_sendto)
{
	fastopen("fastopen");
}

Test(accept, fastopen_sendmsg)
{
	fastopen("fastopen-sendmsg");
}

Test(accept, fastopen_connect)
{
	fastopen("fastopen-connect");
}

/* One record for the connection on each side, under the cookie that the application sees. */
Test(accept, mptcp, .init = world_up)
{
	struct member server;
	struct serve *serve = serve_start(
		&server, (struct serve){ .count = 1, .mptcp = true, .after_end = true });
	struct sl_sock sock;
	struct load load;
	const char *line;

	load_run(&load, INSIDE,
		 "tcp-send --server 127.0.0.1:%u --mptcp --identify --bytes 5000 --count 3",
		 serve->port);
	member_end(&server);
	expect_all_known(serve);
	line = fact_next(&load, NULL, "sock");
	sock = closed_sock(fact_u64(line, "cookie"));
	expect_owner(&sock.owner, line, "owner");
	cr_expect_eq(sock.protocol, IPPROTO_MPTCP);
	cr_expect(endpoint_is(&sock.remote, INADDR_LOOPBACK, serve->port));
	cr_expect_eq(sock.bytes_sent, 15000 + sizeof(struct ident));
	cr_expect(sock.flags & SL_SOCK_ESTABLISHED);
	cr_expect_eq(counter(SL_COUNTER_SOCK_CREATED), 3, "a listener and two ends");
	/*
	 * The kernel gives an accepted MPTCP socket its listener's SO_COOKIE (sk_clone_lock()
	 * copies it; seen on 6.18), which names nothing: then the record's is the first subflow's.
	 */
	if (serve->last_cookie != serve->listener_cookie)
		cr_expect_eq(serve->last.cookie, serve->last_cookie);
	cr_expect_neq(serve->last.cookie, serve->listener_cookie);
	sock = closed_sock(serve->last.cookie);
	cr_expect_eq(sock.bytes_received, 15000 + sizeof(struct ident));
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

/* What nobody accepts ends with its listener, or with the client's reset before that. */
Test(accept, never_accepted, .init = world_up)
{
	struct load server, idle, reset;
	unsigned int port =
		server_start_at(&server, INSIDE, "tcp-server --no-accept", "127.0.0.1:0");

	load_start(&idle, INSIDE, "tcp-idle --server 127.0.0.1:%u --count 5 --timeout 60", port);
	load_await(&idle, "open", 5);
	load_run(&reset, INSIDE, "tcp-churn --server 127.0.0.1:%u --count 7 --rst --quiet", port);
	cr_expect_eq(counter(SL_COUNTER_SOCK_ACCEPT), 12);
	/* The listener, five clients and their five other ends. */
	expect_conserved(11);
	cr_expect_eq(load_end(&server), 0);
	expect_conserved(5);
	cr_expect_eq(load_end(&idle), 0);
	expect_conserved(0);
	expect_no_faults();
	load_free(&server);
	load_free(&idle);
	load_free(&reset);
}
