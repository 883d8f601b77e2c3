/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/format.h"
#include "base/parse.h"

Test(parse, u64_takes_the_whole_range_and_nothing_else)
{
	uint64_t value = 7;
	static const char *const malformed[] = {
		"",   " ",    " 1",  "1 ", "1\n", "+1",  "-1",
		"1x", "0x10", "010", "00", "1.0", "1e3", "99999999999999999999x",
		"١",
	};

	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		cr_expect_eq(sl_parse_u64(malformed[i], 0, UINT64_MAX, &value), -EINVAL, "'%s'",
			     malformed[i]);
		cr_expect_eq(value, 7);
	}
	cr_expect_eq(sl_parse_u64("18446744073709551616", 0, UINT64_MAX, &value), -ERANGE);
	cr_expect_eq(sl_parse_u64("184467440737095516150", 0, UINT64_MAX, &value), -ERANGE);
	cr_expect_eq(sl_parse_u64("4", 5, 6, &value), -ERANGE);
	cr_expect_eq(sl_parse_u64("7", 5, 6, &value), -ERANGE);
	cr_expect_eq(value, 7);
	cr_expect_eq(sl_parse_u64("18446744073709551615", 0, UINT64_MAX, &value), 0);
	cr_expect_eq(value, UINT64_MAX);
	cr_expect_eq(sl_parse_u64("0", 0, 0, &value), 0);
	cr_expect_eq(value, 0);
}

Test(parse, narrow_integers)
{
	uint32_t u = 7;
	int32_t s = 7;

	cr_expect_eq(sl_parse_u32("4294967296", 0, UINT32_MAX, &u), -ERANGE);
	cr_expect_eq(sl_parse_u32("4294967295", 0, UINT32_MAX, &u), 0);
	cr_expect_eq(u, UINT32_MAX);
	cr_expect_eq(sl_parse_s32("-2147483648", INT32_MIN, INT32_MAX, &s), 0);
	cr_expect_eq(s, INT32_MIN);
	cr_expect_eq(sl_parse_s32("-2147483649", INT32_MIN, INT32_MAX, &s), -ERANGE);
	cr_expect_eq(sl_parse_s32("2147483648", INT32_MIN, INT32_MAX, &s), -ERANGE);
	cr_expect_eq(sl_parse_s32("--1", INT32_MIN, INT32_MAX, &s), -EINVAL);
	cr_expect_eq(sl_parse_s32("-", INT32_MIN, INT32_MAX, &s), -EINVAL);
	cr_expect_eq(sl_parse_s32("-1", 0, INT32_MAX, &s), -ERANGE);
	cr_expect_eq(s, INT32_MIN);
}

Test(parse, sizes)
{
	uint64_t bytes = 7;

	cr_expect_eq(sl_parse_size("64K", &bytes), 0);
	cr_expect_eq(bytes, 65536);
	cr_expect_eq(sl_parse_size("4m", &bytes), 0);
	cr_expect_eq(bytes, 4 << 20);
	cr_expect_eq(sl_parse_size("16777215T", &bytes), 0);
	cr_expect_eq(bytes, 16777215ULL << 40);
	cr_expect_eq(sl_parse_size("12", &bytes), 0);
	cr_expect_eq(bytes, 12);
	cr_expect_eq(sl_parse_size("16777216T", &bytes), -ERANGE);
	cr_expect_eq(sl_parse_size("99999999999999999999999K", &bytes), -ERANGE);
	cr_expect_eq(sl_parse_size("99999999999999999999999Q", &bytes), -EINVAL);
	cr_expect_eq(sl_parse_size("64KB", &bytes), -EINVAL);
	cr_expect_eq(sl_parse_size("K", &bytes), -EINVAL);
	cr_expect_eq(sl_parse_size("64 K", &bytes), -EINVAL);
	cr_expect_eq(bytes, 12);
}

Test(parse, durations)
{
	uint64_t us = 7;

	cr_expect_eq(sl_parse_duration_us("500ms", &us), 0);
	cr_expect_eq(us, 500000);
	cr_expect_eq(sl_parse_duration_us("1us", &us), 0);
	cr_expect_eq(us, 1);
	cr_expect_eq(sl_parse_duration_us("2d", &us), 0);
	cr_expect_eq(us, 172800000000ULL);
	cr_expect_eq(sl_parse_duration_us("0", &us), 0);
	cr_expect_eq(us, 0);
	us = 7;
	cr_expect_eq(sl_parse_duration_us("5", &us), -EINVAL);
	cr_expect_eq(sl_parse_duration_us("5 s", &us), -EINVAL);
	cr_expect_eq(sl_parse_duration_us("1m30s", &us), -EINVAL);
	cr_expect_eq(sl_parse_duration_us("1.5s", &us), -EINVAL);
	cr_expect_eq(sl_parse_duration_us("18446744073709551615h", &us), -ERANGE);
	cr_expect_eq(us, 7);
}

Test(parse, endpoints_round_trip)
{
	static const char *const good[] = {
		"192.0.2.1:443",      "0.0.0.0:0", "255.255.255.255:65535",
		"[2001:db8::1]:8080", "[::]:1",    "[::1]:65535",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct sl_endpoint endpoint;
		char text[SL_FORMAT_MAX];

		cr_assert_eq(sl_parse_endpoint(good[i], &endpoint), 0, "%s", good[i]);
		cr_expect_str_eq(sl_format_endpoint(text, sizeof(text), &endpoint), good[i]);
	}
}

Test(parse, mapped_ipv4_is_ipv4)
{
	struct sl_endpoint a, b;

	cr_assert_eq(sl_parse_endpoint("192.0.2.1:80", &a), 0);
	cr_assert_eq(sl_parse_endpoint("[::ffff:192.0.2.1]:80", &b), 0);
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
	cr_expect_eq(a.port_be, htons(80));
	cr_expect_eq(a.addr_be[3], htonl(0xc0000201));
}

Test(parse, hostile_endpoints_are_refused)
{
	static const char *const bad[] = {
		"",
		":",
		":80",
		"[]:80",
		"[",
		"]",
		"[:80",
		"192.0.2.1",
		"192.0.2.1:",
		"192.0.2:80",
		"192.0.2.1:80 ",
		" 192.0.2.1:80",
		"192.0.2.01:80",
		"192.0.2.1:080",
		"192.0.2.1:-1",
		"192.0.2.1:+1",
		"2001:db8::1:80",
		"[2001:db8::1]80",
		"[192.0.2.1]:80",
		"[fe80::1%lo]:80",
		"[2001:db8::1]",
		"[2001:db8::1]:",
		"[2001:db8::1]]:80",
		"[[2001:db8::1]:80",
		"localhost:80",
		"1:2:3",
		"[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]:80",
	};
	struct sl_endpoint endpoint = { .pad = 42 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(sl_parse_endpoint(bad[i], &endpoint), -EINVAL, "'%s'", bad[i]);
	cr_expect_eq(sl_parse_endpoint("192.0.2.1:65536", &endpoint), -ERANGE);
	cr_expect_eq(endpoint.pad, 42);
}
