/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that fail: why, how many bytes (none), and that nothing of them stays. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "socket/sock_view.h"
#include "system/scale.h"
#include "system/expect.h"
#include "system/member.h"

TestSuite(failure, .init = world_up, .fini = world_down, .timeout = 120);

static void expect_failed(const struct sl_sock *sock, enum sl_view_state state, int error)
{
	cr_expect_str_eq(sl_view_state_name(sl_view_sock_state(sock)), sl_view_state_name(state));
	cr_expect_eq(sock->error, error, "%s", strerror(sock->error));
	cr_expect_not(sock->flags & SL_SOCK_ESTABLISHED);
	cr_expect_eq(sock->bytes_sent, 0, "%llu sent", (unsigned long long)sock->bytes_sent);
	cr_expect_eq(sock->bytes_acked, 0);
	cr_expect_eq(sock->bytes_received, 0);
}

static void fails(const char *kind, enum sl_view_state state, int error)
{
	struct load load;
	unsigned int n = 0;

	load_run(&load, INSIDE, "tcp-fail --kind %s --count 3", kind);
	for (const char *line = NULL; (line = fact_next(&load, line, "sock")); n++) {
		struct sl_sock sock = closed_sock(fact_u64(line, "cookie"));

		expect_owner(&sock.owner, line, "owner");
		expect_failed(&sock, state, error);
	}
	cr_expect_eq(n, 3);
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}

Test(failure, refused)
{
	fails("refused", SL_VIEW_REFUSED, ECONNREFUSED);
}

/* No packet leaves and no error is reported: only the caller of connect() knows why. */
Test(failure, unreachable_by_the_routes)
{
	fails("unreachable", SL_VIEW_FAILED, 0);
}

/* Given up by the application while SYNs are under way. */
Test(failure, given_up)
{
	fails("timeout-nonblock", SL_VIEW_ABORTED, 0);
}

/* A connect that fails, and the way in which the application learns why (and clears it). */
struct attempt {
	bool nonblock, mptcp;
	bool give_up; /* connect(AF_UNSPEC) instead of waiting for an answer */
	int error;    /* what it must learn */
	uint64_t cookie;
	struct sockaddr_in to;
	in_port_t then_be; /* not 0: connects once more, to a port that answers, and sends */
};

static void wait_error(int fd, int expected)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	member_need(errno == EINPROGRESS, "connect");
	member_need(poll(&wait, 1, 20000) == 1, "poll");
	member_need(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), "SO_ERROR");
	errno = error;
	member_need(error == expected, "expected error");
}

static void attempt(struct member *self)
{
	struct attempt *a = self->shared;
	int type = SOCK_STREAM | SOCK_CLOEXEC | (a->nonblock ? SOCK_NONBLOCK : 0);
	_cleanup_fd_ int fd = socket(AF_INET, type, a->mptcp ? IPPROTO_MPTCP : 0);
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	int syns = 1; /* repeated: 3 s in all */

	member_need(fd >= 0, "socket");
	a->cookie = member_cookie(fd);
	member_need(a->mptcp || !setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &syns, sizeof(syns)),
		    "TCP_SYNCNT");
	member_need(connect(fd, (struct sockaddr *)&a->to, sizeof(a->to)) < 0, "refusal");
	if (a->give_up)
		member_need(!connect(fd, &unspec, sizeof(unspec)), "connect(AF_UNSPEC)");
	else if (a->nonblock)
		wait_error(fd, a->error);
	else
		member_need(errno == a->error, "expected error");
	if (a->then_be) {
		a->to.sin_port = a->then_be;
		member_need(!connect(fd, (struct sockaddr *)&a->to, sizeof(a->to)), "connect");
		member_need(send(fd, "hello", 5, MSG_NOSIGNAL) == 5, "send");
	}
}

static struct sl_sock attempt_run(struct attempt how, unsigned int port)
{
	struct attempt *a = member_shared(sizeof(*a));
	struct member member;

	*a = how;
	a->to.sin_family = AF_INET;
	a->to.sin_port = htons(port);
	a->to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	member_start(&member, INSIDE, attempt, a);
	member_end(&member);
	return closed_sock(a->cookie);
}

/* Nobody listens there. */
#define REFUSING_PORT 1

Test(failure, refused_and_asked_by_so_error)
{
	struct attempt how = { .nonblock = true, .error = ECONNREFUSED };
	struct sl_sock sock = attempt_run(how, REFUSING_PORT);

	expect_failed(&sock, SL_VIEW_REFUSED, ECONNREFUSED);
	expect_conserved(0);
	expect_no_faults();
}

Test(failure, refused_mptcp)
{
	struct attempt how = { .mptcp = true, .error = ECONNREFUSED };
	struct sl_sock sock = attempt_run(how, REFUSING_PORT);

	expect_failed(&sock, SL_VIEW_REFUSED, ECONNREFUSED);
	expect_conserved(0);
	expect_no_faults();
}

/* Nothing of the first try sticks to the connection that came about. */
Test(failure, refused_then_connected)
{
	struct attempt how = { .error = ECONNREFUSED };
	struct load server;
	struct sl_sock sock;

	how.then_be = htons(server_start(&server, "tcp-server --count 1"));
	sock = attempt_run(how, REFUSING_PORT);
	cr_expect_str_eq(sl_view_state_name(sl_view_sock_state(&sock)), "closed");
	cr_expect_eq(sock.error, 0, "%s", strerror(sock.error));
	cr_expect_eq(sock.generation, 1);
	cr_expect_eq(sock.bytes_sent, 5);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
}

/* A listener with a full queue drops SYNs. */
static unsigned int silent_port(int *listener, int *first)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	*listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(*listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(*listener, 0), 0);
	cr_assert_eq(getsockname(*listener, (struct sockaddr *)&addr, &len), 0);
	cr_assert_eq(connect(*first, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return ntohs(addr.sin_port);
}

Test(failure, timed_out)
{
	_cleanup_fd_ int listener = -1, first = -1;
	struct attempt how = { .error = ETIMEDOUT };
	struct sl_sock sock = attempt_run(how, silent_port(&listener, &first));

	expect_failed(&sock, SL_VIEW_TIMED_OUT, ETIMEDOUT);
	expect_conserved(0);
	expect_no_faults();
}

Test(failure, disconnected_before_the_answer)
{
	_cleanup_fd_ int listener = -1, first = -1;
	struct attempt how = { .nonblock = true, .give_up = true };
	struct sl_sock sock = attempt_run(how, silent_port(&listener, &first));

	/* tcp_disconnect() leaves a reset in sk_err, which nobody sent. */
	expect_failed(&sock, SL_VIEW_ABORTED, ECONNRESET);
	expect_conserved(0);
	expect_no_faults();
}

/* O11: a connect that fails leaves nothing behind. */
static void many(const char *kind)
{
	struct load load;

	for (unsigned int round = 1; round <= 2; round++) {
		load_run(&load, INSIDE, "tcp-fail --kind %s --count %u --quiet --timeout 100", kind,
			 SCALED(25000u));
		load_free(&load);
		expect_conserved(0);
		cr_expect_geq(counter(SL_COUNTER_SOCK_CREATED), round * SCALED(25000));
		cr_expect_eq(sl_tuples_count(world.set), 0);
		cr_expect_eq(map_rows(SL_MAP_SOCKS_OVER), 0);
		cr_expect_eq(live_socks(), 0);
	}
	expect_no_faults();
}

Test(failure, many_refused)
{
	many("refused");
}

Test(failure, many_unreachable)
{
	many("unreachable");
}
