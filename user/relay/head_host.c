// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "relay/head.h"

#define LABEL_MAX 63

/* Written anew: one address has many texts. */
static int normal_v6(char dst[SL_RELAY_HOST_MAX], const char *text, size_t len)
{
	char copy[INET6_ADDRSTRLEN];
	__be32 addr[4];

	if (len >= sizeof(copy) || !memchr(text, ':', len) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (sl_parse_addr(copy, addr))
		return -EINVAL;
	return inet_ntop(AF_INET6, addr, dst, SL_RELAY_HOST_MAX) ? 0 : -EINVAL;
}

static int host_char(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A' + 'a';
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
		return c;
	return -1;
}

int sl_head_host(char dst[SL_RELAY_HOST_MAX], const char *text, size_t len, bool brackets)
{
	size_t label = 0;

	if (brackets && len > 2 && text[0] == '[' && text[len - 1] == ']')
		return normal_v6(dst, text + 1, len - 2);
	if (len > 1 && text[len - 1] == '.')
		len--;
	if (!len || len > 253)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		int c = host_char(text[i]);

		if (text[i] == '.' ? !label : c < 0 || label == LABEL_MAX)
			return -EINVAL;
		label = text[i] == '.' ? 0 : label + 1;
		dst[i] = text[i] == '.' ? '.' : (char)c;
	}
	dst[len] = '\0';
	return label ? 0 : -EINVAL;
}

int sl_head_authority(char dst[SL_RELAY_HOST_MAX], uint16_t *port, const char *text, size_t len)
{
	const char *end = len && text[0] == '[' ? memchr(text, ']', len) : memchr(text, ':', len);
	size_t host = end ? (size_t)(end - text) + (text[0] == '[') : len;
	char digits[6] = "";
	uint32_t value;

	if (!host)
		return SL_HEAD_NO_HOST;
	if (host < len && text[host] != ':')
		return SL_HEAD_HOST;
	if (sl_head_host(dst, text, host, true))
		return SL_HEAD_HOST;
	if (host == len)
		return *port ? 0 : SL_HEAD_NO_PORT;
	if (len - host - 1 >= sizeof(digits))
		return SL_HEAD_PORT;
	memcpy(digits, text + host + 1, len - host - 1);
	if (strlen(digits) != len - host - 1 || sl_parse_u32(digits, 1, 65535, &value))
		return SL_HEAD_PORT;
	*port = (uint16_t)value;
	return 0;
}
