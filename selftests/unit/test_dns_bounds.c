/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is bounded in policy DNS, and who has how much of it. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dns/server_private.h"
#include "dns_world.h"

static struct dns_world world;

static void start(void)
{
	dns_world_four(&world);
}

static void stop(void)
{
	dns_world_stop(&world);
}

TestSuite(dns_bounds, .init = start, .fini = stop, .timeout = 60);

static void be(uint32_t tgid)
{
	world.who = (struct sl_dns_who){ .known = true, .tgid = tgid, .start_ns = 6 };
}

/* One question for a name of its own, or for `name`. */
static void ask_as(int fd, unsigned int number, const char *name)
{
	uint8_t wire[512];
	char own[32];
	size_t size;

	snprintf(own, sizeof(own), "n%u.test", number);
	size = dns_world_query(&(struct dns_ask){ .name = name ?: own, .type = LDNS_RR_TYPE_A },
			       (uint16_t)number, wire, sizeof(wire));
	dns_world_send(fd, false, wire, size);
	sl_dns_run(world.dns);
}

static void expect_answers(int fd, unsigned int count, ldns_pkt_rcode rcode)
{
	for (unsigned int i = 0; i < count; i++) {
		ldns_pkt *reply = dns_world_receive(&world, fd, false);

		cr_expect_eq(ldns_pkt_get_rcode(reply), rcode, "answer %u of %u", i, count);
		ldns_pkt_free(reply);
	}
}

/* As npm and dig do it: nothing of a burst is refused, it takes its time. */
Test(dns_bounds, a_burst_of_one_socket_is_answered_whole)
{
	const unsigned int count = SL_DNS_INFLIGHT_PROCESS + SL_DNS_QUEUE_PROCESS;
	int fd = dns_world_client(&world, false, false);

	be(5);
	world.fakes[0].hold = true;
	for (unsigned int i = 0; i < count; i++)
		ask_as(fd, i, NULL);
	cr_expect_eq(sl_dns_waiting(world.dns), count);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_QUEUED), SL_DNS_QUEUE_PROCESS);
	cr_expect_eq(sl_resolver_count(world.resolver, SL_RESOLVER_COUNT_TRIES),
		     SL_DNS_INFLIGHT_PROCESS);
	/* What it sends again meanwhile takes no second place. */
	ask_as(fd, 0, NULL);
	ask_as(fd, count - 1, NULL);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_REPEATED), 2);
	world.fakes[0].hold = false;
	expect_answers(fd, count, LDNS_RCODE_NXDOMAIN);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LIMITED), 0);
	cr_expect_eq(sl_dns_waiting(world.dns), 0);
	close(fd);
}

Test(dns_bounds, what_the_kernel_drops_is_counted)
{
	const unsigned int count = 20000; /* 15 MiB, of 8 */
	int fd = dns_world_client(&world, false, false);
	uint8_t wire[512];
	size_t size =
		dns_world_query(&(struct dns_ask){ .name = "four.test", .type = LDNS_RR_TYPE_A }, 7,
				wire, sizeof(wire));
	uint64_t seen;

	for (unsigned int i = 0; i < count; i++)
		dns_world_send(fd, false, wire, size);
	do {
		seen = sl_dns_count(world.dns, SL_DNS_COUNT_UDP);
		sl_dns_run(world.dns);
	} while (sl_dns_count(world.dns, SL_DNS_COUNT_UDP) > seen);
	cr_expect_gt(sl_dns_count(world.dns, SL_DNS_COUNT_LOST), 0);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_UDP) +
			     sl_dns_count(world.dns, SL_DNS_COUNT_LOST),
		     count);
	close(fd);
}

Test(dns_bounds, equal_questions_are_one_upstream)
{
	int fd = dns_world_client(&world, false, false);

	be(5);
	world.fakes[0].hold = true;
	for (unsigned int i = 0; i < SL_DNS_INFLIGHT_PROCESS + 50; i++)
		ask_as(fd, i, "four.test");
	world.fakes[0].hold = false;
	expect_answers(fd, SL_DNS_INFLIGHT_PROCESS + 50, LDNS_RCODE_NOERROR);
	cr_expect_eq(world.fakes[0].udp_asked, 1);
	close(fd);
}

static void fill(uint32_t tgid, int fd)
{
	be(tgid);
	for (unsigned int i = 0; i < SL_DNS_INFLIGHT_PROCESS + SL_DNS_QUEUE_PROCESS + 7; i++)
		ask_as(fd, tgid * 2000 + i, NULL);
}

Test(dns_bounds, what_is_too_much_of_a_process_is_refused_and_no_other_waits_for_it)
{
	int greedy = dns_world_client(&world, false, false);
	int other = dns_world_client(&world, false, false);
	uint64_t tries;

	world.fakes[0].hold = true;
	fill(5, greedy);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LIMITED), 7);
	expect_answers(greedy, 7, LDNS_RCODE_SERVFAIL);
	tries = sl_resolver_count(world.resolver, SL_RESOLVER_COUNT_TRIES);
	be(7);
	ask_as(other, 1, NULL);
	cr_expect_eq(sl_resolver_count(world.resolver, SL_RESOLVER_COUNT_TRIES), tries + 1);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LIMITED), 7);
	world.fakes[0].hold = false;
	expect_answers(other, 1, LDNS_RCODE_NXDOMAIN);
	/* The rest is that process', and what is in the cache waits for nobody. */
	be(5);
	dns_world_expect_four(&world);
	close(greedy);
	close(other);
}

/* However many there are, half of what is free is left for the next one. */
Test(dns_bounds, many_processes_leave_room_for_one_more)
{
	int fd = dns_world_client(&world, false, false);
	uint64_t tries, limited;

	world.fakes[0].hold = true;
	for (uint32_t tgid = 1; tgid <= 12; tgid++)
		fill(tgid, fd);
	tries = sl_resolver_count(world.resolver, SL_RESOLVER_COUNT_TRIES);
	limited = sl_dns_outcomes(world.dns, SL_DNS_LIMITED);
	cr_expect_lt(tries, SL_DNS_INFLIGHT);
	cr_expect_lt(sl_dns_waiting(world.dns), SL_DNS_INFLIGHT + SL_DNS_QUEUE);
	be(100);
	ask_as(fd, 1, NULL);
	cr_expect_eq(sl_resolver_count(world.resolver, SL_RESOLVER_COUNT_TRIES), tries + 1);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LIMITED), limited);
	close(fd);
}

/* Its turn did not come in time: it is told so, and takes no place any longer. */
Test(dns_bounds, nobody_waits_for_ever)
{
	int fd = dns_world_client(&world, false, false);

	be(5);
	world.fakes[0].hold = true;
	for (unsigned int i = 0; i < SL_DNS_INFLIGHT_PROCESS + 3; i++)
		ask_as(fd, i, NULL);
	sl_query_overdue(world.dns);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LIMITED), 0);
	/* As if two of them had come when the machine was booted. */
	TAILQ_FIRST(&TAILQ_FIRST(&world.dns->turns)->queue)->start_ns = 0;
	TAILQ_NEXT(TAILQ_FIRST(&TAILQ_FIRST(&world.dns->turns)->queue), turn)->start_ns = 0;
	sl_query_overdue(world.dns);
	expect_answers(fd, 2, LDNS_RCODE_SERVFAIL);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LIMITED), 2);
	cr_expect_eq(sl_dns_waiting(world.dns), SL_DNS_INFLIGHT_PROCESS + 1);
	close(fd);
}

#define SHARE 43 /* what one process has: never more than half of what is free */

static int connect_as(uint32_t tgid, bool half)
{
	int fd;

	be(tgid);
	fd = dns_world_client(&world, true, false);
	/* Half a query: it is not idle. */
	if (half)
		cr_assert_eq(send(fd, "\0\x20\1", 3, 0), 3);
	sl_dns_run(world.dns);
	sl_dns_run(world.dns);
	return fd;
}

static void expect_closed(int fd)
{
	int byte;

	dns_world_until_readable(&world, fd);
	cr_expect_leq(recv(fd, &byte, 1, 0), 0);
}

/* RFC 7766, 6.2.3: who is idle makes room, of the same process; else there is none for it. */
Test(dns_bounds, a_process_has_its_share_of_connections)
{
	int fds[SHARE + 1], busy[SHARE + 1], other;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_as(5, false);
	expect_closed(fds[0]);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TCP_IDLE), 1);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TCP_LIMIT), 0);
	for (size_t i = 0; i < SHARE; i++)
		busy[i] = connect_as(5, true);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TCP_IDLE), 1 + SHARE);
	busy[SHARE] = connect_as(5, true);
	expect_closed(busy[SHARE]);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TCP_LIMIT), 1);
	other = connect_as(7, false);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TCP_IDLE), 1 + SHARE);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TCP_LIMIT), 1);
	dns_world_expect_four(&world);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		close(fds[i]);
		close(busy[i]);
	}
	close(other);
}
