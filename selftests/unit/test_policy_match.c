/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/match.h"
#include "policy/policy.h"
#include "policy_world.h"

static void match(const char *pattern, const char *path, bool expected)
{
	cr_expect_eq(sl_path_match(pattern, path), expected, "'%s' and '%s'", pattern, path);
}

Test(policy_match, paths)
{
	match("/usr/bin/node", "/usr/bin/node", true);
	match("/usr/bin/node", "/usr/bin/nodejs", false);
	match("/d/**", "/d/a/b", true);
	match("/d/**", "/d/a", true);
	match("/d/**", "/dx/a", false);
	match("/d/**", "/d", false);
	match("/d/*", "/d/a", true);
	match("/d/*", "/d/a/b", false);
	match("/d/*/b", "/d/a/b", true);
	match("/d/*/b", "/d/a/c/b", false);
	match("/d/**/b", "/d/a/c/b", true);
	match("/d/**/b", "/d/b", false);
	match("/usr/bin/python3*", "/usr/bin/python3", true);
	match("/usr/bin/python3*", "/usr/bin/python3.11", true);
	match("/usr/bin/python3*", "/usr/bin/python3/x", false);
	match("/**/bin/*", "/a/b/bin/c", true);
	match("/**/bin/*", "/a/b/bin/c/d", false);
	match("/a*a", "/a", false);
	match("/a*a", "/aa", true);
	match("/*a*b*", "/xaybz", true);
	match("/*a*b*", "/xbya", false);
	match("/**a*b", "/x/a/ab", true);
	match("/**a*b", "/x/a/b", false);
	match("/***", "/x/y", true);
}

/* A reference that tries everything: exponential, for short texts only. */
static bool slow_match(const char *pattern, const char *path)
{
	bool across = pattern[0] == '*' && pattern[1] == '*';

	if (!*pattern)
		return !*path;
	if (*pattern != '*')
		return *pattern == *path && slow_match(pattern + 1, path + 1);
	pattern += strspn(pattern, "*");
	for (;; path++) {
		if (slow_match(pattern, path))
			return true;
		if (!*path || (!across && *path == '/'))
			return false;
	}
}

Test(policy_match, random_paths_match_as_the_reference_says)
{
	unsigned int matched = 0;

	srandom(11);
	for (int i = 0; i < 200000; i++) {
		static const char alphabet[] = "//ab**";
		char pattern[9] = "/", path[12] = "/";
		size_t n = (size_t)random() % 7, m = (size_t)random() % 10;

		for (size_t j = 0; j < n; j++)
			pattern[1 + j] = alphabet[(size_t)random() % 6];
		for (size_t j = 0; j < m; j++)
			path[1 + j] = alphabet[(size_t)random() % 4];
		matched += slow_match(pattern, path);
		cr_assert_eq(sl_path_match(pattern, path), slow_match(pattern, path),
			     "'%s' and '%s'", pattern, path);
	}
	cr_expect_gt(matched, 10000);
}

Test(policy_match, worst_pattern_ends, .timeout = 20)
{
	char *path = malloc(SL_POLICY_PATH_MAX + 1), pattern[64] = "/";

	cr_assert_not_null(path);
	memset(path, 'a', SL_POLICY_PATH_MAX);
	path[0] = '/';
	path[SL_POLICY_PATH_MAX - 1] = 'b';
	path[SL_POLICY_PATH_MAX] = '\0';
	for (int i = 0; i < 15; i++)
		strcat(pattern, i % 2 ? "**a" : "*a");
	strcat(pattern, "*bb");
	cr_expect_eq(sl_path_check(pattern, NULL), 0);
	cr_expect_not(sl_path_match(pattern, path));
	free(path);
}

Test(policy_match, bad_paths_are_refused_with_the_reason)
{
	static const char *const bad[][2] = {
		{ "usr/bin/x", "not absolute" },
		{ "", "not absolute" },
		{ "**", "not absolute" },
		{ "/a/../b", "'..'" },
		{ "/..", "'..'" },
		{ "/a/./b", "'.'" },
		{ "/a//b", "'//'" },
		{ "/a/", "ends in '/'" },
		{ "/", "ends in '/'" },
		{ "/*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a", "17" },
	};
	struct sl_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&err, 0, sizeof(err));
		cr_expect_lt(sl_path_check(bad[i][0], &err), 0, "%s", bad[i][0]);
		cr_expect_not_null(strstr(err.text, bad[i][1]), "'%s': %s", bad[i][0], err.text);
	}
	cr_expect_eq(sl_path_check("/a/..b/.c/d..", NULL), 0);
}

Test(policy_match, kinds_of_paths)
{
	cr_expect_eq(sl_path_kind("/a/b"), SL_PATH_EXACT);
	cr_expect_eq(sl_path_kind("/a/**"), SL_PATH_PREFIX);
	cr_expect_eq(sl_path_kind("/**"), SL_PATH_PREFIX);
	cr_expect_eq(sl_path_kind("/a**"), SL_PATH_GLOB);
	cr_expect_eq(sl_path_kind("/a/*"), SL_PATH_GLOB);
	cr_expect_eq(sl_path_kind("/*/b/**"), SL_PATH_GLOB);
	cr_expect_eq(sl_path_kind("/a/***"), SL_PATH_GLOB);
}

static void host(const char *text, const char *expected)
{
	char name[SL_HOST_MAX + 1] = "?";
	struct sl_err err = { 0 };
	int ret = sl_host_pattern_normal(name, text, &err);

	if (expected) {
		cr_expect_eq(ret, 0, "%s: %s", text, err.text);
		cr_expect_str_eq(name, expected);
	} else {
		cr_expect_eq(ret, -EINVAL, "%s", text);
		cr_expect_neq(err.text[0], '\0');
	}
}

Test(policy_match, hosts_get_a_normal_form_or_are_refused)
{
	char longest[256];

	host("Registry.Example.ORG.", "registry.example.org");
	host("*.Example.org", "*.example.org");
	host("**.example.org.", "**.example.org");
	host("xn--bcher-kva.example", "xn--bcher-kva.example");
	host("a-b.c9", "a-b.c9");
	host("db", "db");
	host("*", NULL);
	host("**", NULL);
	host("*.org", NULL);
	host("**.org.", NULL);
	host("***.example.org", NULL);
	host("a.*.example.org", NULL);
	host("a*.example.org", NULL);
	host("*example.org", NULL);
	host("", NULL);
	host(".", NULL);
	host("a..b", NULL);
	host(".a", NULL);
	host("-a.b", NULL);
	host("a-.b", NULL);
	host("_Dmarc.Example.org", "_dmarc.example.org");
	host("_http._tcp.deb.debian.org", "_http._tcp.deb.debian.org");
	host("*._tcp.example.org", "*._tcp.example.org");
	host("a_b.c", "a_b.c");
	host("a\\b.c", NULL);
	host("a b", NULL);
	host("bücher.example", NULL);
	host("10.1", NULL);
	host("127.1", NULL);
	host("1.2.3.4.5", NULL);
	host("0x7f000001", NULL);
	host("a.0x7", NULL);
	host("2130706433", NULL);
	memset(longest, 'a', sizeof(longest));
	for (size_t i = 60; i < 253; i += 61)
		longest[i] = '.';
	longest[253] = '\0';
	host(longest, longest);
	longest[253] = 'a';
	longest[254] = '\0';
	host(longest, NULL);
	memset(longest, 'a', 64);
	longest[64] = '\0';
	host(longest, NULL);
	host(longest + 1, longest + 1);
}

Test(policy_match, wildcards_of_hosts)
{
	cr_expect(sl_host_match("*.x.org", "a.x.org"));
	cr_expect_not(sl_host_match("*.x.org", "x.org"));
	cr_expect_not(sl_host_match("*.x.org", "a.b.x.org"));
	cr_expect_not(sl_host_match("*.x.org", "ax.org"));
	cr_expect(sl_host_match("**.x.org", "a.x.org"));
	cr_expect(sl_host_match("**.x.org", "a.b.x.org"));
	cr_expect_not(sl_host_match("**.x.org", "x.org"));
	cr_expect_not(sl_host_match("**.x.org", "ax.org"));
	cr_expect(sl_host_match("x.org", "x.org"));
	cr_expect_not(sl_host_match("x.org", "a.x.org"));
}

static void prefix(const char *text, int ret, const char *expected)
{
	struct sl_prefix out;
	char shown[SL_PREFIX_TEXT];

	memset(&out, 0xaa, sizeof(out));
	cr_expect_eq(sl_prefix_parse(text, &out), ret, "%s", text);
	if (expected)
		cr_expect_str_eq(sl_prefix_format(shown, sizeof(shown), &out), expected);
}

Test(policy_match, prefixes)
{
	prefix("10.20.0.0/16", 0, "10.20.0.0/16");
	prefix("10.20.1.0/16", -EDOM, "10.20.0.0/16");
	prefix("0.0.0.0/0", 0, "0.0.0.0/0");
	prefix("192.0.2.1", 0, "192.0.2.1");
	prefix("192.0.2.1/32", 0, "192.0.2.1");
	prefix("192.0.2.1/33", -ERANGE, NULL);
	prefix("::/0", 0, "::/0");
	prefix("2001:DB8::/32", 0, "2001:db8::/32");
	prefix("2001:db8::1/32", -EDOM, "2001:db8::/32");
	prefix("2001:db8::/129", -ERANGE, NULL);
	prefix("::ffff:10.0.0.0/104", 0, "10.0.0.0/8");
	prefix("10.0.0.0/", -EINVAL, NULL);
	prefix("10.0.0.0/08", -EINVAL, NULL);
	prefix("10.0.0/8", -EINVAL, NULL);
	prefix("10.0.0.0/8/8", -EINVAL, NULL);
	prefix("/8", -EINVAL, NULL);
	prefix("", -EINVAL, NULL);
	prefix("example.org", -EINVAL, NULL);
}

static const char *reserved(const char *text)
{
	const struct sl_addr addr = policy_addr(text);
	const struct sl_range *range = sl_reserved_addr(&addr);

	return range ? range->what : "no";
}

Test(policy_match, reserved_addresses_in_all_their_forms)
{
	cr_expect_str_eq(reserved("127.0.0.1"), "loopback");
	cr_expect_str_eq(reserved("::ffff:127.0.0.1"), "loopback");
	cr_expect_str_eq(reserved("::1"), "loopback");
	cr_expect_str_eq(reserved("::127.0.0.1"), "IPv4-compatible");
	cr_expect_str_eq(reserved("64:ff9b::127.0.0.1"), "loopback (NAT64)");
	cr_expect_str_eq(reserved("2002:7f00:1::1"), "loopback (6to4)");
	cr_expect_str_eq(reserved("0.0.0.0"), "unspecified (this network)");
	cr_expect_str_eq(reserved("::"), "unspecified");
	cr_expect_str_eq(reserved("169.254.169.254"), "cloud metadata");
	cr_expect_str_eq(reserved("64:ff9b::a9fe:a9fe"), "cloud metadata (NAT64)");
	cr_expect_str_eq(reserved("fd00:ec2::254"), "cloud metadata");
	cr_expect_str_eq(reserved("169.254.0.1"), "link-local");
	cr_expect_str_eq(reserved("fe80::1"), "link-local");
	cr_expect_str_eq(reserved("224.0.0.251"), "multicast");
	cr_expect_str_eq(reserved("ff02::fb"), "multicast");
	cr_expect_str_eq(reserved("255.255.255.255"), "reserved (240.0.0.0/4) and broadcast");
	cr_expect_str_eq(reserved("10.0.0.1"), "no");
	cr_expect_str_eq(reserved("126.255.255.255"), "no");
	cr_expect_str_eq(reserved("128.0.0.0"), "no");
	cr_expect_str_eq(reserved("2001:db8::1"), "no");
	cr_expect_str_eq(reserved("64:ff9b::192.0.2.1"), "no");
}

Test(policy_match, private_addresses)
{
	static const char *const yes[] = { "10.0.0.5",    "172.16.0.1",       "172.31.255.255",
					   "192.168.1.1", "100.64.0.1",       "fd12::1",
					   "fec0::1",     "64:ff9b::10.0.0.1" };
	static const char *const no[] = { "172.32.0.1", "192.0.2.1", "100.128.0.1", "2001:db8::1" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		const struct sl_addr addr = policy_addr(yes[i]);

		cr_expect_not_null(sl_private_addr(&addr), "%s", yes[i]);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		const struct sl_addr addr = policy_addr(no[i]);

		cr_expect_null(sl_private_addr(&addr), "%s", no[i]);
	}
}

Test(policy_match, ipv6_prefixes_have_no_ipv4)
{
	const struct sl_addr v4 = policy_addr("192.0.2.1"), v6 = policy_addr("2001:db8::1");
	struct sl_prefix all6, all4;

	cr_assert_eq(sl_prefix_parse("::/0", &all6), 0);
	cr_assert_eq(sl_prefix_parse("0.0.0.0/0", &all4), 0);
	cr_expect(sl_prefix_has(&all6, &v6));
	cr_expect_not(sl_prefix_has(&all6, &v4));
	cr_expect(sl_prefix_has(&all4, &v4));
	cr_expect_not(sl_prefix_has(&all4, &v6));
	cr_expect_not(sl_prefix_covers(&all6, &all4));
	cr_expect(sl_prefix_covers_bits(&all6, &all4));
}
