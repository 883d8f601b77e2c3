/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables for the guard: bits, ports as prefixes, order, limits. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/bits.h"
#include "policy_world.h"

Test(policy_compile, port_ranges_become_prefixes)
{
	static const uint16_t ends[] = { 0,    1,    2,    3,    7,     8,     100,   443,
					 8000, 8010, 8191, 8192, 32767, 32768, 65534, 65535 };
	struct sl_port_prefix out[SL_PORT_PREFIXES_MAX];
	const size_t count = sizeof(ends) / sizeof(ends[0]);

	for (size_t i = 0; i < count; i++) {
		for (size_t j = i; j < count; j++) {
			size_t n = sl_port_prefixes(ends[i], ends[j], out);
			uint32_t next = ends[i];

			cr_assert_leq(n, SL_PORT_PREFIXES_MAX);
			/* In order, without gap or overlap, each aligned to its size. */
			for (size_t k = 0; k < n; k++) {
				uint32_t size = 1u << (16 - out[k].bits);

				cr_assert_eq(out[k].port, next);
				cr_assert_eq(out[k].port % size, 0);
				next += size;
			}
			cr_assert_eq(next, ends[j] + 1u, "%u-%u", ends[i], ends[j]);
		}
	}
	cr_expect_eq(sl_port_prefixes(0, 65535, out), 1);
	cr_expect_eq(sl_port_prefixes(1, 65534, out), 30);
}

Test(policy_compile, binaries_of_the_same_entries_share_a_bit)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world,
			  "version: 1\nnetwork_policies:\n"
			  "  a: {binaries: [{path: /1}, {path: /2, descendants: false},"
			  " {path: /3}, {path: /4, strict: true}, {path: /5, script: /s}]}\n"
			  "  b: {binaries: [{path: /3}, {path: /1, script: /s}]}\n");
	/* {1, 2}, {3}, {4}, {5}, and 1 with a script. */
	cr_expect_eq(sl_compiled_bit_count(world.compiled), 5);
}

static char rows[4096];

static int write_path(const struct sl_path_row *row, void *arg)
{
	static const char kinds[] = "epg";
	size_t used = strlen(rows);

	(void)arg;
	snprintf(rows + used, sizeof(rows) - used, "%c %.*s %llx %llx\n", kinds[row->kind],
		 (int)row->len, row->text, row->grant->own.word[0], row->grant->inherited.word[0]);
	return 0;
}

static int write_dest(const struct sl_dest_row *row, void *arg)
{
	const struct policy_world *world = arg;
	struct sl_class class = sl_compiled_class(world->compiled, row->class_id);
	char text[SL_PREFIX_TEXT];
	size_t used = strlen(rows);

	snprintf(rows + used, sizeof(rows) - used, "%u %s %llx%s\n", row->port_class,
		 sl_prefix_format(text, sizeof(text), &row->prefix), class.allowed->word[0],
		 class.flags & SL_CLASS_RESERVED ? " reserved" : "");
	return 0;
}

static int write_port(const struct sl_port_row *row, void *arg)
{
	size_t used = strlen(rows);

	(void)arg;
	snprintf(rows + used, sizeof(rows) - used, "%d %u-%u %u\n", row->transport, row->first,
		 row->last, row->port_class);
	return 0;
}

Test(policy_compile, rows_hold_what_covers_them)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world,
			  "version: 1\nnetwork_policies:\n"
			  "  a: {endpoints: [{cidr: 10.0.0.0/8, ports: [\"1-9\"]}],"
			  " binaries: [{path: /d/**}]}\n"
			  "  b: {endpoints: [{cidr: 10.1.0.0/16, ports: [5, 7]}],"
			  " binaries: [{path: /d/e/**}, {path: /d/x, descendants: false}]}\n"
			  "  c: {endpoints: [{cidr: 10.1.0.0/16, port: 5, transport: udp}],"
			  " binaries: [{path: /f/*/g}]}\n");
	rows[0] = '\0';
	sl_compiled_paths_each(world.compiled, SL_PATHS_EXE, write_path, NULL);
	cr_expect_str_eq(rows, "e /d/x 3 1\np /d/ 1 1\np /d/e/ 3 3\ng /f/*/g 4 4\n");
	rows[0] = '\0';
	sl_compiled_ports_each(world.compiled, write_port, NULL);
	cr_expect_str_eq(rows, "0 1-4 1\n0 5-5 2\n0 6-6 1\n0 7-7 2\n0 8-9 1\n1 5-5 3\n");
	rows[0] = '\0';
	sl_compiled_dests_each(world.compiled, write_dest, &world);
	cr_expect_str_eq(rows, "1 10.0.0.0/8 1\n2 10.0.0.0/8 1\n2 10.1.0.0/16 3\n"
			       "3 10.1.0.0/16 4\n");
}

Test(policy_compile, wide_prefixes_get_barriers)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, "version: 1\nnetwork_policies:\n"
				  "  a: {endpoints: [{cidr: 96.0.0.0/3, port: 1}],"
				  " binaries: [{path: /a}]}\n");
	rows[0] = '\0';
	sl_compiled_dests_each(world.compiled, write_dest, &world);
	cr_expect_str_eq(rows, "1 96.0.0.0/3 1\n1 100.100.100.200 0 reserved\n"
			       "1 127.0.0.0/8 0 reserved\n");
}

Test(policy_compile, what_user_space_has_to_add_is_told)
{
	_cleanup_world_ struct policy_world plain, more;
	struct sl_compiled_needs needs;

	policy_world_load(&plain, "version: 1\nnetwork_policies:\n  a: {binaries: [{path: /a}, "
				  "{path: /b/**}, {path: /b, script: /c}]}\n");
	sl_compiled_needs(plain.compiled, &needs);
	cr_expect_not(needs.globs || needs.digests || needs.scripts);
	policy_world_load(&more,
			  "version: 1\nnetwork_policies:\n  a: {binaries: [{path: /a*}, "
			  "{path: /b, script: /c*}, {path: /d, sha256: "
			  "0000000000000000000000000000000000000000000000000000000000000000}]}\n");
	sl_compiled_needs(more.compiled, &needs);
	cr_expect(needs.globs && needs.digests && needs.scripts);
}

Test(policy_compile, leases_make_classes_that_stay)
{
	_cleanup_world_ struct policy_world world;
	static const char *const names[] = { "x.org", "y.org" };
	const struct sl_addr addr = policy_addr("192.0.2.1");
	uint32_t both = 0, again = 0, one = 0, none = 7;
	size_t before;

	policy_world_load(&world,
			  "version: 1\nnetwork_policies:\n"
			  "  a: {endpoints: [{host: x.org, port: 1}], binaries: [{path: /a}]}\n"
			  "  b: {endpoints: [{host: y.org, port: 1}], binaries: [{path: /b}]}\n");
	before = sl_compiled_class_count(world.compiled);
	cr_expect_eq(sl_compiled_address(world.compiled, SL_TRANSPORT_TCP, 1, &addr, SL_ADDR_REAL,
					 names, 1, &one),
		     0);
	cr_expect_eq(sl_compiled_class_count(world.compiled), before, "x.org's class was there");
	cr_expect_eq(sl_compiled_address(world.compiled, SL_TRANSPORT_TCP, 1, &addr, SL_ADDR_REAL,
					 names, 2, &both),
		     0);
	cr_expect_eq(sl_compiled_class_count(world.compiled), before + 1);
	cr_expect_eq(both, before);
	cr_expect_eq(sl_compiled_class(world.compiled, both).allowed->word[0], 3);
	cr_expect_eq(sl_compiled_address(world.compiled, SL_TRANSPORT_TCP, 1, &addr, SL_ADDR_REAL,
					 names, 2, &again),
		     0);
	cr_expect_eq(again, both);
	cr_expect_eq(sl_compiled_address(world.compiled, SL_TRANSPORT_TCP, 2, &addr, SL_ADDR_REAL,
					 names, 2, &none),
		     0);
	cr_expect_eq(none, SL_CLASS_NONE);
}

/* What the rules of a lease of one name match, as the first word of bits. */
static uint64_t lease_bits(struct policy_world *world, enum sl_addr_kind kind, const char *addr,
			   const char *name)
{
	const struct sl_addr at = policy_addr(addr);
	uint32_t id = 0;

	cr_assert_eq(sl_compiled_address(world->compiled, SL_TRANSPORT_TCP, 1, &at, kind, &name, 1,
					 &id),
		     0);
	return id == SL_CLASS_NONE ? 0 : sl_compiled_class(world->compiled, id).allowed->word[0];
}

/*
 * A synthetic address is what its name may have, on all the name's ports; which real address
 * that is to be is another question. Rules for addresses hold for it as for any.
 */
Test(policy_compile, synthetic_leases)
{
	_cleanup_world_ struct policy_world world;
	static const char wild[] = "a.x.org", narrow[] = "y.org", pool[] = "fd73:6c75:6963:1::1";

	policy_world_load(
		&world,
		"version: 1\nnetwork_policies:\n"
		"  a: {endpoints: [{host: '*.x.org', port: 1}], binaries: [{path: /a}]}\n"
		"  b: {endpoints: [{host: y.org, port: 1, allowed_ips: [10.0.0.0/8]}],\n"
		"      binaries: [{path: /b}]}\n"
		"  c: {endpoints: [{cidr: 'fd73::/16', port: 1}], binaries: [{path: /c}]}\n");
	cr_expect_eq(lease_bits(&world, SL_ADDR_REAL, pool, wild), 4);
	cr_expect_eq(lease_bits(&world, SL_ADDR_SYNTHETIC, pool, wild), 1 | 4);
	cr_expect_eq(lease_bits(&world, SL_ADDR_REAL, pool, narrow), 4);
	cr_expect_eq(lease_bits(&world, SL_ADDR_SYNTHETIC, pool, narrow), 2 | 4);
	cr_expect_eq(lease_bits(&world, SL_ADDR_SYNTHETIC, pool, "z.org"), 4);
	cr_expect_eq(lease_bits(&world, SL_ADDR_REAL, "198.18.0.1", narrow), 0);
	cr_expect_eq(lease_bits(&world, SL_ADDR_SYNTHETIC, "198.18.0.1", narrow), 2);
}

/* What stands for a name is decided by the name; what it is dialled as, later. */
Test(policy_compile, synthetic_addresses_are_decided)
{
	_cleanup_world_ struct policy_world world;
	static const char *const name = "a.x.org";
	const struct sl_image image = { .path = "/a" };
	struct sl_query query = { .images = &image,
				  .image_count = 1,
				  .transport = SL_TRANSPORT_TCP,
				  .port = 443,
				  .addr = policy_addr("fd73:6c75:6963:1::1"),
				  .names = &name,
				  .name_count = 1 };
	struct sl_decision decision;

	policy_world_load(&world, "version: 1\nnetwork_policies:\n"
				  "  w: {endpoints: [{host: '*.x.org', port: 443}],\n"
				  "      binaries: [{path: /a}]}\n");
	sl_decide(world.compiled, &query, &decision);
	cr_expect_str_eq(policy_says(&world, &decision), "deny reserved-address");
	query.kind = SL_ADDR_SYNTHETIC;
	sl_decide(world.compiled, &query, &decision);
	cr_expect_str_eq(policy_says(&world, &decision), "allow w");
	query.port = 444;
	sl_decide(world.compiled, &query, &decision);
	cr_expect_str_eq(policy_says(&world, &decision), "deny endpoint");
}

/* A policy whose parts `line` writes, compiled; what is wrong with it. */
static void refused(unsigned int entries, const char *line, const char *expected)
{
	struct sl_compiled *compiled = NULL;
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };
	size_t size = 64 + entries * (strlen(line) + 64), used;
	char *text = malloc(size);

	cr_assert_not_null(text);
	used = (size_t)snprintf(text, size, "version: 1\nnetwork_policies:\n");
	for (unsigned int i = 0; i < entries; i++) {
		used += (size_t)snprintf(text + used, size - used, "  e%u: ", i);
		for (const char *at = line; *at; at++) {
			if (*at == '#')
				used += (size_t)snprintf(text + used, size - used, "%u", i + 1);
			else
				text[used++] = *at;
		}
		text[used++] = '\n';
	}
	cr_assert_eq(sl_policy_load(&policy, text, used, "p.yaml", &err), 0, "%s", err.text);
	cr_expect_eq(sl_compiled_new(&compiled, policy, &err), -E2BIG);
	cr_expect_null(compiled);
	cr_expect_str_eq(err.text, expected);
	sl_policy_free(&policy);
	free(text);
}

Test(policy_compile, limits_are_named)
{
	refused(513, "{binaries: [{path: /b#}]}",
		"p.yaml: its binaries fall into 513 classes; at most 512 are possible");
	refused(1200,
		"{endpoints: [{cidr: 10.0.0.1, port: #}, {host: h#.x.org, "
		"ports: [\"1-2000\"]}], binaries: [{path: /b}]}",
		"p.yaml: more than 1048576 names times kinds of ports");
	refused(1200,
		"{endpoints: [{cidr: 10.0.0.1, port: #}, {cidr: \"2001:db8::#\", "
		"ports: [\"1-2000\"]}], binaries: [{path: /b}]}",
		"p.yaml: more than 1048576 addresses times kinds of ports");
}

/* What the kernel has room for, and who matches the rest. */
static void border(size_t len, const char *end, bool globs)
{
	_cleanup_world_ struct policy_world world = { 0 };
	struct sl_image_bits bits;
	struct sl_compiled_needs needs;
	struct sl_image image = { 0 };
	char path[5000], yaml[6000];

	memset(path, 'a', len);
	for (size_t i = 0; i < len; i += 200)
		path[i] = '/';
	path[len - 1] = *end ? '/' : 'a';
	path[len] = '\0';
	snprintf(yaml, sizeof(yaml),
		 "version: 1\nnetwork_policies:\n  a:\n    binaries: [{path: %s%s}]\n", path, end);
	policy_world_load(&world, yaml);
	sl_compiled_needs(world.compiled, &needs);
	cr_expect_eq(needs.globs, globs, "%zu bytes and '%s'", len, end);
	image.path = path;
	if (*end)
		strcpy(path + len, "x");
	sl_compiled_image(world.compiled, &image, &bits);
	cr_expect(sl_bits_test(&bits.granted.own, 0), "%zu bytes and '%s'", len, end);
	strcat(path, *end ? "/y" : "y");
	path[len - 2] = 'b';
	sl_compiled_image(world.compiled, &image, &bits);
	cr_expect_not(sl_bits_test(&bits.granted.own, 0), "%zu bytes and '%s'", len, end);
}

Test(policy_compile, long_paths)
{
	for (size_t len = 249; len <= 257; len++) {
		border(len, "", len > 250);
		border(len, "**", len > 251);
	}
	border(4095, "", true);
	border(4093, "**", true);
}
