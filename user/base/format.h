/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values as text for people. Each function writes into `dst` (`size` bytes with
 * terminator, cut if too small; SL_FORMAT_MAX is enough for all) and returns `dst`.
 */
#ifndef SLUICE_USER_FORMAT_H
#define SLUICE_USER_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/sock.h>

#define SL_FORMAT_MAX 64

/* "192.0.2.1" for IPv4-mapped, else "2001:db8::1". */
const char *sl_format_addr(char *dst, size_t size, const __be32 addr_be[4]);

/* "192.0.2.1:443", "[2001:db8::1]:443". */
const char *sl_format_endpoint(char *dst, size_t size, const struct sl_endpoint *endpoint);

/* "0 B", "1023 B", "1.2 KiB", …, "16.0 EiB". */
const char *sl_format_bytes(char *dst, size_t size, uint64_t bytes);

/* "850 us", "1.5 ms", "2.34 s", "1m 05s", "3h 02m", "2d 03h". */
const char *sl_format_duration_us(char *dst, size_t size, uint64_t us);

/*
 * CLOCK_REALTIME minus CLOCK_BOOTTIME, nanoseconds. The kernel changes it only when the
 * clock is set (slewing moves both), but it can't be read in one piece: each measurement is
 * off by a microsecond or so. To print one moment always as the same text it is therefore
 * steady: the anchor, or what this process measured first, moved by whole milliseconds when
 * the clock was set since.
 */
int64_t sl_realtime_offset_ns(void);

/* A measurement that other processes use as well, 0 for none; see sl_set_open(). */
void sl_realtime_offset_anchor(int64_t offset_ns);

/* CLOCK_BOOTTIME nanoseconds as "2026-01-31T23:59:59.123456789Z" (RFC 3339, UTC). */
const char *sl_format_time(char *dst, size_t size, uint64_t boottime_ns, int64_t offset_ns);

/* A device number in the kernel's own encoding (major << 20 | minor) as "8:1". */
const char *sl_format_dev(char *dst, size_t size, uint32_t dev);

/*
 * "tcp", "udp", "icmp", "ipv6-icmp", "mptcp", "sctp", "udplite", "raw:N" for SOCK_RAW,
 * "proto:N"; of another family than IP its name, or "family:N". Family 0: one of IP's.
 */
const char *sl_format_protocol(char *dst, size_t size, unsigned int family, unsigned int type,
			       unsigned int protocol);

/* TCP_* of include/net/tcp_states.h: "established", "time-wait", …; NULL for no state. */
const char *sl_tcp_state_name(unsigned int state);

/* "inet", "inet6", "packet", …; NULL for a family without a name here. */
const char *sl_family_name(unsigned int family);

#endif
