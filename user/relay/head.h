/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What clients of an explicit proxy send before bytes flow: HTTP/1 requests (RFC 9112) and
 * SOCKS5 (RFC 1928). Pure functions of the bytes so far. Strict: what two readers could
 * understand in two ways is refused, since the one behind the relay would be the second.
 */
#ifndef SLUICE_USER_RELAY_HEAD_H
#define SLUICE_USER_RELAY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/head_fault.h"
#include "relay/relay.h"

/*
 * `len` bytes of text as the host of a request: letters, digits, '-', '.', '_' in labels of
 * 63 bytes at most, in lower case and without the last dot; or an IPv4 address; or with
 * `brackets` an IPv6 address in these. -EINVAL.
 */
int sl_head_host(char dst[SL_RELAY_HOST_MAX], const char *text, size_t len, bool brackets);

/* "host", "host:port", "[v6]:port". `port` 0: it has to be there. 1 to 65535. 0 or a fault. */
int sl_head_authority(char dst[SL_RELAY_HOST_MAX], uint16_t *port, const char *text, size_t len);

struct sl_http_head {
	char host[SL_RELAY_HOST_MAX];
	uint16_t port;
	bool connect;
	size_t size;   /* bytes of the head, its empty line among them */
	uint64_t body; /* bytes of the body, by Content-Length */
	/* Parts of the text, for sl_http_rewrite(). */
	size_t method_len, path, path_len, version, fields;
};

/*
 * 0; -EAGAIN: more has to come; or an enum sl_head_fault. One of them is a chunked body: the
 * relay counts the bytes of a body to know where the only request ends.
 */
int sl_http_parse(const char *text, size_t size, struct sl_http_head *out);

/* Room that sl_http_rewrite() needs at most. */
#define SL_HTTP_REWRITE_MAX(size) ((size) + SL_RELAY_HOST_MAX + 64)

/*
 * The head for the server: origin form, Host set, the fields of this hop left out (RFC 9110,
 * 7.6.1), "Connection: close". Returns its bytes. `head` is what parsing `text` said.
 */
size_t sl_http_rewrite(char *dst, const char *text, const struct sl_http_head *head);

/* Replies of RFC 1928, 6. */
enum sl_socks_code {
	SL_SOCKS_FAILURE = 1,
	SL_SOCKS_DENIED = 2,
	SL_SOCKS_NETWORK = 3,
	SL_SOCKS_HOST = 4,
	SL_SOCKS_REFUSED = 5,
	SL_SOCKS_COMMAND = 7,
	SL_SOCKS_ADDRESS = 8,
	SL_SOCKS_NO_METHOD = 0xff, /* of the greeting */
};

/* *size: of the greeting. 0; -EAGAIN; or a fault: not one without authentication. */
int sl_socks_greeting(const uint8_t *data, size_t len, size_t *size);

struct sl_socks_head {
	char host[SL_RELAY_HOST_MAX];
	uint16_t port;
	size_t size;
};

/* 0; -EAGAIN; or a fault. */
int sl_socks_request(const uint8_t *data, size_t len, struct sl_socks_head *out);

#endif
