/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What came in went out again: nothing is lost, leaked or counted twice. */
#include <criterion/criterion.h>

#include "kernel/ring.h"
#include "system/expect.h"

TestSuite(conserve, .fini = world_down, .timeout = 120);

Test(conserve, sockets_tuples_processes, .init = world_up)
{
	struct load server, idle, churn, exits;
	unsigned int port = server_start(&server, "tcp-server --quiet --fork --count 10000");
	unsigned int live;

	load_start(&idle, INSIDE, "tcp-idle --server 127.0.0.1:%u --count 20 --timeout 90", port);
	load_await(&idle, "open", 20);
	load_run(&churn, INSIDE, "tcp-churn --server 127.0.0.1:%u --count 500 --rst --quiet", port);
	load_run(&exits, INSIDE, "tcp-exit --server 127.0.0.1:%u --count 100 --jobs 4 --quiet",
		 port);
	live = live_socks();
	cr_expect_eq(live, 20);
	expect_conserved(live);
	cr_expect_geq(counter(SL_COUNTER_SOCK_CREATED), 620);

	cr_expect_eq(load_end(&idle), 0);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&idle);
	load_free(&churn);
	load_free(&exits);
}

static void count_event(const struct sl_event *event, void *arg)
{
	(void)event;
	++*(uint64_t *)arg;
}

static void expect_events(unsigned int ring_bytes, bool lossy)
{
	struct sl_set_options options = { .ring_bytes = ring_bytes, .events = SL_EVENT_ALL };
	unsigned long long by_kind[SL_EVENT_KIND_MAX] = {};
	struct sl_ring *ring = NULL;
	struct load server, churn;
	struct sl_counters now;
	unsigned long long lost;
	uint64_t got = 0;
	unsigned int port;

	world_make(&options, true);
	cr_assert_eq(sl_ring_new(&ring, world.set, count_event, &got, NULL), 0);
	port = server_start(&server, "tcp-server --quiet --fork --count 10000");
	load_run(&churn, INSIDE, "tcp-churn --server 127.0.0.1:%u --count 300 --rst --quiet", port);
	expect_conserved(0);
	cr_assert_geq(sl_ring_drain(ring), 0);
	lost = sl_ring_lost(ring, by_kind);
	now = counters();
	cr_expect_eq(got, now.n[SL_COUNTER_EVENT_SUBMITTED], "%llu read, %llu submitted",
		     (unsigned long long)got,
		     (unsigned long long)now.n[SL_COUNTER_EVENT_SUBMITTED]);
	cr_expect_eq(lost, now.n[SL_COUNTER_EVENT_LOST]);
	if (lossy)
		cr_expect_gt(lost, 0);
	else
		expect_no_faults();
	/* Each connection opens, connects, establishes and closes: each event was tried. */
	cr_expect_geq(got + lost, 300 * 4, "%llu tried", (unsigned long long)(got + lost));
	for (int i = 0; i < SL_EVENT_KIND_MAX; i++)
		lost -= by_kind[i];
	cr_expect_eq(lost, 0, "losses by kind do not add up");
	sl_ring_free(&ring);
	load_end(&server);
	load_free(&server);
	load_free(&churn);
}

Test(conserve, events_all_read)
{
	expect_events(8 << 20, false);
}

Test(conserve, events_lost_are_counted)
{
	expect_events(16384, true);
}

/*
 * Maps too small for what runs: what found no room is counted as that and as nothing else,
 * and processes, sockets and tuples are recorded all the same.
 */
Test(conserve, full_identity_maps)
{
	static const struct sl_set_options options = { .max_exes = 8, .max_lineages = 8 };
	struct load server, load;
	unsigned int port, n = 0;

	world_make(&options, true);
	port = server_start(&server, "tcp-server --quiet --count 100");
	load_run(&load, INSIDE, "exec-chain a b c d e f g h i j --dir %s --server 127.0.0.1:%u",
		 world.scratch, port);
	cr_expect_eq(map_rows(SL_MAP_EXES), 8);
	cr_expect_eq(map_rows(SL_MAP_LINEAGES), 8);
	cr_expect_gt(counter(SL_COUNTER_EXES_FULL), 0);
	cr_expect_gt(counter(SL_COUNTER_LINEAGES_FULL), 0);
	cr_expect_eq(counter(SL_COUNTER_MAP_NOMEM), 0);
	cr_expect_eq(counter(SL_COUNTER_MAP_BUSY), 0);
	for (const char *line = NULL; (line = fact_next(&load, line, "sock")); n++) {
		struct sl_sock sock = closed_sock(fact_u64(line, "cookie"));

		expect_owner(&sock.owner, line, "owner");
		cr_expect_eq(sock.owner.exe, 0, "unknown, not another one");
	}
	cr_expect_eq(n, 1);
	expect_conserved(0);
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

Test(conserve, full_map_of_processes)
{
	static const struct sl_set_options options = { .max_procs = 4 };
	struct load server, load;
	unsigned int n = 0;

	world_make(&options, true);
	load_start(&load, INSIDE, "tcp-exit --server 127.0.0.1:%u --count 50 --jobs 16 --identify",
		   server_start(&server, "tcp-server --fork --count 100"));
	cr_expect_eq(load_end(&load), 0);
	cr_expect_gt(counter(SL_COUNTER_PROCS_FULL), 0);
	cr_expect_eq(counter(SL_COUNTER_MAP_NOMEM), 0);
	cr_expect_eq(counter(SL_COUNTER_MAP_BUSY), 0);
	/* The storage of a task is what socket calls read, and it has no such limit. */
	cr_expect_eq(counter(SL_COUNTER_NO_IDENTITY), 0);
	cr_expect_eq(counter(SL_COUNTER_SOCK_CREATED), 50);
	for (const char *line = NULL; (line = fact_next(&load, line, "child")); n++)
		(void)closed_by(fact_u64(line, "pid"), 0);
	cr_expect_eq(n, 50);
	expect_conserved(0);
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

#define SLOTS 64

/* O10: what others open and close does not push an idle connection out. */
Test(conserve, idle_row_outlives_churn)
{
	struct sl_set_options options = { .max_closed = SLOTS };
	struct sl_sock owner;
	struct load server, idle, churn;
	const char *line;
	struct sl_sock sock;
	unsigned int port;

	world_make(&options, true);
	port = server_start(&server, "tcp-server --quiet --fork --count 10000");
	load_start(&idle, INSIDE, "tcp-idle --server 127.0.0.1:%u --timeout 90", port);
	load_await(&idle, "open", 1);
	line = fact_next(&idle, NULL, "open");
	load_run(&churn, INSIDE, "tcp-churn --server 127.0.0.1:%u --count %u --rst --quiet", port,
		 10 * SLOTS);
	cr_assert(live_sock(fact_u64(line, "cookie"), &sock));
	expect_owner(&sock.owner, line, "owner");
	cr_assert_eq(sl_tuple_resolve(world.set, &sock.local, &sock.remote, sock.netns_cookie,
				      &owner),
		     0);
	cr_expect_eq(owner.cookie, sock.cookie);
	expect_owner(&owner.owner, line, "owner by tuple");
	cr_expect_eq(sl_tuples_count(world.set), 1);
	cr_expect_eq(counter(SL_COUNTER_TUPLE_CREATED), 10 * SLOTS + 1);
	expect_conserved(1);
	cr_expect_eq(load_end(&idle), 0);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&idle);
	load_free(&churn);
}

/*
 * More open sockets than there is room for: those that were first stay, what found no room
 * is counted, and its connection works all the same.
 */
Test(conserve, full_maps_of_sockets)
{
	struct sl_set_options options = { .max_closed = SLOTS, .max_socks = 8 };
	struct load server, idle;
	unsigned int port, known = 0;
	struct sl_counters now;
	struct sl_sock sock;

	world_make(&options, true);
	port = server_start(&server, "tcp-server --quiet --fork --count 10000");
	load_start(&idle, INSIDE, "tcp-idle --server 127.0.0.1:%u --count %u --timeout 90", port,
		   4 * SLOTS);
	load_await(&idle, "open", 4 * SLOTS);
	now = counters();
	cr_expect_eq(now.n[SL_COUNTER_SOCK_OVERFLOW], 8 + now.n[SL_COUNTER_SOCKS_FULL]);
	cr_expect_geq(now.n[SL_COUNTER_SOCKS_FULL], 3 * SLOTS - 8);
	for (const char *line = NULL; (line = fact_next(&idle, line, "open"));) {
		/* One whose creation found no room is adopted when it connects. */
		if (!live_sock(fact_u64(line, "cookie"), &sock))
			continue;
		expect_owner(&sock.owner, line, "owner");
		known++;
	}
	cr_expect_eq(known, 4 * SLOTS);
	expect_conserved(4 * SLOTS);
	cr_expect_eq(load_end(&idle), 0);
	expect_conserved(0);
	load_end(&server);
	load_free(&server);
	load_free(&idle);
}
