/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an explicit proxy's client is told. */
#ifndef SLUICE_USER_RELAY_REPLY_H
#define SLUICE_USER_RELAY_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "relay/relay.h"

struct sl_reply {
	unsigned int status; /* of HTTP */
	uint8_t code;        /* of SOCKS5 */
	const char *reason;  /* one word, for programs */
	const char *error;   /* of a dial: name of its errno; NULL: none */
	const char *hint;    /* for people, NULL: none */
};

extern const struct sl_reply sl_reply_refusals[SL_RELAY_REFUSAL_MAX];

/*
 * A whole HTTP answer with a JSON document {"reason", "host", "port", "error", "hint"}; host is
 * NULL where none is known, and then neither it nor the port is told. The caller frees *out.
 * -ENOMEM.
 */
int sl_reply_http(const struct sl_reply *reply, const char *host, uint16_t port, char **out);

#define SL_REPLY_SOCKS_SIZE 10

/* A reply of SOCKS5 that binds to nothing; code 0 is success. */
void sl_reply_socks(uint8_t dst[SL_REPLY_SOCKS_SIZE], uint8_t code);

/* What became of a dial, by its errno. */
struct sl_reply sl_reply_of_dial(int code);

#endif
