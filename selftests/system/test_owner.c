/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who a connection belongs to, looked up at the other end or after the fact. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/expect.h"

TestSuite(owner, .init = world_up, .fini = world_down, .timeout = 120);

static void endpoint(struct sl_endpoint *out, const struct sockaddr_in *in)
{
	memset(out, 0, sizeof(*out));
	out->addr_be[2] = htonl(0xffff);
	out->addr_be[3] = in->sin_addr.s_addr;
	out->port_be = in->sin_port;
}

static int listener(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	cr_assert_eq(listen(fd, 4096), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

/* The owner of the other end of an accepted connection, looked up twice (O15). */
static bool resolve(const struct sockaddr_in *here, const struct sockaddr_in *there,
		    struct sl_sock *out)
{
	struct sl_sock again;
	struct sl_endpoint local, remote;

	endpoint(&local, there);
	endpoint(&remote, here);
	if (sl_tuple_resolve(world.set, &local, &remote, 0, out))
		return false;
	cr_expect_eq(sl_tuple_resolve(world.set, &local, &remote, 0, &again), 0);
	cr_expect_eq(again.cookie, out->cookie);
	return true;
}

#define CLIENTS 2000

struct ident {
	uint64_t start_ticks;
	uint32_t pid;
	uint32_t n;
};

struct tally {
	unsigned int seen, unknown, wrong;
};

/* Returns the pid that the client said. */
static uint32_t serve_one(int fd, struct tally *tally)
{
	struct sockaddr_in here = {}, there = {};
	socklen_t here_len = sizeof(here), there_len = sizeof(there);
	_cleanup_fd_ int conn = accept4(fd, (struct sockaddr *)&there, &there_len, SOCK_CLOEXEC);
	struct sl_sock owner = {};
	struct ident ident;
	uint64_t tick_ns = 1000000000ULL / sysconf(_SC_CLK_TCK);

	cr_assert_geq(conn, 0);
	cr_assert_eq(getsockname(conn, (struct sockaddr *)&here, &here_len), 0);
	tally->seen++;
	/* Resolved before it is asked who it is, as a real server has to. */
	if (!resolve(&here, &there, &owner))
		tally->unknown++;
	cr_assert_eq(recv(conn, &ident, sizeof(ident), MSG_WAITALL), sizeof(ident));
	if (owner.cookie &&
	    (owner.owner.tgid != ident.pid || owner.owner.start_ns / tick_ns != ident.start_ticks))
		tally->wrong++;
	return ident.pid;
}

/* A server that is no member asks by the two ends; test_accept.c asks by descriptor. */
Test(owner, connect_and_exit)
{
	struct sockaddr_in addr;
	_cleanup_fd_ int fd = listener(&addr);
	struct tally tally = {};
	struct load load;

	load_start(
		&load, INSIDE,
		"tcp-exit --server 127.0.0.1:%u --count %u --jobs 16 --identify --quiet --timeout 90",
		ntohs(addr.sin_port), CLIENTS);
	for (int i = 0; i < CLIENTS; i++) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };

		cr_assert_eq(poll(&wait, 1, 20000), 1, "%u of %u came", tally.seen, CLIENTS);
		(void)serve_one(fd, &tally);
	}
	cr_assert_eq(load_end(&load), 0);
	cr_expect_eq(tally.unknown, 0, "%u of %u are unknown", tally.unknown, tally.seen);
	cr_expect_eq(tally.wrong, 0, "%u of %u are wrong", tally.wrong, tally.seen);
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

/* A connection of the test's own: in the queue behind all that came before it. */
static void fence(int fd, const struct sockaddr_in *addr, struct tally *before)
{
	_cleanup_fd_ int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ident ident = { 0 };
	struct tally one;

	cr_assert_eq(connect(own, (const struct sockaddr *)addr, sizeof(*addr)), 0);
	cr_assert_eq(send(own, &ident, sizeof(ident), 0), sizeof(ident));
	do {
		one = (struct tally){ 0 };
		ident.pid = serve_one(fd, &one);
		before->seen += one.seen;
		before->wrong += one.wrong;
	} while (ident.pid);
}

#define ATTACHES 10
#define AFTER 100

/*
 * I18: a sandbox is attached while its processes connect every millisecond. What connects
 * after attach has returned is known, all of it, and what connected before is known or not,
 * but never taken for another.
 */
Test(attach, while_processes_connect, .fini = world_down, .timeout = 120)
{
	struct tally before = { 0 }, after = { 0 };
	struct sockaddr_in addr;
	_cleanup_fd_ int fd = listener(&addr);
	struct load load;

	world_make(NULL, false);
	load_start(&load, INSIDE,
		   "tcp-exit --server 127.0.0.1:%u --count 100000 --rate 1000 --jobs 8 --identify "
		   "--quiet --timeout 110",
		   ntohs(addr.sin_port));
	for (int i = 0; i < ATTACHES; i++) {
		(void)serve_one(fd, &before);
		world_attach();
		fence(fd, &addr, &before);
		for (int n = 0; n < AFTER; n++)
			(void)serve_one(fd, &after);
		/* In the window too, no call of a member came before it was known. */
		cr_expect_eq(counter(SL_COUNTER_NO_IDENTITY), 0);
		cr_assert_eq(sl_sandbox_detach(world.set, world.sandbox, NULL), 0);
	}
	cr_expect_eq(after.seen, ATTACHES * AFTER);
	cr_expect_eq(after.unknown, 0, "%u of %u are unknown", after.unknown, after.seen);
	cr_expect_eq(after.wrong, 0, "%u of %u are wrong", after.wrong, after.seen);
	cr_expect_eq(before.wrong, 0, "%u of %u are wrong", before.wrong, before.seen);
	sl_cgroup_kill(world.cgroup);
	(void)load_end(&load);
	load_free(&load);
}

Test(owner, self_connect_has_two_sockets)
{
	struct load load;
	const char *out, *in;
	struct sl_sock a, b;

	load_run(&load, INSIDE, "self-connect --bytes 1234");
	out = fact_next(&load, NULL, "sock");
	in = fact_next(&load, out, "sock");
	cr_assert_not_null(in);
	a = closed_sock(fact_u64(out, "cookie"));
	b = closed_sock(fact_u64(in, "cookie"));
	expect_owner(&a.owner, out, "connecting end");
	expect_owner(&b.owner, in, "accepting end");
	cr_expect_eq(a.bytes_sent, 1234);
	cr_expect_eq(b.bytes_received, 1234);
	cr_expect(b.flags & SL_SOCK_ACCEPTED);
	cr_expect_not(a.flags & SL_SOCK_ACCEPTED);
	expect_owner(&b.peer, out, "the other end of the accepting one");
	cr_expect_neq(a.cookie, b.cookie);
	cr_expect_eq(a.local.port_be, b.remote.port_be);
	cr_expect_eq(b.local.port_be, a.remote.port_be);
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

/* O2: every child says on its own socket line which process it is; the port is the same. */
Test(owner, port_shared_in_turn)
{
	struct load server, load;
	unsigned int port = server_start(&server, "tcp-server --count 1000 --quiet");
	struct sl_sock last = {};
	unsigned int n = 0;

	load_run(&load, INSIDE, "port-share --server 127.0.0.1:%u --bind 127.0.0.1:0 --count 10",
		 port);
	for (const char *line = NULL; (line = fact_next(&load, line, "sock")); n++) {
		struct sl_sock sock = closed_sock(fact_u64(line, "cookie"));

		expect_owner(&sock.owner, line, "owner");
		if (n) {
			cr_expect_eq(sock.local.port_be, last.local.port_be);
			cr_expect_neq(sock.owner.tgid, last.owner.tgid, "they take turns");
		}
		last = sock;
	}
	cr_expect_eq(n, 20);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

Test(owner, passed_on_by_exec)
{
	struct load server, load;
	unsigned int port = server_start(&server, "tcp-server --count 100");
	struct sl_owner opener, user;
	const char *line, *proc;
	struct sl_sock sock;

	load_run(&load, INSIDE, "fork-exec-fd --server 127.0.0.1:%u --bytes 10 --dir %s", port,
		 world.scratch);
	line = fact_next(&load, NULL, "open");
	proc = fact_next(&load, NULL, "sock");
	cr_assert_not_null(line);
	cr_assert_not_null(proc);
	sock = closed_sock(fact_u64(line, "cookie"));
	opener = opener_of(&sock);
	user = user_of(&sock);
	expect_owner(&opener, line, "opener");
	expect_owner(&user, proc, "user");
	cr_expect(sock.flags & SL_SOCK_INHERITED);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

Test(owner, passed_on_by_message)
{
	struct load server, load;
	unsigned int port = server_start(&server, "tcp-server --count 100");
	struct sl_owner opener, user;
	const char *line;
	struct sl_sock sock;

	load_run(&load, INSIDE, "pass-fd --server 127.0.0.1:%u --bytes 10", port);
	line = fact_next(&load, NULL, "open");
	cr_assert_not_null(line);
	sock = closed_sock(fact_u64(line, "cookie"));
	opener = opener_of(&sock);
	expect_owner(&opener, line, "opener, gone by now");
	expect_owner(&sock.owner, line, "owner, gone by now");
	user = user_of(&sock);
	expect_owner(&user, fact_with(&load, "sock", "sent", 10), "who sent");
	cr_expect_eq(sock.bytes_sent, 10);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

/* O4: the opener's pid is used again while the socket lives on. */
Test(owner, opener_with_a_reused_pid)
{
	struct load server, held, reuser;
	unsigned int port = server_start(&server, "tcp-server --fork --count 100");
	const char *line, *other;
	struct sl_owner opener, user;
	struct sl_sock sock, second;

	load_start(&held, INSIDE, "pass-fd --server 127.0.0.1:%u --bytes 10 --hold --timeout 60",
		   port);
	load_await(&held, "open", 2);
	line = fact_next(&held, NULL, "open");
	if (!load_start_as(&reuser, fact_u64(line, "pid"), INSIDE,
			   "tcp-idle --server 127.0.0.1:%u --timeout 60", port))
		cr_skip_test("the opener's pid was taken by another process in the meantime");
	load_await(&reuser, "open", 1);
	other = fact_next(&reuser, NULL, "open");
	cr_assert_eq(fact_u64(line, "pid"), fact_u64(other, "pid"));

	cr_assert(live_sock(fact_u64(line, "cookie"), &sock));
	cr_assert(live_sock(fact_u64(other, "cookie"), &second));
	opener = opener_of(&sock);
	expect_owner(&opener, line, "opener, gone by now");
	expect_owner(&sock.owner, line, "owner, gone by now");
	user = user_of(&sock);
	expect_owner(&user, fact_next(&held, line, "open"), "who has it now");
	expect_owner(&second.owner, other, "who has the pid now");
	cr_expect_neq(sock.owner.start_ns, second.owner.start_ns);
	cr_expect_eq(load_end(&held), 0);
	cr_expect_eq(load_end(&reuser), 0);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&held);
	load_free(&reuser);
}
