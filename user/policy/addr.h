/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses and prefixes: 16 bytes, IPv4 as ::ffff:a.b.c.d, like struct sl_endpoint. Here
 * are the only tables of reserved and of private ranges.
 */
#ifndef SLUICE_USER_POLICY_ADDR_H
#define SLUICE_USER_POLICY_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

/* htonl() as a constant expression. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SL_BE32(word) __builtin_bswap32(word)
#else
#define SL_BE32(word) (word)
#endif

struct sl_addr {
	__be32 be[4];
};

/* The bits of `addr` behind `len` are zero. */
struct sl_prefix {
	struct sl_addr addr;
	uint8_t len; /* 0 to 128; of IPv4 96 + its own length */
};

/* Room for any prefix as text. */
#define SL_PREFIX_TEXT 64

/*
 * "192.0.2.0/24", "2001:db8::/32", or a bare address. -EINVAL: no such thing; -ERANGE: the
 * length is out of range; -EDOM: bits behind the length are set (*out then is the prefix
 * without them). An IPv4-mapped IPv6 prefix of 96 bits or more becomes IPv4.
 */
int sl_prefix_parse(const char *text, struct sl_prefix *out);

/* As parse reads it; a whole address without its length. Returns dst. */
const char *sl_prefix_format(char *dst, size_t size, const struct sl_prefix *prefix);

bool sl_addr_is_v4(const struct sl_addr *addr);
bool sl_addr_is_loopback(const struct sl_addr *addr); /* 127.0.0.0/8, ::1 */

/* IPv4 and IPv6 never contain one another: ::/0 has no IPv4 address. */
bool sl_prefix_has(const struct sl_prefix *prefix, const struct sl_addr *addr);
bool sl_prefix_covers(const struct sl_prefix *wide, const struct sl_prefix *narrow);

/* The same by bits alone: ::/0 covers all. What a longest-prefix look-up sees. */
bool sl_prefix_covers_bits(const struct sl_prefix *wide, const struct sl_prefix *narrow);

/* The first `len` bits of an address. */
struct sl_prefix sl_prefix_of(const struct sl_addr *addr, unsigned int len);

/* By address, then shorter first: a covering prefix comes before what it covers. */
int sl_prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b);

struct sl_range {
	struct sl_prefix prefix;
	const char *what; /* "loopback", … */
};

/*
 * Ranges that no rule reaches unless a `cidr` with allow_reserved names them: RFC 6890 and
 * what clouds use for instance metadata; also where NAT64 (RFC 6052) and 6to4 (RFC 3056)
 * embed such an IPv4 address. sl_reserved_at() goes through all, NULL at the end.
 */
const struct sl_range *sl_reserved_at(size_t index);
const struct sl_range *sl_reserved_addr(const struct sl_addr *addr);       /* NULL: none has it */
const struct sl_range *sl_reserved_prefix(const struct sl_prefix *prefix); /* that covers it */

/* Ranges of which a relay makes addresses of names (sluice/dns.h). NULL at the end. */
const struct sl_range *sl_synthetic_at(size_t index);

enum sl_addr_kind {
	SL_ADDR_REAL,
	/* Real, and what is sent there arrives at this machine (kernel/own_addr.h). */
	SL_ADDR_OWN,
	/*
	 * Stands for a name, and nobody has it: what a real one may not be is found out when
	 * one is dialled for it.
	 */
	SL_ADDR_SYNTHETIC,
};

/* Ranges that a wildcard name may not answer, unless allowed_ips has the address. */
const struct sl_range *sl_private_addr(const struct sl_addr *addr);

#endif
