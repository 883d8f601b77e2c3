/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What policy DNS answers: names, types, addresses, sizes. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/parse.h"
#include "dns_world.h"

#define HTTPS 65

static struct dns_world world;

static const char *const zone[] = {
	"test. 60 IN SOA ns.test. root.test. 1 3600 600 86400 30",
	"a.test. 60 IN A 192.0.2.1",
	"a.test. 0 IN A 192.0.2.2",
	"a.test. 60 IN AAAA 2001:db8::1",
	"a.test. 60 IN TXT \"text\"",
	"a.test. 60 IN MX 10 mail.test.",
	"mail.test. 60 IN A 192.0.2.25",
	"four.test. 60 IN A 192.0.2.4",
	"six.test. 60 IN AAAA 2001:db8::6",
	"alias.test. 60 IN CNAME cdn.example.",
	"cdn.example. 30 IN A 198.51.100.7",
	"loop.test. 60 IN CNAME pool.test.",
	"pool.test. 60 IN CNAME loop.test.",
	"mixed.test. 60 IN A 10.0.0.5",
	"mixed.test. 60 IN A 203.0.113.5",
	"private.test. 60 IN A 10.0.0.5",
	"private.test. 60 IN A 169.254.169.254",
	"mapped.test. 60 IN AAAA ::ffff:127.0.0.1",
	"unspecified.test. 60 IN A 0.0.0.0",
	"embedded.test. 60 IN AAAA ::ffff:192.0.2.77",
	"long.test. 4294967295 IN A 192.0.2.8",
	"edge.test. 2147483647 IN A 192.0.2.9",
	"denied.example. 60 IN A 192.0.2.66",
	"sp\\032ace.test. 60 IN A 192.0.2.44",
};

static void start_with(unsigned int upstreams)
{
	dns_world_start(&world, upstreams);
	for (unsigned int i = 0; i < upstreams; i++)
		memcpy(world.fakes[i].zone, zone, sizeof(zone));
}

static void start(void)
{
	start_with(1);
}

static void stop(void)
{
	dns_world_stop(&world);
}

/* Asks and compares the rcode and the answer section as text. */
static void expect(const struct dns_ask *ask, unsigned int rcode, const char *text)
{
	ldns_pkt *reply = dns_world_ask(&world, ask);
	const char *got = dns_world_text(ldns_pkt_answer(reply));

	cr_expect_eq(ldns_pkt_get_rcode(reply), (ldns_pkt_rcode)rcode, "%s: rcode %u", ask->name,
		     ldns_pkt_get_rcode(reply));
	cr_expect_str_eq(got, text, "%s %u: %s", ask->name, ask->type, got);
	ldns_pkt_free(reply);
}

static void expect_a(const char *name, unsigned int rcode, const char *text)
{
	expect(&(struct dns_ask){ .name = name, .type = LDNS_RR_TYPE_A }, rcode, text);
}

static unsigned int upstream_asked(void)
{
	return world.fakes[0].udp_asked + world.fakes[0].tcp_asked;
}

TestSuite(dns_server, .init = start, .fini = stop, .timeout = 60);

Test(dns_server, addresses_are_leased_with_their_ttl_and_told)
{
	char text[SL_FORMAT_MAX];

	expect_a("a.test", 0, "a.test. 60 IN A 192.0.2.1; a.test. 0 IN A 192.0.2.2");
	cr_assert_eq(world.lease_count, 2);
	cr_expect_str_eq(world.leases[1].name, "a.test");
	cr_expect_eq(world.leases[1].ttl_s, 0);
	cr_expect_str_eq(sl_format_addr(text, sizeof(text), world.leases[1].addr.be), "192.0.2.2");
	cr_expect_eq(world.asked, 1);
	cr_expect_eq(world.last.outcome, SL_DNS_ANSWERED);
	cr_expect_eq(world.last.addresses, 2);
	expect(&(struct dns_ask){ .name = "a.test", .type = LDNS_RR_TYPE_AAAA }, 0,
	       "a.test. 60 IN AAAA 2001:db8::1");
	cr_expect_eq(world.lease_count, 3);
}

/* Scenario D3, the ways to ask: UDP and TCP, v4 and v6. */
Test(dns_server, every_way_to_ask)
{
	for (int way = 0; way < 8; way++) {
		const struct dns_ask ask = { .name = "four.test",
					     .type = LDNS_RR_TYPE_A,
					     .tcp = way & 1,
					     .v6 = way & 2,
					     .edns_size = way & 4 ? 1232 : 0 };

		expect(&ask, 0, "four.test. 60 IN A 192.0.2.4");
	}
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TCP), 4);
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_UDP), 4);
}

/* Scenario D2. */
Test(dns_server, a_denied_name_is_refused_and_nothing_is_asked)
{
	static const char *const names[] = { "denied.example", "test.example", "x",
					     "a\\.b.test",     "a\\000.test",  "sp\\032ace.test" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect_a(names[i], LDNS_RCODE_REFUSED, "");
	expect_a(".", LDNS_RCODE_REFUSED, "");
	cr_expect_eq(upstream_asked(), 0);
	cr_expect_eq(world.lease_count, 0);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_REFUSED), ARRAY_SIZE(names) + 1);
}

/* What can be in no policy is decided all the same, and told as text. */
Test(dns_server, a_name_of_other_bytes_is_a_decision)
{
	expect_a("sp\\032ace\\.\\001.test", LDNS_RCODE_REFUSED, "");
	cr_expect_str_eq(world.odd, "sp\\032ace\\046\\001.test");
	expect_a(".", LDNS_RCODE_REFUSED, "");
	cr_expect_str_eq(world.odd, ".");
	cr_expect_eq(upstream_asked(), 0);
	/* Where nothing is refused it is asked for; it can't be leased. */
	world.odd_passes = true;
	expect_a("sp\\032ace.test", 0, "sp\\032ace.test. 60 IN A 192.0.2.44");
	cr_expect_eq(world.lease_count, 0);
}

/* REFUSED would end the search for the name itself: glibc and musl give up then. */
Test(dns_server, a_search_domain_behind_a_name_does_not_exist)
{
	expect_a(SEARCHED, LDNS_RCODE_NXDOMAIN, "");
	cr_expect_eq(upstream_asked(), 0);
	cr_expect_eq(sl_dns_outcomes(world.dns, SL_DNS_LOCAL), 1);
}

static bool has_ede(ldns_pkt *reply, uint8_t code)
{
	ldns_edns_option_list *list = ldns_pkt_edns_get_option_list(reply);
	ldns_edns_option *option = list ? ldns_edns_option_list_get_option(list, 0) : NULL;

	return option && ldns_edns_get_code(option) == 15 && ldns_edns_get_size(option) > 10 &&
	       ldns_edns_get_data(option)[1] == code;
}

Test(dns_server, says_why_to_who_understands_it)
{
	struct dns_ask ask = { .name = "denied.example", .type = LDNS_RR_TYPE_A, .edns_size = 512 };
	ldns_pkt *reply = dns_world_ask(&world, &ask);

	cr_expect_eq(ldns_pkt_edns_udp_size(reply), SL_DNS_UDP_SIZE);
	cr_expect(has_ede(reply, 15));
	ldns_pkt_free(reply);
	ask.name = "private.test";
	reply = dns_world_ask(&world, &ask);
	cr_expect(has_ede(reply, 17));
	ldns_pkt_free(reply);
	ask.edns_size = 0;
	reply = dns_world_ask(&world, &ask);
	cr_expect_not(ldns_pkt_edns(reply));
	ldns_pkt_free(reply);
}

/* Scenarios P9 and P10. */
Test(dns_server, addresses_that_the_policy_does_not_let_be_answered_are_taken_out)
{
	expect_a("mixed.test", 0, "mixed.test. 60 IN A 203.0.113.5");
	cr_expect_eq(world.last.removed, 1);
	cr_expect_eq(world.lease_count, 1);
	expect_a("private.test", 0, "");
	cr_expect_eq(world.last.outcome, SL_DNS_FILTERED);
	cr_expect_eq(world.last.removed, 2);
	cr_expect_eq(world.last.left_out_count, 2);
	expect_a("unspecified.test", 0, "");
	expect(&(struct dns_ask){ .name = "mapped.test", .type = LDNS_RR_TYPE_AAAA }, 0, "");
	cr_expect_eq(world.last.removed, 1);
	cr_expect_eq(world.lease_count, 1);
}

/* IPv4 in IPv6 is leased as what it is, and told as it came; RFC 2181, 8: a TTL may be none. */
Test(dns_server, addresses_and_ttls_in_odd_forms)
{
	char text[SL_FORMAT_MAX];

	expect(&(struct dns_ask){ .name = "embedded.test", .type = LDNS_RR_TYPE_AAAA }, 0,
	       "embedded.test. 60 IN AAAA ::ffff:192.0.2.77");
	cr_assert_eq(world.lease_count, 1);
	cr_expect_str_eq(sl_format_addr(text, sizeof(text), world.leases[0].addr.be), "192.0.2.77");
	expect_a("long.test", 0, "long.test. 0 IN A 192.0.2.8");
	cr_assert_eq(world.lease_count, 2);
	cr_expect_eq(world.leases[1].ttl_s, 0);
	expect_a("edge.test", 0, "edge.test. 2147483647 IN A 192.0.2.9");
	cr_expect_eq(world.leases[2].ttl_s, INT32_MAX);
}

Test(dns_server, the_name_asked_has_the_lease_whatever_it_is_an_alias_of)
{
	expect_a("alias.test", 0,
		 "alias.test. 60 IN CNAME cdn.example.; cdn.example. 30 IN A 198.51.100.7");
	cr_assert_eq(world.lease_count, 1);
	cr_expect_str_eq(world.leases[0].name, "alias.test");
	expect_a("cdn.example", LDNS_RCODE_REFUSED, "");
	expect_a("loop.test", LDNS_RCODE_SERVFAIL, "");
	cr_expect_eq(world.last.outcome, SL_DNS_UNSOUND);
	expect(&(struct dns_ask){ .name = "loop.test", .type = LDNS_RR_TYPE_CNAME }, 0,
	       "loop.test. 60 IN CNAME pool.test.");
}

Test(dns_server, a_chain_has_an_end)
{
	static char lines[SL_DNS_CHAIN + 2][64];
	ldns_pkt *reply;

	/* c0 is one link too far away, c1 is not. */
	for (int i = 0; i <= SL_DNS_CHAIN; i++)
		snprintf(lines[i], sizeof(lines[i]), "c%d.test. 60 IN CNAME c%d.test.", i, i + 1);
	snprintf(lines[SL_DNS_CHAIN + 1], sizeof(lines[0]), "c%d.test. 60 IN A 192.0.2.12",
		 SL_DNS_CHAIN + 1);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		world.fakes[0].zone[ARRAY_SIZE(zone) + i] = lines[i];
	reply = dns_world_ask(&world,
			      &(struct dns_ask){ .name = "c1.test", .type = LDNS_RR_TYPE_A });
	cr_expect_eq(ldns_pkt_ancount(reply), SL_DNS_CHAIN + 1);
	cr_expect_eq(world.lease_count, 1);
	ldns_pkt_free(reply);
	expect_a("c0.test", LDNS_RCODE_SERVFAIL, "");
	cr_expect_eq(world.last.outcome, SL_DNS_UNSOUND);
}

Test(dns_server, negative_answers_are_as_upstream_has_them)
{
	ldns_pkt *reply;

	expect_a("gone.test", LDNS_RCODE_NXDOMAIN, "");
	reply = dns_world_ask(&world,
			      &(struct dns_ask){ .name = "four.test", .type = LDNS_RR_TYPE_AAAA });
	cr_expect_eq(ldns_pkt_get_rcode(reply), LDNS_RCODE_NOERROR);
	cr_expect_eq(ldns_pkt_ancount(reply), 0);
	cr_expect_str_eq(dns_world_text(ldns_pkt_authority(reply)),
			 "test. 60 IN SOA ns.test. root.test. 1 3600 600 86400 30");
	ldns_pkt_free(reply);
}

Test(dns_server, other_types_come_without_addresses_or_not_at_all)
{
	unsigned int before;

	expect(&(struct dns_ask){ .name = "a.test", .type = LDNS_RR_TYPE_TXT }, 0,
	       "a.test. 60 IN TXT \"text\"");
	expect(&(struct dns_ask){ .name = "a.test", .type = LDNS_RR_TYPE_MX }, 0,
	       "a.test. 60 IN MX 10 mail.test.");
	cr_expect_eq(world.lease_count, 0);
	before = upstream_asked();
	expect(&(struct dns_ask){ .name = "a.test", .type = LDNS_RR_TYPE_ANY }, 0,
	       "a.test. 3789 IN HINFO \"RFC8482\" \"\"");
	expect(&(struct dns_ask){ .name = "a.test", .type = HTTPS }, 0, "");
	cr_expect_eq(world.last.outcome, SL_DNS_WITHHELD);
	expect(&(struct dns_ask){ .name = "a.test", .type = LDNS_RR_TYPE_AXFR }, LDNS_RCODE_REFUSED,
	       "");
	expect(&(struct dns_ask){ .name = "a.test", .type = LDNS_RR_TYPE_DNAME },
	       LDNS_RCODE_REFUSED, "");
	expect(&(struct dns_ask){ .name = "a.test",
				  .type = LDNS_RR_TYPE_A,
				  .class = LDNS_RR_CLASS_CH },
	       LDNS_RCODE_REFUSED, "");
	cr_expect_eq(upstream_asked(), before);
}

Test(dns_server, reverse_names_are_of_what_was_leased_only)
{
	const struct dns_ask v4 = { .name = "1.2.0.192.in-addr.arpa", .type = LDNS_RR_TYPE_PTR };
	const struct dns_ask v6 = {
		.name = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
		.type = LDNS_RR_TYPE_PTR
	};
	unsigned int before;

	expect(&v4, LDNS_RCODE_NXDOMAIN, "");
	expect_a("a.test", 0, "a.test. 60 IN A 192.0.2.1; a.test. 0 IN A 192.0.2.2");
	expect(&(struct dns_ask){ .name = "a.test", .type = LDNS_RR_TYPE_AAAA }, 0,
	       "a.test. 60 IN AAAA 2001:db8::1");
	before = upstream_asked();
	expect(&v4, 0, "1.2.0.192.in-addr.arpa. 5 IN PTR a.test.");
	expect(&v6, 0,
	       "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. 5 IN PTR "
	       "a.test.");
	/* Not an address: a name like others. */
	expect(&(struct dns_ask){ .name = "01.2.0.192.in-addr.arpa", .type = LDNS_RR_TYPE_PTR },
	       LDNS_RCODE_REFUSED, "");
	cr_expect_eq(upstream_asked(), before);
}

Test(dns_server, the_question_comes_back_as_it_was_spelled)
{
	ldns_pkt *reply = dns_world_ask(&world, &(struct dns_ask){ .name = "FoUr.TeSt.",
								   .type = LDNS_RR_TYPE_A });

	cr_expect_str_eq(dns_world_text(ldns_pkt_question(reply)), "FoUr.TeSt. IN A");
	cr_expect_eq(ldns_pkt_ancount(reply), 1);
	cr_expect_str_eq(world.leases[0].name, "four.test");
	cr_expect(ldns_pkt_ra(reply));
	cr_expect_not(ldns_pkt_ad(reply));
	ldns_pkt_free(reply);
}

Test(dns_server, nothing_is_told_that_was_not_leased)
{
	world.lease_error = -E2BIG;
	expect_a("a.test", LDNS_RCODE_SERVFAIL, "");
	cr_expect_eq(world.last.outcome, SL_DNS_UNLEASED);
	cr_expect_eq(world.last.addresses, 0);
}

Test(dns_server, synthetic_addresses_in_place_of_real_ones)
{
	cr_assert_eq(sl_pool_new(&world.pool, 7, 3), 0);
	expect_a("a.test", 0, "a.test. 60 IN A 198.18.0.1");
	expect(&(struct dns_ask){ .name = "alias.test", .type = LDNS_RR_TYPE_A }, 0,
	       "alias.test. 30 IN A 198.18.0.2");
	/* A name of either family has both: the relay reaches it anyway. */
	expect(&(struct dns_ask){ .name = "alias.test", .type = LDNS_RR_TYPE_AAAA }, 0,
	       "alias.test. 30 IN AAAA fd73:6c75:6963:7::2");
	expect_a("six.test", 0, "six.test. 60 IN A 198.18.0.3");
	cr_expect_eq(world.lease_count, 4);
	/* What upstream does not have, and what the policy takes out, has none. */
	expect_a("gone.test", LDNS_RCODE_NXDOMAIN, "");
	expect(&(struct dns_ask){ .name = "test", .type = LDNS_RR_TYPE_A }, 0, "");
	expect_a("private.test", 0, "");
	cr_expect_eq(world.last.outcome, SL_DNS_FILTERED);
	cr_expect_eq(sl_pool_count(world.pool), 3);
	/* An exhausted pool is no reason to tell a real address. */
	expect_a("four.test", LDNS_RCODE_SERVFAIL, "");
	cr_expect_eq(world.last.outcome, SL_DNS_UNLEASED);
	cr_expect_eq(world.lease_count, 4);
}

Test(dns_server, what_does_not_fit_is_cut_for_udp_and_whole_over_tcp)
{
	static char lines[40][64];
	struct dns_ask ask = { .name = "big.test", .type = LDNS_RR_TYPE_A };
	static const struct {
		uint16_t edns_size;
		bool tcp, cut;
	} rows[] = {
		{ 0, false, true }, { 600, false, true }, { 1232, false, false }, { 0, true, false }
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(lines); i++) {
		snprintf(lines[i], sizeof(lines[i]), "big.test. 60 IN A 192.0.2.%u", i + 1);
		world.fakes[0].zone[ARRAY_SIZE(zone) + i] = lines[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ldns_pkt *reply;

		ask.edns_size = rows[i].edns_size;
		ask.tcp = rows[i].tcp;
		reply = dns_world_ask(&world, &ask);
		cr_expect_eq(ldns_pkt_tc(reply), rows[i].cut, "row %zu", i);
		cr_expect_eq(ldns_pkt_ancount(reply), rows[i].cut ? 0 : ARRAY_SIZE(lines));
		cr_expect_eq(ldns_pkt_qdcount(reply), 1);
		ldns_pkt_free(reply);
	}
	cr_expect_eq(sl_dns_count(world.dns, SL_DNS_COUNT_TRUNCATED), 2);
}

Test(dns_server, more_addresses_than_it_tells)
{
	static char lines[SL_DNS_ADDRESSES - 8][64];
	ldns_pkt *reply;

	memset(world.fakes[0].zone, 0, sizeof(world.fakes[0].zone));
	for (unsigned int i = 0; i < ARRAY_SIZE(lines); i++) {
		snprintf(lines[i], sizeof(lines[i]), "big.test. 60 IN A 192.0.2.%u", i + 1);
		world.fakes[0].zone[i] = lines[i];
	}
	for (unsigned int i = 0; i < 12; i++)
		world.fakes[0].zone[ARRAY_SIZE(lines) + i] = "big.test. 60 IN A 203.0.113.1";
	reply = dns_world_ask(&world, &(struct dns_ask){ .name = "big.test",
							 .type = LDNS_RR_TYPE_A,
							 .tcp = true });
	cr_expect_eq(ldns_pkt_ancount(reply), SL_DNS_ADDRESSES);
	cr_expect_eq(world.lease_count, SL_DNS_ADDRESSES);
	ldns_pkt_free(reply);
}

/* Scenario D4, seen by the client. */
Test(dns_server, a_bad_upstream_is_a_servfail_and_a_good_one_behind_it_an_answer)
{
	static const enum dns_way ways[] = { DNS_SILENT,   DNS_DEAD,    DNS_FAIL,
					     DNS_WRONG_ID, DNS_GARBAGE, DNS_CUT_ALWAYS };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		world.fakes[0].way = ways[i];
		world.config.timeout_ms = 50;
		expect_a("four.test", LDNS_RCODE_SERVFAIL, "");
		cr_expect_eq(world.last.outcome, SL_DNS_UPSTREAM);
		/* What needs no upstream is not affected. */
		expect_a("denied.example", LDNS_RCODE_REFUSED, "");
		dns_world_stop(&world);
		start_with(2);
		world.fakes[0].way = ways[i];
		world.config.timeout_ms = 50;
		world.config.attempts = 6;
		expect_a("four.test", 0, "four.test. 60 IN A 192.0.2.4");
		dns_world_stop(&world);
		start();
	}
}
