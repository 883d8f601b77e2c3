/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who has an open socket: the holders beside the owner, and sockets older than the sandbox. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "guard/guard.h"
#include "system/expect.h"
#include "system/guarded.h"
#include "system/member.h"

TestSuite(holder, .fini = world_down, .timeout = 60);

struct holders {
	uint64_t cookie;
	struct sl_sock sock;
	struct sl_iter_sock by[8];
	unsigned int n;
};

static int add_holder(const struct sl_sock *sock, const struct sl_iter_sock *holder, void *arg)
{
	struct holders *holders = arg;

	if (sock->cookie != holders->cookie)
		return 0;
	cr_assert_lt(holders->n, 8);
	holders->sock = *sock;
	holders->by[holders->n++] = *holder;
	return 0;
}

static struct holders holders_of(uint64_t cookie)
{
	struct holders holders = { .cookie = cookie };

	cr_assert_eq(sl_holders_each(world.set, add_holder, &holders), 0);
	return holders;
}

/* The holder that is the process of the line, with its executable; fails when there is none. */
static void expect_holder(const struct holders *holders, const char *line, const char *exe)
{
	for (unsigned int i = 0; i < holders->n; i++) {
		const struct sl_iter_sock *by = &holders->by[i];
		struct sl_owner owner = { .tgid = by->holder.tgid,
					  .start_ns = by->holder.start_ns };
		struct sl_exe row;

		if (!owner_is(&owner, line))
			continue;
		cr_expect_eq(by->holder_sandbox, world.sandbox);
		exe_path(by->holder_exe, &row);
		cr_expect_str_eq(row.path, exe);
		return;
	}
	cr_expect_fail("no holder is the process of %.300s", line);
}

static void start_two_holders(struct load *load, unsigned int port)
{
	load_start(load, INSIDE,
		   "fork-exec-fd --server 127.0.0.1:%u --bytes 10 --dir %s --hold --timeout 50",
		   port, world.scratch);
	load_await(load, "open", 2);
}

/* The opener, which only waits, and its child, which is another program. */
static struct holders expect_two_holders(const struct load *load)
{
	const char *opener = fact_next(load, NULL, "open"), *child;
	struct holders holders;
	char copy[128];

	child = fact_next(load, opener, "open");
	cr_assert_eq(fact_u64(opener, "cookie"), fact_u64(child, "cookie"));
	cr_assert_neq(fact_u64(opener, "pid"), fact_u64(child, "pid"));
	snprintf(copy, sizeof(copy), "%s/sl-load-fd", world.scratch);
	holders = holders_of(fact_u64(opener, "cookie"));
	cr_expect_eq(holders.n, 2, "%u descriptors", holders.n);
	expect_holder(&holders, opener, getenv("SL_LOAD"));
	expect_holder(&holders, child, copy);
	return holders;
}

/* O3 */
Test(holder, opener_and_who_inherited_it, .init = world_up)
{
	struct load server, load;
	unsigned int port = server_start(&server, "tcp-server --count 100");
	struct sl_owner owner;
	struct holders holders;
	const char *opener;

	start_two_holders(&load, port);
	opener = fact_next(&load, NULL, "open");
	holders = expect_two_holders(&load);
	expect_owner(&holders.sock.owner, opener, "owner");
	owner = opener_of(&holders.sock);
	expect_owner(&owner, opener, "opener");
	cr_expect(holders.sock.flags & SL_SOCK_INHERITED);
	owner = user_of(&holders.sock);
	expect_owner(&owner, fact_next(&load, opener, "open"), "user");
	cr_expect_eq(load_end(&load), 0);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

static unsigned int count_open(const struct load *load, unsigned int flags)
{
	unsigned int n = 0;

	for (const char *line = NULL; (line = fact_next(load, line, "open")); n++) {
		struct holders holders = holders_of(fact_u64(line, "cookie"));

		cr_expect_eq(holders.n, 1);
		cr_expect_eq(holders.sock.flags & flags, flags, "flags %#x", holders.sock.flags);
		expect_owner(&holders.sock.owner, line, "owner, of whom there is only one");
		expect_holder(&holders, line, getenv("SL_LOAD"));
	}
	return n;
}

/* O13 */
Test(holder, sockets_from_before_the_sandbox)
{
	struct load server, inside, idle, datagrams, load;
	/* Made in the sandbox's cgroup, so not foreign. */
	const unsigned int before = SL_SOCK_PREEXISTING;
	const char *listen;
	struct holders holders;
	unsigned int port;

	world_make(NULL, false);
	port = server_start(&server, "tcp-server --fork --count 100");
	server_start_at(&inside, INSIDE, "tcp-server --no-accept", "127.0.0.1:0");
	load_start(&idle, INSIDE, "tcp-idle --server 127.0.0.1:%u --count 3 --timeout 50", port);
	load_await(&idle, "open", 3);
	load_start(&datagrams, INSIDE, "udp-send --server 127.0.0.1:9 --hold --timeout 50");
	load_await(&datagrams, "open", 1);
	start_two_holders(&load, port);
	world_attach();

	cr_expect_eq(count_open(&idle, before | SL_SOCK_ESTABLISHED), 3);
	cr_expect_eq(count_open(&datagrams, before), 1);
	holders = expect_two_holders(&load);
	cr_expect_eq(holders.sock.flags & before, before);
	listen = fact_next(&inside, NULL, "listen");
	holders = holders_of(fact_u64(listen, "cookie"));
	cr_expect_eq(holders.n, 1);
	cr_expect_eq(holders.sock.flags & (before | SL_SOCK_LISTENING), before | SL_SOCK_LISTENING);
	cr_expect_not(holders.sock.flags & SL_SOCK_FOREIGN);
	expect_owner(&holders.sock.owner, listen, "listener");
	/* Three idle ones, one of datagrams, one that two hold, the listener. */
	expect_conserved(6);

	cr_expect_eq(load_end(&idle), 0);
	cr_expect_eq(load_end(&datagrams), 0);
	cr_expect_eq(load_end(&load), 0);
	cr_expect_eq(load_end(&inside), 0);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&inside);
	load_free(&idle);
	load_free(&datagrams);
	load_free(&load);
}

/* Two sockets that were made outside, and what sluice says of them once they are used. */
struct moved {
	unsigned int tcp_port;
	struct sl_sock tcp, udp;
};

static void move_and_send(struct member *self)
{
	struct moved *moved = self->shared;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(moved->tcp_port) };
	_cleanup_fd_ int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_cleanup_fd_ int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	member_need(tcp >= 0 && udp >= 0, "socket");
	member_need(!connect(tcp, (struct sockaddr *)&to, sizeof(to)), "connect");
	member_say(self);
	member_wait(self);
	member_need(send(tcp, "hello", 5, MSG_NOSIGNAL) == 5, "send");
	to.sin_port = htons(9);
	member_need(sendto(udp, "hi", 2, 0, (struct sockaddr *)&to, sizeof(to)) == 2, "sendto");
	member_need(!sl_sock_by_fd(world.set, tcp, &moved->tcp), "no record of the TCP socket");
	member_need(!sl_sock_by_fd(world.set, udp, &moved->udp), "no record of the UDP socket");
	member_say(self);
	member_wait(self);
}

/* O14: its cgroup is not the user's, so no cgroup hook sees it; that is flagged. */
Test(holder, socket_older_than_membership, .init = world_up)
{
	struct moved *moved = member_shared(sizeof(*moved));
	struct load server;
	struct member member;

	moved->tcp_port = server_start(&server, "tcp-server --count 1");
	member_start(&member, OUTSIDE, move_and_send, moved);
	member_await(&member);
	member_move_in(&member);
	member_go(&member);
	member_await(&member);
	expect_owner_pid(&moved->tcp.owner, member.pid, "owner of the TCP socket");
	expect_owner_pid(&moved->udp.owner, member.pid, "owner of the UDP socket");
	cr_expect(moved->tcp.flags & SL_SOCK_FOREIGN);
	cr_expect(moved->udp.flags & SL_SOCK_FOREIGN);
	cr_expect_eq(counter(SL_COUNTER_SOCK_UNSEEN), 2);
	cr_expect_eq(holders_of(moved->tcp.cookie).n, 1);
	cr_expect_eq(holders_of(moved->udp.cookie).n, 1);
	member_go(&member);
	member_end(&member);
	/* Nor does one see their end: they stay counted as open. */
	expect_conserved(2);
	load_end(&server);
	load_free(&server);
}

/* Two listeners of a member: one made outside, the other after it came in. */
struct listeners {
	unsigned int outside, inside;
};

static int listen_on(unsigned int *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	member_need(fd >= 0 && !bind(fd, (struct sockaddr *)&at, len) && !listen(fd, 8) &&
			    !getsockname(fd, (struct sockaddr *)&at, &len),
		    "listen");
	*port = ntohs(at.sin_port);
	return fd;
}

static void listen_twice(struct member *self)
{
	struct listeners *listeners = self->shared;
	_cleanup_fd_ int outside = listen_on(&listeners->outside), inside = -1;

	member_say(self);
	member_wait(self);
	inside = listen_on(&listeners->inside);
	member_need(outside >= 0 && inside >= 0, "listeners");
	member_say(self);
	member_wait(self);
}

static void deny_all(void)
{
	static const char text[] = "version: 1\n";
	const struct sl_guard_options options = { .mode = SL_GUARD_ENFORCE };
	struct sl_compiled *compiled = NULL;
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };
	__u32 id;

	cr_assert_eq(sl_policy_load(&policy, text, strlen(text), "none", &err), 0);
	cr_assert_eq(sl_compiled_new(&compiled, policy, &err), 0);
	cr_assert_eq(sl_guard_load(world.set, world.sandbox, compiled, &options, &id, &err), 0,
		     "%s", err.text);
	sl_compiled_free(&compiled);
	sl_policy_free(&policy);
}

static const char *connect_errno(struct load *load, unsigned int port)
{
	load_start(load, INSIDE, "do socket=tcp connect=127.0.0.1:%u", port);
	load_end(load);
	return did_errno(load, "connect", 0);
}

/* Whoever hands a member a listener must not make it the sandbox's own loopback. */
Test(holder, listener_from_outside_is_no_own_loopback)
{
	struct listeners *listeners = member_shared(sizeof(*listeners));
	struct member member;
	struct load load;

	world_make(NULL, false);
	member_start(&member, OUTSIDE, listen_twice, listeners);
	member_await(&member);
	member_move_in(&member);
	member_go(&member);
	member_await(&member);
	world_attach();
	deny_all();
	cr_expect_str_eq(connect_errno(&load, listeners->inside), "0");
	load_free(&load);
	cr_expect_str_eq(connect_errno(&load, listeners->outside), "EACCES");
	load_free(&load);
	member_go(&member);
	member_end(&member);
}
