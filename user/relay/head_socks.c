// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SOCKS protocol version 5 (RFC 1928), without authentication and for CONNECT only. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "relay/head.h"

#define VERSION 5
#define NO_AUTHENTICATION 0
#define CONNECT 1
#define TYPE_V4 1
#define TYPE_NAME 3
#define TYPE_V6 4
#define BEFORE_ADDRESS 4 /* bytes */

int sl_socks_greeting(const uint8_t *data, size_t len, size_t *size)
{
	if (len && data[0] != VERSION)
		return SL_HEAD_SOCKS_VERSION;
	if (len < 2 || len < 2 + (size_t)data[1])
		return -EAGAIN;
	if (!memchr(data + 2, NO_AUTHENTICATION, data[1]))
		return SL_HEAD_SOCKS_METHOD;
	*size = 2 + (size_t)data[1];
	return 0;
}

/* Bytes of the address, and of the length before a name's; 0: not a known type. */
static size_t address_size(uint8_t type, uint8_t first)
{
	switch (type) {
	case TYPE_V4:
		return 4;
	case TYPE_V6:
		return 16;
	case TYPE_NAME:
		return 1 + (size_t)first;
	default:
		return 0;
	}
}

static int read_host(char dst[SL_RELAY_HOST_MAX], uint8_t type, const uint8_t *data, size_t size)
{
	if (type == TYPE_NAME)
		return sl_head_host(dst, (const char *)data + 1, size - 1, false)
			       ? SL_HEAD_SOCKS_HOST
			       : 0;
	inet_ntop(type == TYPE_V4 ? AF_INET : AF_INET6, data, dst, SL_RELAY_HOST_MAX);
	return 0;
}

int sl_socks_request(const uint8_t *data, size_t len, struct sl_socks_head *out)
{
	size_t size;
	int ret;

	if ((len > 0 && data[0] != VERSION) || (len > 2 && data[2]))
		return SL_HEAD_SOCKS_REQUEST;
	if (len > 1 && data[1] != CONNECT)
		return SL_HEAD_SOCKS_COMMAND;
	if (len > 3 && !address_size(data[3], 0))
		return SL_HEAD_SOCKS_ADDRESS;
	/* The first byte of an address tells how long a name is. */
	if (len <= BEFORE_ADDRESS)
		return -EAGAIN;
	size = address_size(data[3], data[BEFORE_ADDRESS]);
	if (len < BEFORE_ADDRESS + size + 2)
		return -EAGAIN;
	ret = read_host(out->host, data[3], data + BEFORE_ADDRESS, size);
	if (ret)
		return ret;
	size += BEFORE_ADDRESS;
	out->port = (uint16_t)(data[size] << 8 | data[size + 1]);
	out->size = size + 2;
	return out->port ? 0 : SL_HEAD_SOCKS_PORT;
}
