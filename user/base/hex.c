// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/hex.h"

#include <errno.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

void sl_hex(char *dst, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;

	for (size_t i = 0; i < len; i++) {
		dst[2 * i] = digits[from[i] >> 4];
		dst[2 * i + 1] = digits[from[i] & 15];
	}
	dst[2 * len] = '\0';
}

static int value_of(char c)
{
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

int sl_hex_parse(const char *text, void *out, size_t len)
{
	unsigned char *to = out;

	for (size_t i = 0; i < 2 * len; i++) {
		if (value_of(text[i]) < 0)
			return -EINVAL;
	}
	if (text[2 * len])
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(value_of(text[2 * i]) << 4 | value_of(text[2 * i + 1]));
	return 0;
}
