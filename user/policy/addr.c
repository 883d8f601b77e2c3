/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sluice/dns.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/parse.h"
#include "policy/addr.h"
#include "base/sockaddr.h"

#define V4_LEN 96 /* bits before an IPv4 address */

#define ADDR(w0, w1, w2, w3)                                               \
	{                                                                  \
		{                                                          \
			SL_BE32(w0), SL_BE32(w1), SL_BE32(w2), SL_BE32(w3) \
		}                                                          \
	}
#define V6(w0, w1, w2, w3, bits, text)                   \
	{                                                \
		{ ADDR(w0, w1, w2, w3), (bits) }, (text) \
	}
/* An IPv4 range, and where NAT64 and 6to4 embed it. */
#define V4(addr, bits, text)                                                            \
	V6(0, 0, 0xffff, (addr), V4_LEN + (bits), text),                                \
		V6(0x0064ff9b, 0, 0, (addr), 96 + (bits), text " (NAT64)"),             \
		V6(0x20020000 | (addr) >> 16, ((addr)&0xffff) << 16, 0, 0, 16 + (bits), \
		   text " (6to4)")

/* The more telling name of an address first. */
static const struct sl_range reserved[] = {
	V4(0xa9fea9fe, 32, "cloud metadata"),               /* 169.254.169.254 */
	V4(0x646464c8, 32, "cloud metadata"),               /* 100.100.100.200, Alibaba */
	V4(0xc00000c0, 32, "cloud metadata"),               /* 192.0.0.192, Oracle */
	V4(0xa83f8110, 32, "cloud metadata"),               /* 168.63.129.16, Azure */
	V6(0xfd000ec2, 0, 0, 0x254, 128, "cloud metadata"), /* AWS */
	V6(0xfd2000ce, 0, 0, 0x254, 128, "cloud metadata"), /* Google */
	V4(0x00000000, 8, "unspecified (this network)"),
	V4(0x7f000000, 8, "loopback"),
	V4(0xa9fe0000, 16, "link-local"),
	V4(0xe0000000, 4, "multicast"),
	V4(0xf0000000, 4, "reserved (240.0.0.0/4) and broadcast"),
	V6(0, 0, 0, 0, 128, "unspecified"),
	V6(0, 0, 0, 1, 128, "loopback"),
	V6(0, 0, 0, 0, 96, "IPv4-compatible"),
	V6(0xfe800000, 0, 0, 0, 10, "link-local"),
	V6(0xff000000, 0, 0, 0, 8, "multicast"),
};

static const struct sl_range private[] = {
	V4(0x0a000000, 8, "private"),
	V4(0xac100000, 12, "private"),
	V4(0xc0a80000, 16, "private"),
	V4(0x64400000, 10, "shared (carrier-grade NAT)"),
	V6(0xfc000000, 0, 0, 0, 7, "unique local"),
	V6(0xfec00000, 0, 0, 0, 10, "site-local"),
};

static const struct sl_range synthetic[] = {
	V6(0, 0, 0xffff, SL_SYNTHETIC_V4, V4_LEN + SL_SYNTHETIC_V4_BITS, "addresses of names"),
	V6(SL_SYNTHETIC_V6_0, SL_SYNTHETIC_V6_1, 0, 0, SL_SYNTHETIC_V6_BITS, "addresses of names"),
};

/* The bits of word `word` that a prefix of `len` bits fixes. */
static __be32 mask_of(unsigned int len, unsigned int word)
{
	unsigned int bits = len > word * 32 ? len - word * 32 : 0;

	return bits >= 32 ? 0xffffffff : htonl(bits ? ~0u << (32 - bits) : 0);
}

bool sl_addr_is_v4(const struct sl_addr *addr)
{
	return sl_be_is_v4(addr->be);
}

bool sl_addr_is_loopback(const struct sl_addr *addr)
{
	if (sl_addr_is_v4(addr))
		return (addr->be[3] & SL_BE32(0xff000000)) == SL_BE32(0x7f000000);
	return !addr->be[0] && !addr->be[1] && !addr->be[2] && addr->be[3] == SL_BE32(1);
}

static bool has_bits(const struct sl_prefix *prefix, const struct sl_addr *addr)
{
	for (unsigned int i = 0; i < 4; i++) {
		if ((prefix->addr.be[i] ^ addr->be[i]) & mask_of(prefix->len, i))
			return false;
	}
	return true;
}

bool sl_prefix_has(const struct sl_prefix *prefix, const struct sl_addr *addr)
{
	return has_bits(prefix, addr) && (prefix->len >= V4_LEN || !sl_addr_is_v4(addr));
}

bool sl_prefix_covers(const struct sl_prefix *wide, const struct sl_prefix *narrow)
{
	return wide->len <= narrow->len && sl_prefix_has(wide, &narrow->addr);
}

bool sl_prefix_covers_bits(const struct sl_prefix *wide, const struct sl_prefix *narrow)
{
	return wide->len <= narrow->len && has_bits(wide, &narrow->addr);
}

struct sl_prefix sl_prefix_of(const struct sl_addr *addr, unsigned int len)
{
	struct sl_prefix prefix = { .len = (uint8_t)len };

	for (unsigned int i = 0; i < 4; i++)
		prefix.addr.be[i] = addr->be[i] & mask_of(len, i);
	return prefix;
}

int sl_prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b)
{
	int order = memcmp(&a->addr, &b->addr, sizeof(a->addr));

	return order ? order : (int)a->len - (int)b->len;
}

int sl_prefix_parse(const char *text, struct sl_prefix *out)
{
	struct sl_prefix prefix = { .len = 128 };
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[INET6_ADDRSTRLEN];
	uint32_t bits = 0;
	bool set = false;
	int ret;

	if (len >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, len);
	addr[len] = '\0';
	ret = sl_parse_addr(addr, prefix.addr.be);
	if (ret)
		return ret;
	if (slash) {
		bool short_form = !strchr(addr, ':');

		ret = sl_parse_u32(slash + 1, 0, short_form ? 32 : 128, &bits);
		if (ret)
			return ret;
		prefix.len = (uint8_t)(bits + (short_form ? V4_LEN : 0));
	}
	for (unsigned int i = 0; i < 4; i++) {
		set = set || (prefix.addr.be[i] & ~mask_of(prefix.len, i));
		prefix.addr.be[i] &= mask_of(prefix.len, i);
	}
	*out = prefix;
	return set ? -EDOM : 0;
}

const char *sl_prefix_format(char *dst, size_t size, const struct sl_prefix *prefix)
{
	bool v4 = prefix->len >= V4_LEN && sl_addr_is_v4(&prefix->addr);
	char addr[SL_FORMAT_MAX];

	sl_format_addr(addr, sizeof(addr), prefix->addr.be);
	if (prefix->len == 128)
		snprintf(dst, size, "%s", addr);
	else
		snprintf(dst, size, "%s/%u", addr, prefix->len - (v4 ? V4_LEN : 0u));
	return dst;
}

const struct sl_range *sl_reserved_at(size_t index)
{
	return index < ARRAY_SIZE(reserved) ? &reserved[index] : NULL;
}

const struct sl_range *sl_synthetic_at(size_t index)
{
	return index < ARRAY_SIZE(synthetic) ? &synthetic[index] : NULL;
}

static const struct sl_range *range_of(const struct sl_range *ranges, size_t count,
				       const struct sl_prefix *prefix)
{
	for (size_t i = 0; i < count; i++) {
		if (sl_prefix_covers(&ranges[i].prefix, prefix))
			return &ranges[i];
	}
	return NULL;
}

const struct sl_range *sl_reserved_prefix(const struct sl_prefix *prefix)
{
	return range_of(reserved, ARRAY_SIZE(reserved), prefix);
}

const struct sl_range *sl_reserved_addr(const struct sl_addr *addr)
{
	return sl_reserved_prefix(&(struct sl_prefix){ *addr, 128 });
}

const struct sl_range *sl_private_addr(const struct sl_addr *addr)
{
	return range_of(private, ARRAY_SIZE(private), &(struct sl_prefix){ *addr, 128 });
}
