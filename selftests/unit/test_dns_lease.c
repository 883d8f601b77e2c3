/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Leases and synthetic addresses, with a clock, clients and sockets that the test makes up. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/parse.h"
#include "dns/lease.h"
#include "dns/pool.h"

#define SECOND 1000

/* What the ops answer, and what they were told last. */
static struct world {
	uint32_t alive[16]; /* tgids; 0 ends */
	struct sl_addr used;
	bool is_used;
	int use_error, change_error;
	unsigned int asked_alive, asked_used, changes;
	struct sl_addr changed;
	char names[256]; /* joined by a blank */
} world;

static bool client_alive(void *arg, const struct sl_lease_client *client)
{
	struct world *w = arg;

	w->asked_alive++;
	for (size_t i = 0; i < 16 && w->alive[i]; i++) {
		if (w->alive[i] == client->tgid && client->start_ns == 7)
			return true;
	}
	return false;
}

static int addresses_in_use(void *arg, void (*use)(void *ctx, const struct sl_addr *addr),
			    void *ctx)
{
	struct world *w = arg;

	w->asked_used++;
	if (w->is_used)
		use(ctx, &w->used);
	return w->use_error;
}

static int changed(void *arg, const struct sl_addr *addr, const char *const *names, size_t count)
{
	struct world *w = arg;
	size_t len = 0;

	w->changes++;
	w->changed = *addr;
	w->names[0] = '\0';
	for (size_t i = 0; i < count && len + 1 < sizeof(w->names); i++)
		len += (size_t)snprintf(w->names + len, sizeof(w->names) - len, "%s%s",
					i ? " " : "", names[i]);
	return w->change_error;
}

static bool exact(void *arg, const char *name)
{
	(void)arg;
	return strstr(name, ".exact") != NULL;
}

static const struct sl_leases_ops ops = {
	.client_alive = client_alive,
	.addresses_in_use = addresses_in_use,
	.changed = changed,
	.exact = exact,
};

static struct sl_leases *leases_new(size_t max)
{
	const struct sl_leases_options options = { .ops = &ops, .arg = &world, .max = max };
	struct sl_leases *leases = NULL;

	memset(&world, 0, sizeof(world));
	cr_assert_eq(sl_leases_new(&leases, &options), 0);
	return leases;
}

static struct sl_addr addr_of(const char *text)
{
	struct sl_addr addr;

	cr_assert_eq(sl_parse_addr(text, addr.be), 0);
	return addr;
}

static struct sl_lease_client client_of(uint32_t tgid)
{
	return (struct sl_lease_client){ .tgid = tgid, .start_ns = 7 };
}

static int add(struct sl_leases *leases, const char *name, const char *addr, uint32_t ttl_s,
	       uint32_t tgid, int64_t now_ms)
{
	const struct sl_addr a = addr_of(addr);
	const struct sl_lease_client client = client_of(tgid);

	return sl_leases_add(leases, name, &a, ttl_s, tgid ? &client : NULL, now_ms);
}

static bool leased(const struct sl_leases *leases, const char *addr)
{
	const struct sl_addr a = addr_of(addr);
	char name[SL_LEASE_NAME];

	return sl_leases_name(leases, &a, NULL, name);
}

/* Scenario D1: TTL of one second, and an hour of connecting by who resolved once. */
Test(dns_lease, lasts_as_long_as_its_client)
{
	struct sl_leases *leases = leases_new(0);

	world.alive[0] = 100;
	cr_assert_eq(add(leases, "a.test", "192.0.2.1", 1, 100, 0), 0);
	cr_expect_str_eq(world.names, "a.test");
	for (int64_t now = 0; now <= 3600 * SECOND; now += 5 * SECOND) {
		sl_leases_sweep(leases, now);
		cr_assert(leased(leases, "192.0.2.1"), "at %lld", (long long)now);
	}
	cr_expect_eq(world.asked_used, 0, "a client that lives needs no look at sockets");

	world.alive[0] = 0;
	sl_leases_sweep(leases, 3601 * SECOND);
	cr_expect_not(leased(leases, "192.0.2.1"));
	cr_expect_str_eq(world.names, "");
	cr_expect_eq(sl_leases_live(leases), 0);
	cr_expect_eq(sl_leases_count(leases, SL_LEASES_COUNT_ENDED), 1);
	sl_leases_free(&leases);
}

Test(dns_lease, lasts_as_long_as_a_socket_uses_the_address)
{
	struct sl_leases *leases = leases_new(0);

	cr_assert_eq(add(leases, "a.test", "192.0.2.1", 1, 100, 0), 0);
	cr_assert_eq(add(leases, "b.test", "192.0.2.2", 1, 0, 0), 0);
	world.is_used = true;
	world.used = addr_of("192.0.2.1");
	cr_expect_eq(sl_leases_sweep(leases, 60 * SECOND), -1);
	cr_expect(leased(leases, "192.0.2.1"));
	cr_expect_not(leased(leases, "192.0.2.2"));
	world.is_used = false;
	world.use_error = -EIO;
	sl_leases_sweep(leases, 61 * SECOND);
	cr_expect(leased(leases, "192.0.2.1"), "who can't look ends nothing");
	world.use_error = 0;
	sl_leases_sweep(leases, 62 * SECOND);
	cr_expect_not(leased(leases, "192.0.2.1"));
	sl_leases_free(&leases);
}

Test(dns_lease, lasts_for_its_ttl_and_a_ttl_of_zero_for_a_moment)
{
	struct sl_leases *leases = leases_new(0);

	cr_assert_eq(add(leases, "zero.test", "192.0.2.1", 0, 0, 0), 0);
	cr_assert_eq(add(leases, "long.test", "192.0.2.2", 30, 0, 0), 0);
	cr_assert_eq(add(leases, "max.test", "192.0.2.3", UINT32_MAX, 0, 0), 0);
	cr_assert_eq(add(leases, "long.test", "192.0.2.2", 10, 0, 0), 0);
	cr_expect_eq(sl_leases_sweep(leases, 0), SL_LEASE_MIN_MS);
	cr_expect(leased(leases, "192.0.2.1"));
	cr_expect_eq(sl_leases_sweep(leases, SL_LEASE_MIN_MS), 30 * SECOND - SL_LEASE_MIN_MS);
	cr_expect_not(leased(leases, "192.0.2.1"));
	sl_leases_sweep(leases, 30 * SECOND - 1);
	cr_expect(leased(leases, "192.0.2.2"), "a shorter TTL shortens nothing");
	sl_leases_sweep(leases, 30 * SECOND);
	cr_expect_not(leased(leases, "192.0.2.2"));
	cr_expect(leased(leases, "192.0.2.3"));
	sl_leases_sweep(leases, SL_LEASE_MAX_S * SECOND - 1LL);
	cr_expect(leased(leases, "192.0.2.3"));
	sl_leases_sweep(leases, SL_LEASE_MAX_S * (int64_t)SECOND);
	cr_expect_not(leased(leases, "192.0.2.3"));
	sl_leases_free(&leases);
}

Test(dns_lease, an_address_has_all_its_names_and_each_client_its_own)
{
	struct sl_leases *leases = leases_new(0);
	const struct sl_addr addr = addr_of("2001:db8::1");
	struct sl_lease_client client = client_of(1);
	char name[SL_LEASE_NAME];

	world.alive[0] = 1;
	world.alive[1] = 2;
	cr_assert_eq(add(leases, "a.test", "2001:db8::1", 1, 1, 0), 0);
	cr_assert_eq(add(leases, "b.test", "2001:db8::1", 1, 2, 0), 0);
	cr_expect_str_eq(world.names, "b.test a.test");
	cr_expect(memcmp(&world.changed, &addr, sizeof(addr)) == 0);
	cr_assert(sl_leases_name(leases, &addr, &client, name));
	cr_expect_str_eq(name, "a.test");
	client = client_of(3);
	cr_assert(sl_leases_name(leases, &addr, &client, name));
	cr_expect_str_eq(name, "b.test");
	client = client_of(1);
	cr_assert_eq(add(leases, "b.test", "2001:db8::1", 1, 1, 0), 0);
	cr_expect_eq(world.changes, 2, "the set is as it was");
	cr_assert(sl_leases_name(leases, &addr, &client, name));
	cr_expect_str_eq(name, "b.test", "what it asked last");

	world.alive[1] = 0;
	sl_leases_sweep(leases, 10 * SECOND);
	cr_expect_eq(sl_leases_live(leases), 2, "client 1 asked both");
	cr_expect_eq(world.asked_alive, 2, "once a sweep, however many leases it has");
	sl_leases_free(&leases);
}

Test(dns_lease, a_full_table_refuses_and_pushes_nothing_out)
{
	struct sl_leases *leases = leases_new(2);

	world.alive[0] = 1;
	cr_assert_eq(add(leases, "a.test", "192.0.2.1", 1, 1, 0), 0);
	cr_assert_eq(add(leases, "b.test", "192.0.2.2", 1, 2, 0), 0);
	cr_expect_eq(add(leases, "c.test", "192.0.2.3", 1, 1, 0), -ENOSPC);
	cr_expect_eq(sl_leases_count(leases, SL_LEASES_COUNT_FULL), 1);
	cr_expect_not(leased(leases, "192.0.2.3"));
	cr_expect_eq(add(leases, "b.test", "192.0.2.2", 1, 1, 0), 0, "what is there is renewed");
	cr_expect_eq(add(leases, "b.test", "192.0.2.2", 1, 2, 9 * SECOND), 0);
	world.alive[0] = 0;
	cr_expect_eq(add(leases, "c.test", "192.0.2.3", 1, 1, 10 * SECOND), 0, "a has ended");
	cr_expect(leased(leases, "192.0.2.2"));
	cr_expect_not(leased(leases, "192.0.2.1"));
	sl_leases_free(&leases);
}

Test(dns_lease, an_address_with_too_many_names_refuses_more)
{
	struct sl_leases *leases = leases_new(0);
	char name[32];

	for (int i = 0; i < SL_LEASE_NAMES; i++) {
		snprintf(name, sizeof(name), "n%d.test", i);
		cr_assert_eq(add(leases, name, "192.0.2.1", 1, 0, 0), 0);
	}
	cr_expect_eq(add(leases, "more.test", "192.0.2.1", 1, 0, 0), -EDQUOT);
	cr_expect_eq(sl_leases_live(leases), SL_LEASE_NAMES);
	cr_expect_eq(add(leases, "more.test", "192.0.2.1", 1, 0, 5 * SECOND), 0);
	cr_expect_str_eq(world.names, "more.test");
	sl_leases_free(&leases);
}

static void fill_address(struct sl_leases *leases, const char *addr)
{
	char name[32];

	for (int i = 0; i < SL_LEASE_NAMES; i++) {
		snprintf(name, sizeof(name), "n%d.test", i);
		cr_assert_eq(add(leases, name, addr, 1, 1, 0), 0);
	}
}

/* Names that a client makes up keep no place from those that the policy has; either family. */
Test(dns_lease, exact_names_always_have_a_place)
{
	static const char *const addrs[] = { "192.0.2.1", "2001:db8::1" };
	char name[32];

	for (int family = 0; family < 2; family++) {
		struct sl_leases *leases = leases_new(0);

		world.alive[0] = 1;
		fill_address(leases, addrs[family]);
		cr_expect_eq(add(leases, "more.test", addrs[family], 1, 1, 0), -EDQUOT);
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "n%d.exact", i);
			cr_expect_eq(add(leases, name, addrs[family], 1, 1, 0), 0);
		}
		sl_leases_free(&leases);
	}
}

/* The same of the whole table. */
Test(dns_lease, exact_names_have_a_part_of_the_table)
{
	struct sl_leases *leases = leases_new(8);
	char addr[32];

	world.alive[0] = 1;
	for (int i = 0; i < 7; i++) {
		snprintf(addr, sizeof(addr), "192.0.2.%d", i);
		cr_expect_eq(add(leases, "n.test", addr, 1, i < 4 ? 1 : 2, 0), 0);
	}
	cr_expect_eq(add(leases, "n.test", "192.0.2.7", 1, 3, 0), -ENOSPC);
	cr_expect_eq(add(leases, "n.exact", "192.0.2.7", 1, 1, 0), 0);
	cr_expect_eq(add(leases, "n.exact", "192.0.2.8", 1, 1, 0), -ENOSPC);
	sl_leases_free(&leases);
}

/* Three quarters of what is not exact names', and again when its own have ended. */
Test(dns_lease, a_client_leaves_a_part_to_others)
{
	struct sl_leases *leases = leases_new(64);
	char addr[32];
	int taken = 0, more = 0;

	world.alive[0] = 1;
	world.alive[1] = 2;
	do
		snprintf(addr, sizeof(addr), "192.0.2.%d", taken);
	while (!add(leases, "n.test", addr, 1, 1, 0) && ++taken < 100);
	cr_expect_eq(taken, 42);
	do
		snprintf(addr, sizeof(addr), "192.0.3.%d", more);
	while (!add(leases, "n.test", addr, 1, 2, 0) && ++more < 100);
	cr_expect_geq(more, 10);
	cr_expect_eq(add(leases, "n.test", "192.0.4.1", 1, 1, 0), -ENOSPC);
	cr_expect_eq(add(leases, "n.test", "192.0.4.1", 1, 3, 0), 0, "the others are not out");
	world.alive[0] = 2;
	cr_expect_eq(add(leases, "n.test", "192.0.4.2", 1, 1, 5 * SECOND), 0);
	sl_leases_free(&leases);
}

/* Past its TTL, and no socket uses it: who asked first goes, though the client lives. */
Test(dns_lease, one_of_too_many_names_is_given_up)
{
	struct sl_leases *leases = leases_new(0);

	world.alive[0] = 1;
	fill_address(leases, "192.0.2.1");
	cr_expect_eq(add(leases, "more.test", "192.0.2.1", 1, 1, 1 * SECOND), -EDQUOT, "in time");
	world.is_used = true;
	world.used = addr_of("192.0.2.1");
	cr_expect_eq(add(leases, "more.test", "192.0.2.1", 1, 1, 5 * SECOND), -EDQUOT, "in use");
	world.is_used = false;
	cr_expect_eq(add(leases, "more.test", "192.0.2.1", 1, 1, 5 * SECOND), 0);
	cr_expect_eq(sl_leases_count(leases, SL_LEASES_COUNT_GIVEN_UP), 1);
	cr_expect_eq(sl_leases_live(leases), SL_LEASE_NAMES);
	cr_expect_not_null(strstr(world.names, "more.test"));
	cr_expect_eq(add(leases, "n1.test", "192.0.2.1", 1, 1, 5 * SECOND), 0);
	cr_expect_eq(sl_leases_count(leases, SL_LEASES_COUNT_RENEWED), 1, "it is still there");
	sl_leases_free(&leases);
}

Test(dns_lease, more_clients_than_it_remembers)
{
	struct sl_leases *leases = leases_new(0);

	for (uint32_t i = 0; i <= SL_LEASE_CLIENTS; i++) {
		world.alive[i] = i + 1;
		cr_assert_eq(add(leases, "a.test", "192.0.2.1", 1, i + 1, 0), 0);
	}
	cr_expect_eq(sl_leases_count(leases, SL_LEASES_COUNT_FORGOT), 1);
	/* Only the first, which was forgotten, lives on. */
	world.alive[1] = 0;
	sl_leases_sweep(leases, 5 * SECOND);
	cr_expect_not(leased(leases, "192.0.2.1"));
	sl_leases_free(&leases);
}

Test(dns_lease, is_not_there_when_the_guard_did_not_take_it)
{
	struct sl_leases *leases = leases_new(0);

	world.change_error = -E2BIG;
	cr_expect_eq(add(leases, "a.test", "192.0.2.1", 1, 0, 0), -E2BIG);
	cr_expect_not(leased(leases, "192.0.2.1"));
	world.change_error = 0;
	world.changes = 0;
	sl_leases_sweep(leases, 0);
	cr_expect_eq(world.changes, 1, "what it took a part of it is told to drop");
	cr_expect_str_eq(world.names, "");
	cr_assert_eq(add(leases, "b.test", "192.0.2.2", 1, 0, 0), 0);

	/* An end that could not be told is told again, until it is known. */
	world.changes = 0;
	world.change_error = -EIO;
	sl_leases_sweep(leases, 10 * SECOND);
	cr_expect_not(leased(leases, "192.0.2.2"));
	world.change_error = 0;
	world.changes = 0;
	sl_leases_sweep(leases, 11 * SECOND);
	cr_expect_eq(world.changes, 1);
	cr_expect_str_eq(world.names, "");
	world.changes = 0;
	sl_leases_sweep(leases, 12 * SECOND);
	cr_expect_eq(world.changes, 0);
	sl_leases_free(&leases);
}

Test(dns_pool, an_address_a_name_for_good)
{
	struct sl_pool *pool = NULL;
	struct sl_addr v4, v6, again, want;

	cr_assert_eq(sl_pool_new(&pool, 0x2a, 2), 0);
	cr_assert_eq(sl_pool_address(pool, "a.test", AF_INET, &v4), 0);
	want = addr_of("198.18.0.1");
	cr_expect(memcmp(&v4, &want, sizeof(v4)) == 0);
	cr_assert_eq(sl_pool_address(pool, "b.test", AF_INET6, &v6), 0);
	want = addr_of("fd73:6c75:6963:2a::2");
	cr_expect(memcmp(&v6, &want, sizeof(v6)) == 0);
	cr_assert_eq(sl_pool_address(pool, "a.test", AF_INET, &again), 0);
	cr_expect(memcmp(&v4, &again, sizeof(v4)) == 0);
	cr_expect_str_eq(sl_pool_name(pool, &v4), "a.test");
	cr_expect_str_eq(sl_pool_name(pool, &v6), "b.test");

	cr_expect_eq(sl_pool_address(pool, "c.test", AF_INET, &again), -ENOSPC);
	cr_expect_eq(sl_pool_refused(pool), 1);
	cr_expect_eq(sl_pool_count(pool), 2);
	cr_expect_eq(sl_pool_address(pool, "a.test", AF_UNIX, &again), -EAFNOSUPPORT);
	sl_pool_free(&pool);
	cr_expect_null(pool);
}

Test(dns_pool, no_name_for_what_it_never_gave)
{
	static const char *const others[] = {
		"198.18.0.0",         "198.18.0.2", "198.17.0.1",
		"198.20.0.1",         "10.18.0.1",  "fd73:6c75:6963:1::",
		"2001:db8::1",        "::1",        "fd73:6c75:6963:1:0:1:0:1",
		"fd73:6c75:6963:2::1"
	};
	struct sl_pool *pool = NULL;
	struct sl_addr addr;

	cr_assert_eq(sl_pool_new(&pool, 1, 0), 0);
	cr_assert_eq(sl_pool_address(pool, "a.test", AF_INET, &addr), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		addr = addr_of(others[i]);
		cr_expect_null(sl_pool_name(pool, &addr), "%s", others[i]);
	}
	addr = addr_of("198.19.255.255");
	cr_expect(sl_pool_has(pool, &addr));
	addr = addr_of("198.20.0.0");
	cr_expect_not(sl_pool_has(pool, &addr));
	sl_pool_free(&pool);
}
