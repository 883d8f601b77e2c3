/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/*
 * Reads digits, leaves *text behind them. Too many digits are read to their end and are
 * -ERANGE, so that "999…9x" is still reported as malformed by the caller.
 */
static int take_digits(const char **text, uint64_t *out)
{
	const char *at = *text;
	uint64_t value = 0;
	int ret = 0;

	if (*at < '0' || *at > '9')
		return -EINVAL;
	if (at[0] == '0' && at[1] >= '0' && at[1] <= '9')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			ret = -ERANGE;
	}
	*text = at;
	*out = value;
	return ret;
}

int sl_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;
	int ret = take_digits(&text, &value);

	if (ret == -EINVAL || *text)
		return -EINVAL;
	if (ret || value < min || value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

int sl_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t value;
	int ret = sl_parse_u64(text, min, max, &value);

	if (!ret)
		*out = (uint32_t)value;
	return ret;
}

int sl_parse_s32(const char *text, int32_t min, int32_t max, int32_t *out)
{
	int negative = text[0] == '-';
	uint64_t magnitude;
	int64_t value;
	int ret = sl_parse_u64(text + negative, 0, (uint64_t)INT_MAX + 1, &magnitude);

	if (ret)
		return ret;
	value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	if (value < min || value > max)
		return -ERANGE;
	*out = (int32_t)value;
	return 0;
}

static int parse_scaled(const char *text, const struct unit *units, size_t count, uint64_t *out)
{
	uint64_t value;
	int ret = take_digits(&text, &value);

	if (ret == -EINVAL)
		return ret;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (ret || __builtin_mul_overflow(value, units[i].factor, &value))
			return -ERANGE;
		*out = value;
		return 0;
	}
	return -EINVAL;
}

int sl_parse_size(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{ "", 1 },           { "K", 1ULL << 10 }, { "k", 1ULL << 10 },
		{ "M", 1ULL << 20 }, { "m", 1ULL << 20 }, { "G", 1ULL << 30 },
		{ "g", 1ULL << 30 }, { "T", 1ULL << 40 }, { "t", 1ULL << 40 },
	};

	return parse_scaled(text, units, ARRAY_SIZE(units), bytes);
}

int sl_parse_duration_us(const char *text, uint64_t *us)
{
	static const struct unit units[] = {
		{ "us", 1 },
		{ "ms", 1000 },
		{ "s", 1000000 },
		{ "m", 60 * 1000000ULL },
		{ "h", 3600 * 1000000ULL },
		{ "d", 86400 * 1000000ULL },
	};

	if (strcmp(text, "0") == 0) {
		*us = 0;
		return 0;
	}
	return parse_scaled(text, units, ARRAY_SIZE(units), us);
}

int sl_parse_addr(const char *text, __be32 addr_be[4])
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		addr_be[0] = 0;
		addr_be[1] = 0;
		addr_be[2] = htonl(0xffff);
		addr_be[3] = v4.s_addr;
		return 0;
	}
	if (inet_pton(AF_INET6, text, &v6) != 1)
		return -EINVAL;
	memcpy(addr_be, &v6, sizeof(v6));
	return 0;
}

int sl_parse_endpoint(const char *text, struct sl_endpoint *out)
{
	struct sl_endpoint endpoint = { 0 };
	char addr[INET6_ADDRSTRLEN + 1];
	const char *colon = strrchr(text, ':');
	int bracket = text[0] == '[';
	const char *end;
	uint32_t port;
	int ret;

	if (!colon || colon == text)
		return -EINVAL;
	end = bracket ? colon - 1 : colon;
	if (bracket && *end != ']')
		return -EINVAL;
	text += bracket;
	if (end <= text || (size_t)(end - text) >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, (size_t)(end - text));
	addr[end - text] = '\0';
	/* Brackets are for IPv6 and for nothing else; IPv6 without them is ambiguous. */
	if (bracket != (strchr(addr, ':') != NULL))
		return -EINVAL;
	ret = sl_parse_addr(addr, endpoint.addr_be);
	if (ret)
		return ret;
	ret = sl_parse_u32(colon + 1, 0, 65535, &port);
	if (ret)
		return ret;
	endpoint.port_be = htons((uint16_t)port);
	*out = endpoint;
	return 0;
}
