/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which addresses are the machine's own, in a network namespace whose routes are known. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "kernel/own_addr.h"

static const char routes[] =
	"set -e\n"
	"ip link set lo up\n"
	"ip addr add 192.0.2.7/32 dev lo\n"
	"ip route add local 198.51.100.0/24 dev lo\n"
	"ip route add 203.0.113.0/24 dev lo\n"
	"ip route add blackhole 203.0.113.128/25\n"
	"ip rule add fwmark 5 table 100\n"
	"ip route add local 203.0.113.0/24 dev lo table 100\n"
	"test ! -e /proc/net/if_inet6 || ip addr add 2001:db8::7/128 dev lo nodad\n"
	/* Whatever may be bound to is not here for that. */
	"echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind\n";

static int outside = -1, inside = -1;
static struct sl_own *own;

static void up(void)
{
	outside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(outside, 0);
	if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "can't make a network namespace: %s\n", strerror(errno));
		cr_skip_test("can't make a network namespace");
	}
	inside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(system(routes), 0);
}

static void down(void)
{
	sl_own_free(&own);
	sl_own_free(&own);
	sl_cleanup_fd(&inside);
	sl_cleanup_fd(&outside);
}

TestSuite(own_addr, .init = up, .fini = down);

static void open_own(uint32_t mark, int ns)
{
	struct sl_err err = { 0 };

	sl_own_free(&own);
	cr_assert_eq(sl_own_new(&own, mark, NULL, &err), 0, "%s", err.text);
	cr_assert_eq(sl_own_add(own, ns, &err), 0, "%s", err.text);
}

static bool is_own(const char *text)
{
	__be32 addr_be[4];

	cr_assert_eq(sl_parse_addr(text, addr_be), 0, "%s", text);
	return sl_own_has(own, addr_be);
}

static void expect_addresses(void)
{
	static const char *const here[] = {
		"127.0.0.1",        "127.9.9.9",       "192.0.2.7",         "198.51.100.9",
		"::ffff:192.0.2.7", "::ffff:c000:207", "64:ff9b::c000:207", "2002:c000:207::1",
	};
	static const char *const elsewhere[] = {
		"192.0.2.8",         "203.0.113.5",      "203.0.113.200", "::ffff:203.0.113.5",
		"64:ff9b::c000:208", "2002:c000:208::1", "2001:db8::8",
	};

	for (size_t i = 0; i < ARRAY_SIZE(here); i++)
		cr_expect(is_own(here[i]), "%s", here[i]);
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		cr_expect_not(is_own(elsewhere[i]), "%s", elsewhere[i]);
	if (!access("/proc/self/net/if_inet6", F_OK)) {
		cr_expect(is_own("2001:db8::7"));
		cr_expect(is_own("::1"));
	}
}

Test(own_addr, of_this_namespace)
{
	open_own(0, -1);
	expect_addresses();
	/* It is asked anew each time. */
	cr_assert_eq(system("ip addr add 192.0.2.8/32 dev lo && ip addr del 192.0.2.7/32 dev lo"),
		     0);
	cr_expect(is_own("192.0.2.8"));
	cr_expect_not(is_own("192.0.2.7"));
	open_own(5, -1);
	cr_expect(is_own("203.0.113.5"), "as what has the mark is routed");
}

Test(own_addr, of_another_namespace)
{
	struct sl_err err = { 0 };

	cr_assert_eq(setns(outside, CLONE_NEWNET), 0, "%s", strerror(errno));
	open_own(0, inside);
	expect_addresses();
	open_own(0, -1);
	cr_expect_not(is_own("192.0.2.7"));
	/* Of either, once both are asked. */
	cr_assert_eq(sl_own_add(own, inside, &err), 0, "%s", err.text);
	cr_expect(is_own("192.0.2.7"));
	cr_expect(is_own("127.0.0.1"));
	cr_expect_eq(sl_own_add(own, inside, &err), -E2BIG);
}
