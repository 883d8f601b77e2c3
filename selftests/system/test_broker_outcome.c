/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * N4, N7, N8: an errno says nothing of where it came from, and a call that goes on is the
 * kernel's alone. A listener whose queue is full is the black hole: it drops each SYN.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/guarded.h"
#include "system/held.h"

#define REFUSED 1 /* a port where nobody listens */

TestSuite(broker_outcome, .fini = held_down, .timeout = 60);

static void deny_the_port(const struct sl_call *call, struct sl_answer *answer)
{
	answer->go_on = call->connect.to.port_be != htons(marks->port);
	answer->code = ECONNREFUSED;
}

/* The same errno from the kernel, twice, and from the decision, once. */
static int refused_three_times(void *arg)
{
	(void)arg;
	return held_connect(REFUSED) != ECONNREFUSED || held_connect(marks->port) != ECONNREFUSED ||
	       held_connect(REFUSED) != ECONNREFUSED;
}

Test(broker_outcome, origin_not_errno)
{
	_cleanup_fd_ int server = -1;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held.decide = deny_the_port;
	held_up(NULL);
	cr_expect_eq(held_call(&hold_connect, refused_three_times, NULL), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_DENIED), 1);
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 2);
	cr_expect_eq(held_accepted(server), 0);
}

/* A socket that listens on 127.0.0.1 and has no room for one more. */
static int black_hole(unsigned int *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(fd, 0), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*port = ntohs(addr.sin_port);
	cr_assert_eq(held_connect(*port), 0);
	return fd;
}

/* connect() on a non-blocking socket; 0 when it goes on, and nobody has answered. */
static int connect_non_blocking(void *arg)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(marks->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd done = { .fd = fd, .events = POLLOUT };

	(void)arg;
	if (fd < 0 || !connect(fd, (struct sockaddr *)&addr, sizeof(addr)) || errno != EINPROGRESS)
		return 1;
	return poll(&done, 1, 0) ? 2 : 0;
}

Test(broker_outcome, non_blocking_into_a_black_hole)
{
	_cleanup_fd_ int hole = -1;

	marks = held_share(sizeof(*marks));
	hole = black_hole(&marks->port);
	cr_assert_geq(hole, 0);
	/* Without the hold it is the same: that is a black hole. */
	cr_assert_eq(connect_non_blocking(NULL), 0);
	held.decide = NULL;
	held_up(NULL);
	cr_expect_eq(held_call(&hold_connect, connect_non_blocking, NULL), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 1);
}

/* N8: who hangs in the kernel's connect() is out of the broker's hand. */
Test(broker_outcome, blocked_into_a_black_hole)
{
	static const struct sl_broker_options one = { .threads = 1, .per_listener = 1 };
	_cleanup_fd_ int hole = -1, server = -1;
	pid_t blocked;

	marks = held_share(sizeof(*marks));
	hole = black_hole(&marks->port);
	cr_assert_geq(hole, 0);
	held.decide = NULL;
	held_up(&one);
	blocked = held_run(1, &hold_connect, held_port_connect, NULL);
	while (!held_count(SL_BROKER_CONTINUED))
		sched_yield();
	server = held_server(&marks->port);
	cr_expect_eq(held_wait(held_run(2, &hold_connect, held_port_connect, NULL)), 0);
	cr_expect_eq(held_accepted(server), 1);
	kill(blocked, SIGKILL);
	cr_expect_eq(held_wait(blocked), 128 + SIGKILL);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 2);
}

/* --- the guard's own denials --- */

TestSuite(outcome, .init = guarded_up, .fini = guarded_down, .timeout = 60);

struct tally {
	uint64_t count;
	unsigned int port;
};

static int add_decision(const struct sl_decision_key *key, const struct sl_decision_row *row,
			void *arg)
{
	struct tally *tally = arg;

	tally->count += row->count;
	tally->port = ntohs(key->remote.port_be);
	return 0;
}

/* N4: the policy's errno is what the programs' own failures have as well. */
Test(outcome, errno_of_the_policy)
{
	struct tally tally = { 0 };
	struct sl_counters counted;
	struct load load;

	guarded.deny_errno = ECONNREFUSED;
	guarded_load_more("  refused:\n"
			  "    endpoints: [{ cidr: 127.0.0.1/32, port: 1, allow_reserved: true }]\n"
			  "    binaries: [{ path: /** }]\n");
	load_run(&load, INSIDE,
		 "do socket=tcp connect=127.0.0.1:1 connect=%s connect=127.0.0.1:1 connect=%s",
		 guarded.shut[OTHER_PORT].text, guarded.open.text);
	for (unsigned int i = 0; i < 3; i++)
		cr_expect_str_eq(did_errno(&load, "connect", i), "ECONNREFUSED");
	cr_expect_str_eq(did_errno(&load, "connect", 3), "0");
	cr_expect_eq(guarded_leaks(), 0);
	cr_expect_eq(sink_take(&guarded.open), 1);
	cr_assert_eq(sl_decisions_each(world.set, world.sandbox, add_decision, &tally), 0);
	cr_expect_eq(tally.count, 1);
	cr_expect_eq(tally.port, guarded.shut[OTHER_PORT].port);
	cr_assert_eq(sl_counters_read(world.set, world.sandbox, &counted), 0);
	cr_expect_eq(counted.n[SL_COUNTER_DENIED], 1);
	load_free(&load);
}
