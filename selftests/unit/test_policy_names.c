/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verdicts on names: what matches, and which addresses a name may have (P6, P7, P9, P10). */
#include <criterion/criterion.h>

#include <string.h>

#include "base/cleanup.h"
#include "policy_world.h"

static const char names[] =
	"version: 1\nnetwork_policies:\n"
	"  one: {endpoints: [{host: '*.X.org.', port: 1}],"
	" binaries: [{path: /a}]}\n"
	"  deep: {endpoints: [{host: '**.y.org', port: 1,"
	" allowed_ips: [10.0.0.0/8]}], binaries: [{path: /a}]}\n"
	"  exact: {endpoints: [{host: z.org, port: 1}], binaries: [{path: /a}]}\n"
	"  all: {endpoints: [{cidr: 0.0.0.0/0, port: 2}, {cidr: '::/0', port: 2}],"
	" binaries: [{path: /a}]}\n"
	"  cloud: {endpoints: [{cidr: 169.254.169.254, port: 2,"
	" allow_reserved: true}], binaries: [{path: /b}]}\n";

Test(policy_names, p6_p7_names)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, names);
	policy_world_says(&world, "/a", "192.0.2.1", 1, "a.x.org", "allow one");
	policy_world_says(&world, "/a", "192.0.2.1", 1, "x.org", "deny endpoint");
	policy_world_says(&world, "/a", "192.0.2.1", 1, "a.b.x.org", "deny endpoint");
	policy_world_says(&world, "/a", "192.0.2.1", 1, "*.x.org", "deny endpoint");
	policy_world_says(&world, "/a", "10.9.9.9", 1, "a.b.y.org", "allow deep");
	policy_world_says(&world, "/a", "10.9.9.9", 1, "y.org", "deny endpoint");
	policy_world_says(&world, "/a", "192.0.2.1", 1, "a.y.org", "deny reserved-address");
	cr_expect(sl_compiled_host(world.compiled, "a.x.org"));
	cr_expect(sl_compiled_host(world.compiled, "b.a.y.org"));
	cr_expect(sl_compiled_host(world.compiled, "z.org"));
	cr_expect_not(sl_compiled_host(world.compiled, "x.org"));
	cr_expect_not(sl_compiled_host(world.compiled, "a.z.org"));
	cr_expect_not(sl_compiled_host(world.compiled, ""));
	cr_expect_not(sl_compiled_host(world.compiled, "."));
}

Test(policy_names, p9_reserved_addresses_are_for_no_name_and_no_wide_prefix)
{
	static const char *const addresses[] = { "169.254.169.254", "::ffff:127.0.0.1",
						 "0.0.0.0",         "::1",
						 "64:ff9b::7f00:1", "::" };
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, names);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const struct sl_addr addr = policy_addr(addresses[i]);

		policy_world_says(&world, "/a", addresses[i], 1, "z.org", "deny reserved-address");
		cr_expect_not(sl_compiled_answer(world.compiled, "z.org", &addr, SL_ADDR_REAL));
		policy_world_says(&world, "/a", addresses[i], 2, NULL,
				  i ? "deny reserved-address" : "deny binary cloud");
	}
	policy_world_says(&world, "/b", "169.254.169.254", 2, NULL, "allow cloud");
	policy_world_says(&world, "/b", "169.254.169.253", 2, NULL, "deny reserved-address");
	policy_world_says(&world, "/a", "192.0.2.1", 2, NULL, "allow all");
	policy_world_says(&world, "/a", "2001:db8::1", 2, NULL, "allow all");
}

Test(policy_names, p10_private_answers)
{
	_cleanup_world_ struct policy_world world;
	const struct sl_addr private = policy_addr("10.0.0.5"), public = policy_addr("192.0.2.1");

	policy_world_load(&world, names);
	policy_world_says(&world, "/a", "10.0.0.5", 1, "a.x.org", "deny reserved-address");
	policy_world_says(&world, "/a", "192.0.2.1", 1, "a.x.org", "allow one");
	policy_world_says(&world, "/a", "10.0.0.5", 1, "z.org", "allow exact");
	cr_expect_not(sl_compiled_answer(world.compiled, "a.x.org", &private, SL_ADDR_REAL));
	cr_expect(sl_compiled_answer(world.compiled, "a.x.org", &public, SL_ADDR_REAL));
	cr_expect(sl_compiled_answer(world.compiled, "a.y.org", &private, SL_ADDR_REAL));
	cr_expect_not(sl_compiled_answer(world.compiled, "a.y.org", &public, SL_ADDR_REAL));
}

/* Why names may not have addresses: what a rule lists it may, but for what is reserved. */
Test(policy_names, withheld_addresses)
{
	static const struct {
		const char *host, *allowed, *addr;
		enum sl_addr_kind kind;
		enum sl_withheld withheld;
	} cases[] = {
		{ "z.org", NULL, "192.0.2.1", SL_ADDR_REAL, SL_WITHHELD_NOT },
		{ "z.org", NULL, "10.0.0.5", SL_ADDR_REAL, SL_WITHHELD_NOT },
		{ "z.org", NULL, "192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_OWN },
		{ "z.org", NULL, "::ffff:192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_OWN },
		{ "z.org", NULL, "2001:db8::1", SL_ADDR_OWN, SL_WITHHELD_OWN },
		{ "z.org", "192.0.2.0/24", "192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_NOT },
		{ "z.org", "192.0.2.0/24", "::ffff:192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_NOT },
		{ "z.org", "::ffff:192.0.2.1/128", "192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_NOT },
		{ "z.org", "198.51.100.0/24", "192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_UNLISTED },
		{ "z.org", "::/0", "192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_UNLISTED },
		{ "z.org", "::/0", "2001:db8::1", SL_ADDR_OWN, SL_WITHHELD_NOT },
		{ "*.z.org", NULL, "10.0.0.5", SL_ADDR_REAL, SL_WITHHELD_PRIVATE },
		{ "*.z.org", NULL, "::ffff:10.0.0.5", SL_ADDR_REAL, SL_WITHHELD_PRIVATE },
		{ "*.z.org", NULL, "64:ff9b::a00:5", SL_ADDR_REAL, SL_WITHHELD_PRIVATE },
		{ "*.z.org", NULL, "192.0.2.1", SL_ADDR_OWN, SL_WITHHELD_OWN },
		{ "*.z.org", "10.0.0.5/32", "10.0.0.5", SL_ADDR_OWN, SL_WITHHELD_NOT },
		{ "z.org", "0.0.0.0/0", "127.0.0.1", SL_ADDR_OWN, SL_WITHHELD_RESERVED },
		{ "z.org", "0.0.0.0/0", "::ffff:127.0.0.1", SL_ADDR_REAL, SL_WITHHELD_RESERVED },
		{ "z.org", NULL, "fe80::1", SL_ADDR_OWN, SL_WITHHELD_RESERVED },
		{ "*.z.org", NULL, "127.0.0.1", SL_ADDR_SYNTHETIC, SL_WITHHELD_NOT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_addr addr = policy_addr(cases[i].addr);
		struct sl_prefix prefix;
		const struct sl_prefixes allowed = { &prefix, cases[i].allowed ? 1 : 0 };

		if (cases[i].allowed)
			cr_assert_eq(sl_prefix_parse(cases[i].allowed, &prefix), 0);
		cr_expect_eq(sl_name_withheld(cases[i].host, &allowed, &addr, cases[i].kind),
			     cases[i].withheld, "%s with %s: %s", cases[i].host,
			     cases[i].allowed ? cases[i].allowed : "-", cases[i].addr);
	}
}

/* A rule for addresses is about addresses, whoever's they are; one by name is about its own. */
Test(policy_names, own_addresses)
{
	static const char *const named = "z.org";
	const struct sl_image image = { .path = "/a" };
	struct sl_query query = { .images = &image,
				  .image_count = 1,
				  .transport = SL_TRANSPORT_TCP,
				  .port = 1,
				  .addr = policy_addr("192.0.2.1"),
				  .kind = SL_ADDR_OWN,
				  .names = &named,
				  .name_count = 1 };
	_cleanup_world_ struct policy_world world;
	struct sl_decision decision;

	policy_world_load(&world, names);
	sl_decide(world.compiled, &query, &decision);
	cr_expect_str_eq(policy_says(&world, &decision), "deny reserved-address");
	cr_expect_not(sl_compiled_answer(world.compiled, named, &query.addr, SL_ADDR_OWN));
	query.port = 2;
	sl_decide(world.compiled, &query, &decision);
	cr_expect_str_eq(policy_says(&world, &decision), "allow all");
	query.port = 3;
	sl_decide(world.compiled, &query, &decision);
	cr_expect_str_eq(policy_says(&world, &decision), "deny endpoint");
}
