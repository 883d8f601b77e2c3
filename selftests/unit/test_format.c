/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/format.h"

static char text[SL_FORMAT_MAX];

#define BYTES(n) sl_format_bytes(text, sizeof(text), n)
#define DURATION(n) sl_format_duration_us(text, sizeof(text), n)
#define TIME(boot, offset) sl_format_time(text, sizeof(text), boot, offset)
#define PROTOCOL(f, t, p) sl_format_protocol(text, sizeof(text), f, t, p)

Test(format, bytes)
{
	cr_expect_str_eq(BYTES(0), "0 B");
	cr_expect_str_eq(BYTES(1023), "1023 B");
	cr_expect_str_eq(BYTES(1024), "1.0 KiB");
	cr_expect_str_eq(BYTES(1229), "1.2 KiB");
	cr_expect_str_eq(BYTES(1048575), "1.0 MiB");
	cr_expect_str_eq(BYTES(1048576), "1.0 MiB");
	cr_expect_str_eq(BYTES(1023ULL << 20), "1023.0 MiB");
	cr_expect_str_eq(BYTES(UINT64_MAX), "16.0 EiB");
}

Test(format, durations)
{
	cr_expect_str_eq(DURATION(0), "0 us");
	cr_expect_str_eq(DURATION(999), "999 us");
	cr_expect_str_eq(DURATION(1500), "1.5 ms");
	cr_expect_str_eq(DURATION(999949), "999.9 ms");
	cr_expect_str_eq(DURATION(999950), "1.00 s");
	cr_expect_str_eq(DURATION(2340000), "2.34 s");
	cr_expect_str_eq(DURATION(59994999), "59.99 s");
	cr_expect_str_eq(DURATION(59999999), "1m 00s");
	cr_expect_str_eq(DURATION(65 * 1000000ULL), "1m 05s");
	cr_expect_str_eq(DURATION(10920 * 1000000ULL), "3h 02m");
	cr_expect_str_eq(DURATION(183600 * 1000000ULL), "2d 03h");
	cr_expect_str_eq(DURATION(UINT64_MAX), "213503982d 08h");
}

Test(format, time_is_rfc3339_with_nanoseconds)
{
	cr_expect_str_eq(TIME(0, 0), "1970-01-01T00:00:00.000000000Z");
	cr_expect_str_eq(TIME(5, 1769903999123456784LL), "2026-01-31T23:59:59.123456789Z");
	cr_expect_str_eq(TIME(1, -2), "1969-12-31T23:59:59.999999999Z");
	cr_expect_str_eq(TIME(UINT64_MAX, INT64_MAX), "2262-04-11T23:47:16.854775807Z");
}

Test(format, offset_is_the_distance_of_the_clocks_and_steady)
{
	struct timespec real, boot;
	int64_t first = sl_realtime_offset_ns();
	int64_t expected;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &real);
	expected = (real.tv_sec - boot.tv_sec) * 1000000000LL + real.tv_nsec - boot.tv_nsec;
	cr_expect_lt(llabs(first - expected), 1000000000LL);
	for (int i = 0; i < 100; i++)
		cr_expect_eq(sl_realtime_offset_ns(), first);
}

Test(format, offset_is_the_anchor_until_the_clock_is_set)
{
	int64_t first = sl_realtime_offset_ns();

	/* Another process' measurement is as good as the own. */
	sl_realtime_offset_anchor(first + 1234);
	cr_expect_eq(sl_realtime_offset_ns(), first + 1234);
	sl_realtime_offset_anchor(0);
	cr_expect_eq(sl_realtime_offset_ns(), first + 1234, "0 is no measurement");
	/* The clock was set forward, then back, by so much after the anchor was taken. */
	sl_realtime_offset_anchor(first - 7000000100LL);
	cr_expect_eq(sl_realtime_offset_ns(), first - 100);
	sl_realtime_offset_anchor(first + 7000000100LL);
	cr_expect_eq(sl_realtime_offset_ns(), first + 100);
}

Test(format, devices)
{
	cr_expect_str_eq(sl_format_dev(text, sizeof(text), 8 << 20 | 1), "8:1");
	cr_expect_str_eq(sl_format_dev(text, sizeof(text), UINT32_MAX), "4095:1048575");
}

Test(format, protocols)
{
	cr_expect_str_eq(PROTOCOL(AF_INET, SOCK_STREAM, IPPROTO_TCP), "tcp");
	cr_expect_str_eq(PROTOCOL(AF_INET6, SOCK_DGRAM, IPPROTO_UDP), "udp");
	cr_expect_str_eq(PROTOCOL(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), "icmp");
	cr_expect_str_eq(PROTOCOL(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6), "ipv6-icmp");
	cr_expect_str_eq(PROTOCOL(AF_INET, SOCK_STREAM, 262), "mptcp");
	cr_expect_str_eq(PROTOCOL(AF_INET, SOCK_RAW, IPPROTO_TCP), "raw:6");
	cr_expect_str_eq(PROTOCOL(AF_PACKET, SOCK_RAW, 0x300), "packet");
	cr_expect_str_eq(PROTOCOL(AF_INET, SOCK_STREAM, 4711), "proto:4711");
	cr_expect_str_eq(PROTOCOL(AF_VSOCK, SOCK_STREAM, 0), "vsock");
	cr_expect_str_eq(PROTOCOL(AF_CAN, SOCK_RAW, 1), "can");
	cr_expect_str_eq(PROTOCOL(4711, SOCK_STREAM, 0), "family:4711");
}

Test(format, names)
{
	cr_expect_str_eq(sl_tcp_state_name(1), "established");
	cr_expect_str_eq(sl_tcp_state_name(7), "close");
	cr_expect_str_eq(sl_tcp_state_name(10), "listen");
	cr_expect_str_eq(sl_tcp_state_name(12), "new-syn-recv");
	cr_expect_null(sl_tcp_state_name(0));
	cr_expect_null(sl_tcp_state_name(13));
	cr_expect_str_eq(sl_family_name(AF_INET6), "inet6");
	cr_expect_null(sl_family_name(12345));
}

Test(format, small_destinations_are_cut)
{
	const struct sl_endpoint endpoint = { .addr_be = { 0, 0, htonl(0xffff), 0 } };
	char small[4];

	sl_format_endpoint(small, sizeof(small), &endpoint);
	cr_expect_str_eq(small, "0.0");
	sl_format_time(small, sizeof(small), 0, 0);
	cr_expect_str_eq(small, "197");
}
