/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random policies and queries: decide() against the reference, and the tables as the guard
 * reads them against decide(). All from small pools, so that rules overlap in every way.
 */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/bits.h"
#include "policy_naive.h"
#include "policy_world.h"

#define POLICIES 2000
#define QUERIES 30

static const char *const hosts[] = { "x.org",        "'*.x.org'", "'**.x.org'", "a.x.org",
				     "'**.a.x.org'", "y.org",     "'*.y.org'" };
static const char *const cidrs[] = {
	"10.0.0.0/8",   "10.1.0.0/16", "10.1.2.3",        "0.0.0.0/0",       "'::/0'",
	"192.0.2.0/24", "192.0.2.1",   "128.0.0.0/1",     "'2001:db8::/32'", "'2001:db8::1'",
	"'::/1'",       "0.0.0.0/1",   "'::fffe:0:0/95'", "'64:ff9b::/64'",  "'fe00::/7'",
};
static const char *const reserved_cidrs[] = { "127.0.0.1",      "127.0.0.0/8",
					      "169.254.0.0/16", "169.254.169.254",
					      "'fe80::/10'",    "'::1'",
					      "'::/96'",        "'64:ff9b::7f00:1'" };
static const char *const addresses[] = {
	"10.0.0.1",
	"10.1.0.1",
	"10.1.2.3",
	"192.0.2.1",
	"192.0.2.2",
	"198.51.100.1",
	"127.0.0.1",
	"169.254.169.254",
	"169.254.1.1",
	"0.0.0.0",
	"2001:db8::1",
	"2001:db8::2",
	"::1",
	"::2",
	"fe80::1",
	"ff02::1",
	"64:ff9b::7f00:1",
	"64:ff9b::a00:1",
	"fd00::1",
	"1.1.1.1",
	"::fffe:0:1",
	"255.255.255.255",
	"8000::1",
};
static const char *const names[] = { "x.org",   "a.x.org",   "b.a.x.org", "y.org",
				     "a.y.org", "b.a.y.org", "org",       "ax.org" };
static const char *const paths[] = { "/d/a", "/d/a/b", "/d/**",  "/d/a/**", "/e",
				     "/e/*", "/**",    "/d/*/b", "/**/b" };
static const char *const files[] = { "/d/a", "/d/a/b", "/d/c", "/d/a/c/b", "/e", "/e/x", "/f" };
static const char *const ports[] = { "port: 1",
				     "port: 2",
				     "ports: [\"1-3\"]",
				     "ports: [2, 4]",
				     "ports: [\"1-65535\"]",
				     "ports: [65535, \"3-4\"]" };
static const uint16_t port_numbers[] = { 1, 2, 3, 4, 5, 65535 };
static const uint8_t digests[3][SL_SHA256_LEN] = { { 0x11 }, { 0x22 }, { 0x33 } };
static const char *const digest_texts[] = {
	"1100000000000000000000000000000000000000000000000000000000000000",
	"2200000000000000000000000000000000000000000000000000000000000000",
};

#define PICK(pool) (pool)[(size_t)random() % ARRAY_SIZE(pool)]

static bool one_in(unsigned int n)
{
	return (unsigned long)random() % n == 0;
}

struct text {
	char data[16384];
	size_t used;
};

static void put(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text->used += (size_t)vsnprintf(text->data + text->used, sizeof(text->data) - text->used,
					fmt, args);
	va_end(args);
	cr_assert_lt(text->used, sizeof(text->data));
}

static void put_endpoint(struct text *text)
{
	put(text, "    - {");
	if (one_in(3)) {
		put(text, "host: %s, ", PICK(hosts));
		if (one_in(3))
			put(text, "allowed_ips: [%s, %s], ", PICK(cidrs), PICK(cidrs));
	} else if (one_in(4)) {
		put(text, "cidr: %s, allow_reserved: true, ", PICK(reserved_cidrs));
	} else if (one_in(5)) {
		put(text, "allowed_ips: [%s, %s], ", PICK(cidrs), PICK(cidrs));
	} else {
		put(text, "cidr: %s, ", PICK(cidrs));
	}
	put(text, "%s%s}\n", PICK(ports), one_in(4) ? ", transport: udp" : "");
}

static void put_binary(struct text *text)
{
	put(text, "    - {path: '%s'", PICK(paths));
	if (one_in(4))
		put(text, ", script: '%s'", PICK(paths));
	if (one_in(4))
		put(text, ", sha256: '%s'", PICK(digest_texts));
	if (one_in(3))
		put(text, ", descendants: false");
	if (one_in(5))
		put(text, ", strict: true");
	put(text, "}\n");
}

static void put_policy(struct text *text)
{
	unsigned int entries = 1 + (unsigned int)random() % 8;

	put(text, "version: 1\n%s%snetwork_policies:\n", one_in(5) ? "mode: audit\n" : "",
	    one_in(3) ? "integrity: first-use\n" : "");
	for (unsigned int i = 0; i < entries; i++) {
		put(text, "  e%u:\n    endpoints:\n", i);
		for (unsigned int n = 1 + (unsigned int)random() % 4; n > 0; n--)
			put_endpoint(text);
		if (one_in(4))
			put(text, "    listen:\n    - {%s%s}\n", PICK(ports),
			    one_in(2) ? ", transport: udp" : "");
		put(text, "    binaries:\n");
		for (unsigned int n = 1 + (unsigned int)random() % 3; n > 0; n--)
			put_binary(text);
	}
}

struct asked {
	struct sl_image images[3];
	const char *names[2];
	const char *addr;
	struct sl_query query;
};

static void pick_query(struct asked *asked)
{
	memset(asked, 0, sizeof(*asked));
	asked->query.image_count = 1 + (size_t)random() % 3;
	for (size_t i = 0; i < asked->query.image_count; i++) {
		struct sl_image *image = &asked->images[i];

		image->path = one_in(20) ? NULL : PICK(files);
		image->script = one_in(2) ? NULL : PICK(files);
		image->sha256 = one_in(4) ? NULL : PICK(digests);
		image->changed = one_in(6);
		image->loader = one_in(5);
	}
	asked->query.name_count = (size_t)random() % 3;
	for (size_t i = 0; i < asked->query.name_count; i++)
		asked->names[i] = PICK(names);
	asked->addr = PICK(addresses);
	asked->query.addr = policy_addr(asked->addr);
	asked->query.kind = one_in(4) ? SL_ADDR_OWN : SL_ADDR_REAL;
	asked->query.images = asked->images;
	asked->query.names = asked->names;
	asked->query.transport = one_in(4) ? SL_TRANSPORT_UDP : SL_TRANSPORT_TCP;
	asked->query.port = PICK(port_numbers);
	asked->query.listen = one_in(8);
}

struct lpm {
	uint32_t port_class;
	struct sl_prefix addr;
	int best;
	uint32_t class_id;
};

/* As an LPM trie does it: of the rows whose bits are those of the address, the longest. */
static int lpm_row(const struct sl_dest_row *row, void *arg)
{
	struct lpm *lpm = arg;

	if (row->port_class == lpm->port_class && (int)row->prefix.len > lpm->best &&
	    sl_prefix_covers_bits(&row->prefix, &lpm->addr)) {
		lpm->best = row->prefix.len;
		lpm->class_id = row->class_id;
	}
	return 0;
}

struct port_search {
	const struct sl_query *query;
	uint32_t port_class;
};

static int port_row(const struct sl_port_row *row, void *arg)
{
	struct port_search *search = arg;

	if (row->transport == search->query->transport && row->first <= search->query->port &&
	    search->query->port <= row->last) {
		cr_assert_eq(search->port_class, SL_PORT_CLASS_NONE, "a port in two ranges");
		search->port_class = row->port_class;
	}
	return 0;
}

/* What the guard would say: rows of the tables only, the lease's class made beforehand. */
static bool guard_allows(struct policy_world *world, const struct asked *asked)
{
	struct port_search search = { .query = &asked->query };
	struct lpm lpm = { .addr = { asked->query.addr, 128 }, .best = -1 };
	struct sl_lineage_bits lineage;
	uint32_t class_id = SL_CLASS_NONE;

	sl_query_lineage(world->compiled, &asked->query, &lineage);
	cr_assert_eq(sl_compiled_ports_each(world->compiled, port_row, &search), 0);
	lpm.port_class = search.port_class;
	sl_compiled_dests_each(world->compiled, lpm_row, &lpm);
	if (asked->query.name_count)
		cr_assert_eq(sl_compiled_address(world->compiled, asked->query.transport,
						 asked->query.port, &asked->query.addr,
						 asked->query.kind, asked->query.names,
						 asked->query.name_count, &class_id),
			     0);
	else
		class_id = lpm.class_id;
	cr_assert_lt(class_id, sl_compiled_class_count(world->compiled));
	return lineage.identity &&
	       sl_bits_meet(sl_compiled_class(world->compiled, class_id).allowed, &lineage.match);
}

Test(policy_random, decide_agrees_with_the_reference_and_the_tables, .timeout = 300)
{
	unsigned int seen[SL_REASON_MAX] = { 0 };

	srandom(20261130);
	for (int i = 0; i < POLICIES; i++) {
		_cleanup_world_ struct policy_world world;
		struct text text = { .used = 0 };

		put_policy(&text);
		policy_world_load(&world, text.data);
		for (int j = 0; j < QUERIES; j++) {
			struct sl_decision got, want;
			struct asked asked;

			pick_query(&asked);
			sl_decide(world.compiled, &asked.query, &got);
			policy_naive_decide(world.policy, &asked.query, &want);
			seen[got.reason]++;
			cr_assert(got.verdict == want.verdict && got.reason == want.reason &&
					  got.rule == want.rule,
				  "%s, expected is %s: %s (%s) to %s:%u %s\n%s",
				  policy_says(&world, &got), policy_says(&world, &want),
				  asked.images[0].path, asked.images[0].script, asked.addr,
				  asked.query.port, asked.names[0], text.data);
			cr_assert(asked.query.listen || guard_allows(&world, &asked) ==
								(got.verdict == SL_VERDICT_ALLOW),
				  "tables and decide() differ: %s to %s:%u %s\n%s",
				  asked.images[0].path, asked.addr, asked.query.port,
				  asked.names[0], text.data);
		}
	}
	cr_expect_gt(seen[SL_REASON_NONE], 1000);
	cr_expect_gt(seen[SL_REASON_ENDPOINT], 1000);
	cr_expect_gt(seen[SL_REASON_BINARY], 1000);
	cr_expect_gt(seen[SL_REASON_INTEGRITY], 1000);
	cr_expect_gt(seen[SL_REASON_NO_IDENTITY], 1000);
	cr_expect_gt(seen[SL_REASON_RESERVED_ADDRESS], 1000);
}
