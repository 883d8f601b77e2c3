/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clients of policy DNS that are many, slow or wrong: each fails alone. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dns_world.h"

static struct dns_world world;

static const struct dns_ask four = { .name = "four.test", .type = LDNS_RR_TYPE_A };

static void start(void)
{
	dns_world_four(&world);
}

static void stop(void)
{
	dns_world_stop(&world);
}

TestSuite(dns_clients, .init = start, .fini = stop, .timeout = 60);

static bool ignored(void *arg)
{
	return sl_dns_count(world.dns, SL_DNS_COUNT_IGNORED) == *(unsigned int *)arg;
}

/* RFC 1035: what has a header is answered with FORMERR, what has none or is an answer is not. */
Test(dns_clients, every_prefix_of_a_query)
{
	const struct dns_ask ask = { .name = "four.test",
				     .type = LDNS_RR_TYPE_A,
				     .edns_size = 1232 };
	int fd = dns_world_client(&world, false, false);
	unsigned int count = 0;
	uint8_t wire[512];
	size_t size = dns_world_query(&ask, 7, wire, sizeof(wire));

	for (size_t len = 1; len < size; len++) {
		ldns_pkt *reply;

		dns_world_send(fd, false, wire, len);
		if (len < 12) {
			count++;
			dns_world_until(&world, ignored, &count);
			continue;
		}
		reply = dns_world_receive(&world, fd, false);
		cr_expect_eq(ldns_pkt_get_rcode(reply), LDNS_RCODE_FORMERR, "%zu bytes", len);
		cr_expect_eq(ldns_pkt_id(reply), 7);
		ldns_pkt_free(reply);
	}
	wire[2] |= 0x80;
	dns_world_send(fd, false, wire, size);
	count++;
	dns_world_until(&world, ignored, &count);
	cr_expect_eq(world.fakes[0].udp_asked, 0);
	close(fd);
	dns_world_expect_four(&world);
}

static unsigned int rcode_of(const uint8_t *wire, size_t size)
{
	int fd = dns_world_client(&world, false, false);
	ldns_pkt *reply;
	unsigned int rcode;

	dns_world_send(fd, false, wire, size);
	reply = dns_world_receive(&world, fd, false);
	rcode = ldns_pkt_get_rcode(reply);
	if (ldns_pkt_edns(reply))
		rcode |= (unsigned int)ldns_pkt_edns_extended_rcode(reply) << 4;
	ldns_pkt_free(reply);
	close(fd);
	return rcode;
}

Test(dns_clients, queries_that_are_not_taken)
{
	struct dns_ask ask = { .name = "four.test", .type = LDNS_RR_TYPE_A, .edns_size = 1232 };
	uint8_t good[512], wire[512];
	size_t size = dns_world_query(&ask, 7, good, sizeof(good));

	memcpy(wire, good, size);
	wire[2] = 5 << 3; /* UPDATE */
	cr_expect_eq(rcode_of(wire, size), LDNS_RCODE_NOTIMPL);
	memcpy(wire, good, size);
	wire[5] = 2; /* two questions */
	cr_expect_eq(rcode_of(wire, size), LDNS_RCODE_FORMERR);
	memcpy(wire, good, size);
	wire[7] = 1; /* an answer in a query */
	cr_expect_eq(rcode_of(wire, size), LDNS_RCODE_FORMERR);
	memcpy(wire, good, size);
	wire[12] = 0xc0; /* a name that points to itself */
	wire[13] = 12;
	cr_expect_eq(rcode_of(wire, size), LDNS_RCODE_FORMERR);
	memcpy(wire, good, size);
	wire[size - 5] = 1; /* version of EDNS */
	cr_expect_eq(rcode_of(wire, size), 16);
	memcpy(wire, good, size);
	wire[size - 9] = 16; /* the additional record is a TXT */
	cr_expect_eq(rcode_of(wire, size), LDNS_RCODE_FORMERR);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_MALFORMED), 6);
	cr_expect_eq(rcode_of(good, size), LDNS_RCODE_NOERROR);
}

/* Scenario D3: as musl does it, one unconnected socket to several servers, A and AAAA at once. */
Test(dns_clients, an_unconnected_socket_gets_its_answers_from_who_it_asked)
{
	static const uint32_t servers[] = { 0x7f000035, 0x7f000001, 0x7f010203 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int seen = 0;
	uint8_t wire[2][512];
	size_t size[2];

	cr_assert_geq(fd, 0);
	for (unsigned int i = 0; i < 2; i++)
		size[i] = dns_world_query(&(struct dns_ask){ .name = "four.test",
							     .type = i ? LDNS_RR_TYPE_AAAA
								       : LDNS_RR_TYPE_A },
					  (uint16_t)(100 + i), wire[i], sizeof(wire[i]));
	for (size_t i = 0; i < 2 * ARRAY_SIZE(servers); i++) {
		struct sockaddr_in to = *(struct sockaddr_in *)&world.udp[0];

		to.sin_addr.s_addr = htonl(servers[i / 2]);
		cr_assert_gt(sendto(fd, wire[i % 2], size[i % 2], 0, (struct sockaddr *)&to,
				    sizeof(to)),
			     0);
	}
	for (size_t i = 0; i < 2 * ARRAY_SIZE(servers); i++) {
		struct sockaddr_in from;
		socklen_t from_size = sizeof(from);
		uint8_t data[512];

		dns_world_until_readable(&world, fd);
		cr_assert_gt(recvfrom(fd, data, sizeof(data), 0, (struct sockaddr *)&from,
				      &from_size),
			     12);
		for (unsigned int s = 0; s < ARRAY_SIZE(servers); s++) {
			if (ntohl(from.sin_addr.s_addr) == servers[s] && data[0] == 0)
				seen |= 1u << (2 * s + (data[1] - 100u));
		}
		cr_expect_eq(from.sin_port, ((struct sockaddr_in *)&world.udp[0])->sin_port);
	}
	cr_expect_eq(seen, 0x3f, "each server has answered both: %x", seen);
	close(fd);
}

Test(dns_clients, queries_in_one_piece_and_byte_by_byte)
{
	int fd = dns_world_client(&world, true, false);
	uint8_t wire[512], many[4096];
	size_t size = dns_world_query(&four, 1, wire, sizeof(wire)), len = 0;

	for (uint16_t i = 0; i < 20; i++) {
		many[len] = 0;
		many[len + 1] = (uint8_t)size;
		memcpy(many + len + 2, wire, size);
		many[len + 3] = (uint8_t)i;
		len += 2 + size;
	}
	cr_assert_eq(send(fd, many, len, 0), (ssize_t)len);
	for (uint16_t i = 0; i < 20; i++) {
		ldns_pkt *reply = dns_world_receive(&world, fd, true);

		cr_expect_eq(ldns_pkt_ancount(reply), 1);
		ldns_pkt_free(reply);
	}
	for (size_t i = 0; i < 2 + size; i++) {
		cr_assert_eq(send(fd, many + i, 1, 0), 1);
		sl_dns_run(world.dns);
	}
	ldns_pkt_free(dns_world_receive(&world, fd, true));
	close(fd);
}

/* More in one piece than may wait at once: the rest is taken when there is room again. */
Test(dns_clients, more_queries_on_a_connection_than_may_wait)
{
	const unsigned int count = SL_DNS_INFLIGHT_SOCKET + 10;
	int fd = dns_world_client(&world, true, false);
	uint8_t wire[512], many[8192];
	size_t size, len = 0;

	for (unsigned int i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%02u.test", i);
		size = dns_world_query(&(struct dns_ask){ .name = name, .type = LDNS_RR_TYPE_A },
				       (uint16_t)i, wire, sizeof(wire));
		many[len] = 0;
		many[len + 1] = (uint8_t)size;
		memcpy(many + len + 2, wire, size);
		len += 2 + size;
	}
	cr_assert_leq(len, sizeof(many));
	cr_assert_eq(send(fd, many, len, 0), (ssize_t)len);
	/* It will send no more, and reads on. */
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	for (unsigned int i = 0; i < count; i++) {
		ldns_pkt *reply = dns_world_receive(&world, fd, true);

		cr_expect_eq(ldns_pkt_get_rcode(reply), LDNS_RCODE_NXDOMAIN);
		ldns_pkt_free(reply);
	}
	dns_world_until_readable(&world, fd);
	cr_expect_eq(recv(fd, wire, 1, 0), 0, "closed when all was answered");
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LIMITED), 0);
	close(fd);
}

Test(dns_clients, a_client_that_goes_takes_its_queries_with_it)
{
	int fd = dns_world_client(&world, true, false);
	const struct linger reset = { .l_onoff = 1 };
	uint8_t wire[512];

	world.fakes[0].hold = true;
	dns_world_send(fd, true, wire, dns_world_query(&four, 1, wire, sizeof(wire)));
	while (!sl_dns_waiting(world.dns))
		sl_dns_run(world.dns);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(fd);
	while (sl_dns_waiting(world.dns))
		sl_dns_run(world.dns);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_UNSENT), 1);
	world.fakes[0].hold = false;
	dns_world_expect_four(&world);
}

static bool slow_counted(void *arg)
{
	(void)arg;
	return sl_dns_count(world.dns, SL_DNS_COUNT_TCP_SLOW) == 1;
}

/* One that sends half a query, beside others that are served meanwhile. */
Test(dns_clients, who_does_not_finish_a_query_is_ended_and_nobody_else)
{
	int slow = dns_world_client(&world, true, false), byte;

	cr_assert_eq(send(slow, "\0\x20\1", 3, 0), 3);
	dns_world_expect_four(&world);
	dns_world_until(&world, slow_counted, NULL);
	cr_expect_eq(recv(slow, &byte, 1, 0), 0);
	close(slow);
	dns_world_expect_four(&world);
}

Test(dns_clients, a_query_that_is_too_long_ends_its_connection)
{
	int fd = dns_world_client(&world, true, false);
	uint8_t head[2] = { (SL_DNS_QUERY_SIZE + 1) >> 8, (SL_DNS_QUERY_SIZE + 1) & 0xff };

	cr_assert_eq(send(fd, head, 2, 0), 2);
	dns_world_until_readable(&world, fd);
	cr_expect_eq(recv(fd, head, 1, 0), 0);
	close(fd);
	dns_world_expect_four(&world);
}

static bool accepted(void *arg)
{
	return sl_dns_count(world.dns, SL_DNS_COUNT_CONNECTIONS) == *(unsigned int *)arg;
}

static bool out_of_fds(void *arg)
{
	(void)arg;
	return sl_dns_count(world.dns, SL_DNS_COUNT_NO_FDS) > 0;
}

/* EMFILE: no spinning, and connections that wait are taken when there are descriptors again. */
Test(dns_clients, without_descriptors_it_waits_and_goes_on)
{
	int fd = dns_world_client(&world, true, false), next;
	struct rlimit old, none;
	unsigned int one = 1;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	next = dup(fd);
	close(next);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	dns_world_until(&world, out_of_fds, NULL);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	dns_world_until(&world, accepted, &one);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_NO_FDS), 1);
	close(fd);
	dns_world_expect_four(&world);
}
