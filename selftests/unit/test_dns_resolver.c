/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The resolver and its upstreams, good and bad (scenario D4). */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "dns_world.h"

static struct dns_world world;

/* What one request came to. */
struct result {
	unsigned int calls;
	int error;
	char text[1024]; /* addresses, joined by a blank */
};

static void took(void *arg, int error, const struct sl_addr *addresses, size_t count)
{
	struct result *result = arg;
	char addr[SL_FORMAT_MAX];
	size_t len = 0;

	result->calls++;
	result->error = error;
	result->text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(result->text + len, sizeof(result->text) - len, "%s%s",
					i ? " " : "",
					sl_format_addr(addr, sizeof(addr), addresses[i].be));
}

static bool has_come(void *arg)
{
	return ((struct result *)arg)->calls > 0;
}

static struct result resolve(const char *name)
{
	struct sl_resolver_request *request;
	struct result result = { 0 };

	if (!world.resolver)
		dns_world_resolver(&world);
	cr_assert_eq(sl_resolver_addresses(world.resolver, name, took, &result, &request), 0);
	cr_assert_eq(result.calls, 0, "not before it returns");
	dns_world_until(&world, has_come, &result);
	cr_assert_eq(result.calls, 1);
	return result;
}

static const char *const zone[] = {
	"test. 60 IN SOA ns.test. root.test. 1 3600 600 86400 30",
	"a.test. 60 IN A 192.0.2.1",
	"a.test. 60 IN A 192.0.2.2",
	"a.test. 60 IN AAAA 2001:db8::1",
	"four.test. 60 IN A 192.0.2.4",
	"none.test. 60 IN TXT \"no address\"",
	"alias.test. 60 IN CNAME b.alias.test.",
	"b.alias.test. 60 IN CNAME a.test.",
	"loop.test. 60 IN CNAME pool.test.",
	"pool.test. 60 IN CNAME loop.test.",
	"two.test. 60 IN CNAME a.test.",
	"two.test. 60 IN CNAME four.test.",
};

static void start(unsigned int upstreams, enum dns_way first)
{
	dns_world_start(&world, upstreams);
	for (unsigned int i = 0; i < upstreams; i++)
		memcpy(world.fakes[i].zone, zone, sizeof(zone));
	world.fakes[0].way = first;
}

static void stop(void)
{
	dns_world_stop(&world);
}

static uint64_t count_of(enum sl_resolver_count which)
{
	return sl_resolver_count(world.resolver, which);
}

TestSuite(dns_resolver, .fini = stop, .timeout = 60);

Test(dns_resolver, both_families_and_what_is_not_there)
{
	struct result result;

	start(1, DNS_GOOD);
	result = resolve("a.test");
	cr_expect_eq(result.error, 0);
	cr_expect_str_eq(result.text, "2001:db8::1 192.0.2.1 192.0.2.2");
	cr_expect_str_eq(resolve("four.test").text, "192.0.2.4");
	cr_expect_str_eq(resolve("alias.test").text, "2001:db8::1 192.0.2.1 192.0.2.2");
	cr_expect_eq(resolve("none.test").error, -ENODATA);
	cr_expect_eq(resolve("gone.test").error, -ENOENT);
	cr_expect_eq(resolve("loop.test").error, -EIO);
	cr_expect_eq(resolve("two.test").error, -EIO);
}

Test(dns_resolver, names_that_are_none)
{
	static const char *const bad[] = { "",   ".",   "a..b",          ".a",
					   "a.", "a b", "\xc3\xa4.test", "a/b" };
	struct sl_resolver_request *request = NULL;
	struct result result = { 0 };
	char longest[300];

	start(1, DNS_GOOD);
	dns_world_resolver(&world);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_eq(sl_resolver_addresses(world.resolver, bad[i], took, &result, &request),
			     -EINVAL, "%s", bad[i]);
	memset(longest, 'a', sizeof(longest));
	for (size_t i = 63; i < sizeof(longest); i += 64)
		longest[i] = '.';
	longest[254] = '\0';
	cr_expect_eq(sl_resolver_addresses(world.resolver, longest, took, &result, &request),
		     -EINVAL);
	longest[253] = '\0';
	cr_expect_eq(sl_resolver_addresses(world.resolver, longest, took, &result, &request), 0);
	sl_resolver_cancel(&request);
	cr_expect_null(request);
	cr_expect_eq(result.calls, 0);
}

Test(dns_resolver, an_answer_that_does_not_fit_comes_over_tcp)
{
	start(1, DNS_CUT);
	cr_expect_str_eq(resolve("a.test").text, "2001:db8::1 192.0.2.1 192.0.2.2");
	cr_expect_eq(world.fakes[0].tcp_asked, 2);
	cr_expect_eq(count_of(SL_RESOLVER_COUNT_TCP), 2);
}

Test(dns_resolver, tcp_that_fails_goes_to_the_next)
{
	start(2, DNS_HANG_UP);
	cr_expect_str_eq(resolve("four.test").text, "192.0.2.4");
	cr_expect_gt(world.fakes[1].udp_asked, 0);
	dns_world_stop(&world);
	start(1, DNS_CUT_ALWAYS);
	cr_expect_eq(resolve("a.test").error, -EIO);
}

/* Alone each of these is an error in bounded time; with a good one behind it, an answer. */
Test(dns_resolver, bad_upstreams_cost_a_try_and_no_more)
{
	static const struct {
		enum dns_way way;
		int error;
	} rows[] = {
		{ DNS_SILENT, -ETIMEDOUT },   { DNS_DEAD, -EIO },
		{ DNS_WRONG_ID, -ETIMEDOUT }, { DNS_WRONG_NAME, -ETIMEDOUT },
		{ DNS_GARBAGE, -ETIMEDOUT },  { DNS_FAIL, -EIO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		start(1, rows[i].way);
		world.config.timeout_ms = 50;
		cr_expect_eq(resolve("a.test").error, rows[i].error, "way %d", rows[i].way);
		dns_world_stop(&world);
		start(2, rows[i].way);
		world.config.timeout_ms = 50;
		world.config.attempts = 6;
		cr_expect_str_eq(resolve("four.test").text, "192.0.2.4", "way %d", rows[i].way);
		dns_world_stop(&world);
	}
}

Test(dns_resolver, silent_upstreams_are_asked_last)
{
	start(2, DNS_SILENT);
	world.config.timeout_ms = 1000;
	cr_expect_str_eq(resolve("four.test").text, "192.0.2.4");
	world.fakes[0].udp_asked = 0;
	cr_expect_str_eq(resolve("a.test").text, "2001:db8::1 192.0.2.1 192.0.2.2");
	cr_expect_eq(world.fakes[0].udp_asked, 0);
}

Test(dns_resolver, junk_is_not_looked_at_and_the_answer_behind_it_is)
{
	start(1, DNS_JUNK_FIRST);
	world.config.timeout_ms = 20000;
	cr_expect_str_eq(resolve("four.test").text, "192.0.2.4");
	cr_expect_eq(count_of(SL_RESOLVER_COUNT_IGNORED), 8);
	cr_expect_eq(count_of(SL_RESOLVER_COUNT_TIMEOUTS), 0);
}

Test(dns_resolver, an_upstream_without_edns_is_asked_without)
{
	start(1, DNS_NO_EDNS);
	cr_expect_str_eq(resolve("four.test").text, "192.0.2.4");
	cr_expect_eq(world.fakes[0].udp_asked, 4);
}

Test(dns_resolver, letters_in_random_case_have_to_come_back)
{
	char name[] = "abcdefghijklmnopqrstuvwxyz.test";
	bool mixed = false;

	start(1, DNS_GOOD);
	world.config.mix_case = true;
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(resolve(name).error, -ENOENT);
		mixed = mixed || strncmp(world.fakes[0].name, name, strlen(name)) != 0;
		name[0]++;
	}
	cr_expect(mixed);
	dns_world_stop(&world);

	/* Who answers in lower case is ignored once, and then asked in lower case. */
	start(1, DNS_LOWER);
	world.config.mix_case = true;
	world.config.timeout_ms = 100;
	world.config.attempts = 6;
	cr_expect_eq(resolve(name).error, -ENOENT);
	cr_expect_gt(count_of(SL_RESOLVER_COUNT_IGNORED), 0);
}

Test(dns_resolver, answers_are_kept_for_their_ttl_and_negative_ones_too)
{
	start(1, DNS_GOOD);
	resolve("a.test");
	resolve("gone.test");
	world.fakes[0].udp_asked = 0;
	cr_expect_str_eq(resolve("a.test").text, "2001:db8::1 192.0.2.1 192.0.2.2");
	cr_expect_eq(resolve("gone.test").error, -ENOENT);
	cr_expect_eq(world.fakes[0].udp_asked, 0);
	cr_expect_eq(count_of(SL_RESOLVER_COUNT_CACHED), 4);
	dns_world_stop(&world);

	start(1, DNS_GOOD);
	world.fakes[0].zone[0] = "zero.test. 0 IN A 192.0.2.9";
	resolve("zero.test");
	resolve("zero.test");
	cr_expect_eq(world.fakes[0].udp_asked, 4, "a TTL of 0, and no SOA");
}

Test(dns_resolver, equal_questions_share_an_exchange)
{
	struct sl_resolver_request *requests[10];
	struct result results[10] = { 0 };

	start(1, DNS_GOOD);
	world.fakes[0].hold = true;
	dns_world_resolver(&world);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(sl_resolver_addresses(world.resolver, "a.test", took, &results[i],
						   &requests[i]),
			     0);
	sl_resolver_cancel(&requests[3]);
	world.fakes[0].hold = false;
	dns_world_until(&world, has_come, &results[9]);
	for (int i = 0; i < 10; i++)
		dns_world_until(&world, has_come, &results[i == 3 ? 4 : i]);
	cr_expect_eq(results[3].calls, 0);
	cr_expect_eq(world.fakes[0].udp_asked, 2);
	cr_expect_eq(count_of(SL_RESOLVER_COUNT_SHARED), 18);
}

Test(dns_resolver, too_many_exchanges_are_refused_and_none_is_lost)
{
	static struct sl_resolver_request *requests[SL_RESOLVER_INFLIGHT / 2 + 1];
	static struct result results[SL_RESOLVER_INFLIGHT / 2 + 1];
	char name[32];
	int ret = 0;

	start(1, DNS_GOOD);
	world.config.timeout_ms = 300;
	world.config.attempts = 5;
	world.fakes[0].hold = true;
	dns_world_resolver(&world);
	for (unsigned int i = 0; i <= SL_RESOLVER_INFLIGHT / 2 && !ret; i++) {
		snprintf(name, sizeof(name), "n%u.test", i);
		ret = sl_resolver_addresses(world.resolver, name, took, &results[i], &requests[i]);
		cr_expect_eq(ret, i < SL_RESOLVER_INFLIGHT / 2 ? 0 : -ENOBUFS);
	}
	cr_expect_eq(count_of(SL_RESOLVER_COUNT_LIMITED), 1);
	for (unsigned int i = 0; i < SL_RESOLVER_INFLIGHT / 2; i++)
		sl_resolver_cancel(&requests[i]);
	/* With these gone there is room again. */
	world.fakes[0].hold = false;
	cr_expect_str_eq(resolve("four.test").text, "192.0.2.4");
}

Test(dns_resolver, every_prefix_of_an_answer_is_no_answer)
{
	start(1, DNS_PREFIX);
	world.config.timeout_ms = 5;
	world.config.attempts = 1;
	world.config.no_cache = true;
	/* Header, question and one record: 12 + 15 + 16. */
	for (size_t size = 0; size < 43; size++) {
		world.fakes[0].prefix = size;
		cr_expect_neq(resolve("four.test").error, 0, "%zu bytes", size);
	}
	world.config.timeout_ms = 8000;
	sl_resolver_free(&world.resolver);
	world.fakes[0].prefix = 43;
	cr_expect_str_eq(resolve("four.test").text, "192.0.2.4");
}
