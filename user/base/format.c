/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/sockaddr.h"

#define NS_PER_S 1000000000LL

/* A measurement is trusted when its readings lie this close together ... */
#define OFFSET_WINDOW_NS 10000
/* ... and a set clock shows in steps that are large against that. */
#define OFFSET_STEP_NS 1000000
#define OFFSET_TRIES 32

const char *sl_format_addr(char *dst, size_t size, const __be32 addr_be[4])
{
	char text[INET6_ADDRSTRLEN];

	if (sl_be_is_v4(addr_be))
		inet_ntop(AF_INET, &addr_be[3], text, sizeof(text));
	else
		inet_ntop(AF_INET6, addr_be, text, sizeof(text));
	snprintf(dst, size, "%s", text);
	return dst;
}

const char *sl_format_endpoint(char *dst, size_t size, const struct sl_endpoint *endpoint)
{
	char addr[INET6_ADDRSTRLEN];

	sl_format_addr(addr, sizeof(addr), endpoint->addr_be);
	snprintf(dst, size, strchr(addr, ':') ? "[%s]:%u" : "%s:%u", addr,
		 ntohs(endpoint->port_be));
	return dst;
}

const char *sl_format_bytes(char *dst, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	if (bytes < 1024) {
		snprintf(dst, size, "%u B", (unsigned int)bytes);
		return dst;
	}
	/* 1023.95 would be printed as 1024.0: the next unit then. */
	while (unit + 1 < ARRAY_SIZE(units) && value >= 1023.95) {
		value /= 1024;
		unit++;
	}
	snprintf(dst, size, "%.1f %s", value, units[unit]);
	return dst;
}

const char *sl_format_duration_us(char *dst, size_t size, uint64_t us)
{
	uint64_t s = us / 1000000;

	if (us < 1000)
		snprintf(dst, size, "%u us", (unsigned int)us);
	else if (us < 999950)
		snprintf(dst, size, "%.1f ms", (double)us / 1e3);
	else if (us < 59995000)
		snprintf(dst, size, "%.2f s", (double)us / 1e6);
	else if (s < 60)
		snprintf(dst, size, "1m 00s");
	else if (s < 3600)
		snprintf(dst, size, "%um %02us", (unsigned int)(s / 60), (unsigned int)(s % 60));
	else if (s < 86400)
		snprintf(dst, size, "%uh %02um", (unsigned int)(s / 3600),
			 (unsigned int)(s / 60 % 60));
	else
		snprintf(dst, size, "%llud %02uh", (unsigned long long)(s / 86400),
			 (unsigned int)(s / 3600 % 24));
	return dst;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t measure_offset(void)
{
	int64_t offset = 0, window = INT64_MAX;

	/* A preemption between two readings would shift the result. */
	for (int i = 0; i < OFFSET_TRIES && window > OFFSET_WINDOW_NS; i++) {
		int64_t before = clock_ns(CLOCK_BOOTTIME);
		int64_t real = clock_ns(CLOCK_REALTIME);
		int64_t after = clock_ns(CLOCK_BOOTTIME);

		if (after - before < window) {
			window = after - before;
			offset = real - (before + window / 2);
		}
	}
	return offset;
}

static int64_t offset_anchor; /* 0: none yet */

void sl_realtime_offset_anchor(int64_t offset_ns)
{
	if (offset_ns)
		__atomic_store_n(&offset_anchor, offset_ns, __ATOMIC_RELAXED);
}

int64_t sl_realtime_offset_ns(void)
{
	int64_t offset = measure_offset(), anchor = 0;
	int64_t moved, half;

	if (__atomic_compare_exchange_n(&offset_anchor, &anchor, offset, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return offset;
	/* Rounded, so that all who measure now agree. */
	moved = offset - anchor;
	half = moved < 0 ? -OFFSET_STEP_NS / 2 : OFFSET_STEP_NS / 2;
	return anchor + (moved + half) / OFFSET_STEP_NS * OFFSET_STEP_NS;
}

const char *sl_format_time(char *dst, size_t size, uint64_t boottime_ns, int64_t offset_ns)
{
	int64_t boot = boottime_ns > INT64_MAX ? INT64_MAX : (int64_t)boottime_ns;
	int64_t real, ns;
	char text[32] = "";
	struct tm tm;
	time_t s;

	if (__builtin_add_overflow(boot, offset_ns, &real))
		real = INT64_MAX;
	ns = real % NS_PER_S;
	s = real / NS_PER_S;
	if (ns < 0) {
		ns += NS_PER_S;
		s--;
	}
	if (gmtime_r(&s, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(dst, size, "%s.%09lldZ", text, (long long)ns);
	return dst;
}

const char *sl_format_dev(char *dst, size_t size, uint32_t dev)
{
	snprintf(dst, size, "%u:%u", dev >> 20, dev & 0xfffff);
	return dst;
}

const char *sl_family_name(unsigned int family)
{
	static const char *const names[] = {
		[AF_UNIX] = "unix",       [AF_INET] = "inet",   [AF_AX25] = "ax25",
		[AF_INET6] = "inet6",     [AF_KEY] = "key",     [AF_NETLINK] = "netlink",
		[AF_PACKET] = "packet",   [AF_RDS] = "rds",     [AF_PPPOX] = "pppox",
		[AF_CAN] = "can",         [AF_TIPC] = "tipc",   [AF_BLUETOOTH] = "bluetooth",
		[AF_ALG] = "alg",         [AF_VSOCK] = "vsock", [AF_KCM] = "kcm",
		[AF_QIPCRTR] = "qipcrtr", [AF_SMC] = "smc",     [AF_XDP] = "xdp",
	};

	return family < ARRAY_SIZE(names) ? names[family] : NULL;
}

const char *sl_format_protocol(char *dst, size_t size, unsigned int family, unsigned int type,
			       unsigned int protocol)
{
	static const struct {
		unsigned int number;
		const char *name;
	} names[] = {
		{ IPPROTO_ICMP, "icmp" },   { IPPROTO_TCP, "tcp" },
		{ IPPROTO_UDP, "udp" },     { IPPROTO_ICMPV6, "ipv6-icmp" },
		{ IPPROTO_SCTP, "sctp" },   { IPPROTO_UDPLITE, "udplite" },
		{ IPPROTO_MPTCP, "mptcp" },
	};

	if (family && family != AF_INET && family != AF_INET6) {
		if (sl_family_name(family))
			snprintf(dst, size, "%s", sl_family_name(family));
		else
			snprintf(dst, size, "family:%u", family);
		return dst;
	}
	if (type == SOCK_RAW) {
		snprintf(dst, size, "raw:%u", protocol);
		return dst;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (names[i].number == protocol) {
			snprintf(dst, size, "%s", names[i].name);
			return dst;
		}
	}
	snprintf(dst, size, "proto:%u", protocol);
	return dst;
}

const char *sl_tcp_state_name(unsigned int state)
{
	static const char *const names[] = {
		NULL,         "established", "syn-sent",     "syn-recv",   "fin-wait-1",
		"fin-wait-2", "time-wait",   "close",        "close-wait", "last-ack",
		"listen",     "closing",     "new-syn-recv",
	};

	_Static_assert(ARRAY_SIZE(names) == 13, "TCP_NEW_SYN_RECV is 12");
	return state < ARRAY_SIZE(names) ? names[state] : NULL;
}
