/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verdicts: scenarios P1 to P8, each reason, lineages, scripts, pins, ports, near misses. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/bits.h"
#include "policy_world.h"

static const char basic[] = "version: 1\n"
			    "network_policies:\n"
			    "  registry:\n"
			    "    endpoints:\n"
			    "      - {host: registry.example.org, port: 443}\n"
			    "      - {cidr: 192.0.2.0/24, ports: [8080, \"9000-9010\"]}\n"
			    "    binaries: [{path: /usr/bin/node}, {path: /opt/**}]\n"
			    "  mirror:\n"
			    "    endpoints: [{cidr: 192.0.2.7, port: 8080}]\n"
			    "    binaries: [{path: /usr/bin/curl, descendants: false}]\n";

#define SAYS(world, decision, expected) \
	cr_expect_str_eq(policy_says(&(world), &(decision)), expected)

Test(policy_decide, p1_p2_p3_allowed_endpoint_binary)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, basic);
	policy_world_says(&world, "/usr/bin/node", "192.0.2.1", 8080, NULL, "allow registry");
	policy_world_says(&world, "/usr/bin/node", "192.0.2.1", 9010, NULL, "allow registry");
	policy_world_says(&world, "/usr/bin/node", "192.0.2.1", 9011, NULL, "deny endpoint");
	policy_world_says(&world, "/usr/bin/node", "192.0.3.1", 8080, NULL, "deny endpoint");
	policy_world_says(&world, "/usr/bin/nodejs", "192.0.2.1", 8080, NULL,
			  "deny binary registry");
	policy_world_says(&world, "/usr/bin/node", "198.51.100.1", 443, "registry.example.org",
			  "allow registry");
	policy_world_says(&world, "/usr/bin/node", "198.51.100.1", 443, NULL, "deny endpoint");
	policy_world_says(&world, "/usr/bin/node", "198.51.100.1", 443, "other.example.org",
			  "deny endpoint");
	policy_world_says(&world, "/usr/bin/node", "198.51.100.1", 80, "registry.example.org",
			  "deny endpoint");
	policy_world_says(&world, "/usr/bin/sh", "198.51.100.1", 443, "registry.example.org",
			  "deny binary registry");
	/* An address within another entry's prefix: both entries name it, each for its own. */
	policy_world_says(&world, "/usr/bin/node", "192.0.2.7", 8080, NULL, "allow registry");
	policy_world_says(&world, "/usr/bin/curl", "192.0.2.7", 8080, NULL, "allow mirror");
	policy_world_says(&world, "/usr/bin/curl", "192.0.2.8", 8080, NULL, "deny binary registry");
	policy_world_says(&world, "/usr/bin/sh", "192.0.2.7", 8080, NULL, "deny binary registry");
}

Test(policy_decide, transport_counts)
{
	_cleanup_world_ struct policy_world world;
	const struct sl_image image = { .path = "/a" };
	struct sl_query query = { .images = &image, .image_count = 1, .port = 53 };
	struct sl_decision decision;

	policy_world_load(&world, "version: 1\nnetwork_policies:\n  e:\n"
				  "    endpoints: [{cidr: 192.0.2.1, port: 53, transport: udp}]\n"
				  "    binaries: [{path: /a}]\n");
	query.addr = policy_addr("192.0.2.1");
	sl_decide(world.compiled, &query, &decision);
	SAYS(world, decision, "deny endpoint");
	query.transport = SL_TRANSPORT_UDP;
	sl_decide(world.compiled, &query, &decision);
	SAYS(world, decision, "allow e");
}

Test(policy_decide, empty_policy_denies_and_audit_lets_pass)
{
	_cleanup_world_ struct policy_world empty, audit;
	struct sl_decision decision;

	policy_world_load(&empty, "version: 1\n");
	policy_world_says(&empty, "/a", "192.0.2.1", 80, "a.example.org", "deny endpoint");
	policy_world_load(&audit, "version: 1\nmode: audit\n");
	decision = policy_world_ask(&audit, "/a", NULL, "192.0.2.1", 80, NULL);
	SAYS(audit, decision, "audit endpoint");
}

Test(policy_decide, descendants)
{
	_cleanup_world_ struct policy_world world;
	struct sl_decision decision;

	policy_world_load(&world, basic);
	decision =
		policy_world_ask(&world, "/usr/bin/git", "/usr/bin/node", "192.0.2.1", 8080, NULL);
	SAYS(world, decision, "allow registry");
	decision = policy_world_ask(&world, "/usr/bin/git", "/opt/x/y", "192.0.2.1", 8080, NULL);
	SAYS(world, decision, "allow registry");
	decision =
		policy_world_ask(&world, "/usr/bin/git", "/usr/bin/curl", "192.0.2.7", 8080, NULL);
	SAYS(world, decision, "deny binary registry");
	decision =
		policy_world_ask(&world, "/usr/bin/curl", "/usr/bin/curl", "192.0.2.7", 8080, NULL);
	SAYS(world, decision, "allow mirror");
}

Test(policy_decide, without_identity_nothing_is_allowed)
{
	_cleanup_world_ struct policy_world world;
	const struct sl_query nobody = { .port = 8080 };
	struct sl_decision decision;

	policy_world_load(&world, basic);
	decision = policy_world_ask(&world, NULL, "/usr/bin/node", "192.0.2.1", 8080, NULL);
	SAYS(world, decision, "deny no-identity registry");
	decision = policy_world_ask(&world, "/usr/bin/node", NULL, "192.0.2.1", 8080, NULL);
	SAYS(world, decision, "allow registry");
	sl_decide(world.compiled, &nobody, &decision);
	cr_expect_eq(decision.reason, SL_REASON_NO_IDENTITY);
}

/* P4 is the caller's: it asks with the path that the kernel opened; both spellings are rules. */
Test(policy_decide, p5_globs)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, "version: 1\nnetwork_policies:\n  e:\n"
				  "    endpoints: [{cidr: 192.0.2.1, port: 1}]\n"
				  "    binaries: [{path: /d/**}, {path: /lib/*/agent}]\n");
	policy_world_says(&world, "/d/a/b", "192.0.2.1", 1, NULL, "allow e");
	policy_world_says(&world, "/dx/a", "192.0.2.1", 1, NULL, "deny binary e");
	policy_world_says(&world, "/lib/x/agent", "192.0.2.1", 1, NULL, "allow e");
	policy_world_says(&world, "/lib/x/y/agent", "192.0.2.1", 1, NULL, "deny binary e");
}

Test(policy_decide, ipv6_prefixes_leave_ipv4_out)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, "version: 1\nnetwork_policies:\n"
				  "  six: {endpoints: [{cidr: '::/0', port: 1}],"
				  " binaries: [{path: /a}]}\n"
				  "  four: {endpoints: [{cidr: 192.0.2.0/24, port: 1}],"
				  " binaries: [{path: /b}]}\n");
	policy_world_says(&world, "/a", "2001:db8::1", 1, NULL, "allow six");
	policy_world_says(&world, "/a", "ffff::1", 1, NULL, "deny reserved-address");
	policy_world_says(&world, "/a", "fdff::1", 1, NULL, "allow six");
	policy_world_says(&world, "/a", "198.51.100.1", 1, NULL, "deny endpoint");
	policy_world_says(&world, "/a", "192.0.2.1", 1, NULL, "deny binary four");
}

static const uint8_t good[SL_SHA256_LEN] = { 0xab }, other[SL_SHA256_LEN] = { 0xcd };
#define GOOD "ab00000000000000000000000000000000000000000000000000000000000000"

static struct sl_decision ask_image(const struct policy_world *world, struct sl_image image)
{
	const struct sl_query query = {
		.images = &image,
		.image_count = 1,
		.port = 1,
		.addr = policy_addr("192.0.2.1"),
	};
	struct sl_decision decision;

	sl_decide(world->compiled, &query, &decision);
	return decision;
}

Test(policy_decide, p8_integrity)
{
	_cleanup_world_ struct policy_world world;
	struct sl_decision decision;

	policy_world_load(&world,
			  "version: 1\nnetwork_policies:\n"
			  "  pinned: {endpoints: [{cidr: 192.0.2.1, port: 1}], binaries: "
			  "[{path: /a, sha256: " GOOD "}, {path: /w/*, sha256: " GOOD "}]}\n"
			  "  free: {endpoints: [{cidr: 192.0.2.1, port: 1}], binaries: "
			  "[{path: /t}]}\n");
	decision = ask_image(&world, (struct sl_image){ .path = "/a", .sha256 = good });
	SAYS(world, decision, "allow pinned");
	decision = ask_image(&world, (struct sl_image){ .path = "/a", .sha256 = other });
	SAYS(world, decision, "deny integrity pinned");
	decision = ask_image(&world, (struct sl_image){ .path = "/a" });
	SAYS(world, decision, "deny integrity pinned");
	decision = ask_image(&world, (struct sl_image){ .path = "/b", .sha256 = good });
	SAYS(world, decision, "deny binary pinned");
	decision = ask_image(&world, (struct sl_image){ .path = "/w/x", .sha256 = good });
	SAYS(world, decision, "allow pinned");
	decision = ask_image(&world, (struct sl_image){ .path = "/w/x", .sha256 = other });
	SAYS(world, decision, "deny integrity pinned");
	/* Trust on first use: the caller knows that the bytes changed. A pin wins. */
	decision = ask_image(&world, (struct sl_image){ .path = "/t" });
	SAYS(world, decision, "allow free");
	decision = ask_image(&world, (struct sl_image){ .path = "/t", .changed = true });
	SAYS(world, decision, "deny integrity free");
	decision = ask_image(&world,
			     (struct sl_image){ .path = "/a", .sha256 = good, .changed = true });
	SAYS(world, decision, "allow pinned");
}

/* A pin that has the path says for all its rules whether it is what it should be. */
Test(policy_decide, pins_win_over_first_use)
{
	_cleanup_world_ struct policy_world world;
	struct sl_decision decision;

	policy_world_load(&world, "version: 1\nintegrity: first-use\nnetwork_policies:\n"
				  "  other: {endpoints: [{cidr: 192.0.2.9, port: 1}], binaries: "
				  "[{path: /a, sha256: " GOOD "}]}\n"
				  "  all: {endpoints: [{cidr: 192.0.2.1, port: 1}], binaries: "
				  "[{path: /**}]}\n");
	decision = ask_image(&world,
			     (struct sl_image){ .path = "/a", .sha256 = good, .changed = true });
	SAYS(world, decision, "allow all");
	decision = ask_image(&world, (struct sl_image){ .path = "/a", .sha256 = other });
	SAYS(world, decision, "deny integrity all");
	decision = ask_image(&world, (struct sl_image){ .path = "/b", .sha256 = other });
	SAYS(world, decision, "allow all");
	decision = ask_image(&world, (struct sl_image){ .path = "/b", .changed = true });
	SAYS(world, decision, "deny integrity all");
}

/* What is said to images whose socket `opener` (NULL: they) opened. */
static void strictly(const struct policy_world *world, const struct sl_image *images, size_t count,
		     const struct sl_image *opener, const char *expected)
{
	const struct sl_query query = { .images = images, .image_count = count };
	const struct sl_query opened = { .images = opener, .image_count = 1 };
	struct sl_query asked = {
		.images = images,
		.image_count = count,
		.port = 1,
		.addr = policy_addr("192.0.2.1"),
	};
	struct sl_lineage_bits bits, opener_bits;
	struct sl_decision decision, same;

	if (opener) {
		sl_query_lineage(world->compiled, &opened, &opener_bits);
		asked.opener = &opener_bits;
	}
	sl_decide(world->compiled, &asked, &decision);
	/* The same by the lineage's bits. */
	sl_query_lineage(world->compiled, &query, &bits);
	asked.lineage = &bits;
	sl_decide(world->compiled, &asked, &same);
	SAYS(*world, decision, expected);
	SAYS(*world, same, expected);
}

Test(policy_decide, strict)
{
	static const struct sl_image plain = { .path = "/s" };
	static const struct sl_image loaded = { .path = "/s", .loader = true };
	static const struct sl_image child[] = { { .path = "/c" }, { .path = "/s" } };
	static const struct sl_image loaded_child[] = { { .path = "/c", .loader = true },
							{ .path = "/s" } };
	static const struct sl_image beyond[] = { { .path = "/d" },
						  { .path = "/c", .loader = true },
						  { .path = "/s" } };
	static const struct sl_image loose = { .path = "/l", .loader = true };
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, "version: 1\nnetwork_policies:\n"
				  "  e: {endpoints: [{cidr: 192.0.2.1, port: 1}], binaries: "
				  "[{path: /s, strict: true}, {path: /l}]}\n");
	strictly(&world, &plain, 1, NULL, "allow e");
	strictly(&world, &loaded, 1, NULL, "deny strict e");
	strictly(&world, child, 2, NULL, "allow e");
	strictly(&world, loaded_child, 2, NULL, "deny strict e");
	strictly(&world, beyond, 3, NULL, "deny binary e");
	strictly(&world, &loose, 1, NULL, "allow e");
	/* Whose socket it is. */
	strictly(&world, &plain, 1, &plain, "allow e");
	strictly(&world, &plain, 1, &loose, "deny strict e");
	strictly(&world, &plain, 1, &loaded, "deny strict e");
	strictly(&world, &loose, 1, &plain, "allow e");
}

Test(policy_decide, scripts_narrow)
{
	_cleanup_world_ struct policy_world world;
	struct sl_decision decision;

	policy_world_load(&world,
			  "version: 1\nnetwork_policies:\n"
			  "  e: {endpoints: [{cidr: 192.0.2.1, port: 1}], binaries: "
			  "[{path: /node, script: /npm}, {path: /python, script: /pip/**}]}\n");
	decision = ask_image(&world, (struct sl_image){ .path = "/node", .script = "/npm" });
	SAYS(world, decision, "allow e");
	decision = ask_image(&world, (struct sl_image){ .path = "/python", .script = "/pip/3" });
	SAYS(world, decision, "allow e");
	decision = ask_image(&world, (struct sl_image){ .path = "/node" });
	SAYS(world, decision, "deny binary e");
	decision = ask_image(&world, (struct sl_image){ .path = "/node", .script = "/pip/3" });
	SAYS(world, decision, "deny binary e");
	decision = ask_image(&world, (struct sl_image){ .path = "/python", .script = "/npm" });
	SAYS(world, decision, "deny binary e");
	decision = ask_image(&world, (struct sl_image){ .path = "/npm", .script = "/node" });
	SAYS(world, decision, "deny binary e");
}

Test(policy_decide, listeners)
{
	_cleanup_world_ struct policy_world world;
	const struct sl_image image = { .path = "/a" };
	struct sl_query query = { .images = &image, .image_count = 1, .listen = true };
	struct sl_decision decision;

	policy_world_load(&world, "version: 1\nnetwork_policies:\n"
				  "  x: {listen: [{ports: [\"80-90\"]}], binaries: [{path: /b}]}\n"
				  "  y: {listen: [{port: 85}], binaries: [{path: /a}]}\n");
	query.port = 85;
	sl_decide(world.compiled, &query, &decision);
	SAYS(world, decision, "allow y");
	query.port = 84;
	sl_decide(world.compiled, &query, &decision);
	SAYS(world, decision, "deny binary x");
	query.port = 91;
	sl_decide(world.compiled, &query, &decision);
	SAYS(world, decision, "deny endpoint");
	query.port = 85;
	query.transport = SL_TRANSPORT_UDP;
	sl_decide(world.compiled, &query, &decision);
	SAYS(world, decision, "deny endpoint");
}

Test(policy_decide, own_loopback_needs_no_rule)
{
	_cleanup_world_ struct policy_world world;
	struct sl_query query = { .own_loopback = true, .port = 1 };
	struct sl_decision decision;

	policy_world_load(&world, "version: 1\n");
	sl_decide(world.compiled, &query, &decision);
	SAYS(world, decision, "allow");
}

static size_t near(const struct policy_world *world, const char *exe, const char *addr,
		   uint16_t port, struct sl_near *out, size_t max)
{
	const struct sl_image image = { .path = exe };
	const struct sl_query query = {
		.images = &image,
		.image_count = 1,
		.port = port,
		.addr = policy_addr(addr),
	};
	struct sl_decision decision;

	sl_decide(world->compiled, &query, &decision);
	return sl_near_miss(world->compiled, &query, &decision, out, max);
}

Test(policy_decide, near_misses)
{
	_cleanup_world_ struct policy_world world;
	struct sl_near out[SL_NEAR_MAX];

	policy_world_load(&world, basic);
	cr_assert_eq(near(&world, "/usr/bin/sh", "192.0.2.7", 8080, out, SL_NEAR_MAX), 3);
	cr_expect_str_eq(out[0].binary->path, "/usr/bin/node");
	cr_expect_str_eq(out[2].binary->path, "/usr/bin/curl");
	cr_expect_eq(out[2].rule, 1);
	/* The one with the same address comes first, though later in the file. */
	cr_assert_eq(near(&world, "/usr/bin/node", "192.0.2.7", 443, out, SL_NEAR_MAX), 2);
	cr_expect_eq(out[0].endpoint, &world.policy->entries[0].endpoints[1]);
	cr_expect_eq(out[1].endpoint, &world.policy->entries[0].endpoints[0]);
	cr_assert_eq(near(&world, "/usr/bin/node", "192.0.2.7", 443, out, 1), 1);
	cr_expect_eq(out[0].endpoint, &world.policy->entries[0].endpoints[1]);
	cr_expect_eq(near(&world, "/usr/bin/sh", "192.0.3.7", 8080, out, SL_NEAR_MAX), 0);
	cr_expect_eq(near(&world, "/usr/bin/node", "192.0.2.7", 8080, out, SL_NEAR_MAX), 0);
}

Test(policy_decide, near_misses_of_listeners)
{
	const struct sl_decision denied = { SL_VERDICT_DENY, SL_REASON_LISTEN, SL_RULE_NONE };
	_cleanup_world_ struct policy_world world;
	struct sl_image image = { .path = "/a" };
	struct sl_query query = { .images = &image, .image_count = 1, .port = 8080 };
	struct sl_near out[SL_NEAR_MAX];

	policy_world_load(&world,
			  "version: 1\nnetwork_policies:\n"
			  "  w: {listen: [{port: 8080}], binaries: [{path: /b}]}\n"
			  "  x: {endpoints: [{host: a.org, port: 1}], binaries: [{path: /a}]}\n"
			  "  y: {listen: [{port: 85}], binaries: [{path: /a}]}\n");
	cr_assert_eq(sl_near_miss(world.compiled, &query, &denied, out, SL_NEAR_MAX), 2);
	cr_expect_eq(out[0].rule, 2);
	cr_expect_eq(out[1].rule, 1);
	image.path = "/c";
	cr_expect_eq(sl_near_miss(world.compiled, &query, &denied, out, SL_NEAR_MAX), 0);
}

Test(policy_decide, near_misses_know_that_wide_prefixes_leave_reserved_ranges_out)
{
	_cleanup_world_ struct policy_world world;
	struct sl_near out[SL_NEAR_MAX];

	policy_world_load(&world, "version: 1\nnetwork_policies:\n"
				  "  all: {endpoints: [{cidr: 0.0.0.0/0, port: 2}],"
				  " binaries: [{path: /a}]}\n"
				  "  cloud: {endpoints: [{cidr: 169.254.169.254, port: 2,"
				  " allow_reserved: true}], binaries: [{path: /b}]}\n");
	cr_assert_eq(near(&world, "/c", "169.254.169.254", 2, out, SL_NEAR_MAX), 1);
	cr_expect_str_eq(out[0].binary->path, "/b");
}

Test(policy_decide, words_of_the_enums)
{
	cr_expect_str_eq(sl_reason_name(SL_REASON_NONE), "none");
	cr_expect_str_eq(sl_reason_name(SL_REASON_NO_IDENTITY), "no-identity");
	cr_expect_str_eq(sl_reason_name(SL_REASON_INTERNAL), "internal");
	cr_expect_null(sl_reason_name(SL_REASON_MAX));
	for (int i = 0; i < SL_REASON_MAX; i++) {
		cr_expect_not_null(sl_reason_name((enum sl_reason)i));
		cr_expect_not_null(sl_reason_help((enum sl_reason)i));
		for (int j = 0; j < i; j++)
			cr_expect_str_neq(sl_reason_name((enum sl_reason)i),
					  sl_reason_name((enum sl_reason)j));
	}
	for (int i = 0; i < SL_VERDICT_MAX; i++)
		cr_expect_not_null(sl_verdict_name((enum sl_verdict)i));
	cr_expect_null(sl_verdict_name(SL_VERDICT_MAX));
}
