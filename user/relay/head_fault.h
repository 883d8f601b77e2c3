/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What can be wrong with the head of an explicit request: one word for programs, one sentence
 * for who has to mend the client.
 */
#ifndef SLUICE_USER_RELAY_HEAD_FAULT_H
#define SLUICE_USER_RELAY_HEAD_FAULT_H

#include <stdint.h>

/* X(NAME, status of HTTP, "word", "sentence") */
#define SL_HEAD_FAULTS_HTTP(X)                                                                     \
	X(LINE_END, 400, "line-end", "a line of the head does not end with CR LF")                 \
	X(CONTROL_BYTE, 400, "control-byte", "the head has a control byte")                        \
	X(LINE_LONG, 414, "line-too-long", "the first line has more than 16384 bytes")             \
	X(HEAD_LONG, 431, "head-too-long", "the head has more than 16384 bytes")                   \
	X(SLOW, 408, "slow", "the head did not come in time")                                      \
	X(TLS, 400, "tls",                                                                         \
	  "this is TLS: a proxy takes requests in the clear, http://, and "                        \
	  "https:// by CONNECT")                                                                   \
	X(SOCKS4, 400, "socks4", "this is SOCKS4: SOCKS5 is spoken here")                          \
	X(REQUEST_LINE, 400, "request-line", "the first line is not METHOD TARGET HTTP/1.1")       \
	X(METHOD, 400, "bad-method", "the method is no word of 32 letters at most")                \
	X(VERSION, 505, "bad-version", "only HTTP/1.1 and HTTP/1.0 are spoken here")               \
	X(TARGET, 400, "bad-target", "the target has a byte that belongs into no target")          \
	X(NOT_ABSOLUTE, 400, "not-absolute",                                                       \
	  "this is a proxy: it takes http://HOST/PATH in full, and CONNECT HOST:PORT")             \
	X(SCHEME, 400, "bad-scheme", "only http:// is taken in full; others by CONNECT HOST:PORT") \
	X(NO_HOST, 400, "no-host", "the target names no host")                                     \
	X(HOST, 400, "bad-host", "the host is neither a name nor an address")                      \
	X(NO_PORT, 400, "no-port", "CONNECT takes HOST:PORT, and there is no port")                \
	X(PORT, 400, "bad-port", "the port is no number from 1 to 65535")                          \
	X(FIELD, 400, "bad-field", "a field is not NAME: VALUE in one line")                       \
	X(NO_HOST_FIELD, 400, "no-host-field", "HTTP/1.1 takes a Host field")                      \
	X(HOST_FIELDS, 400, "host-fields", "there is more than one Host field")                    \
	X(HOST_FIELD, 400, "bad-host-field", "the Host field is no host")                          \
	X(HOST_CONFLICT, 400, "host-conflict", "the Host field says another host than the target") \
	X(LENGTH, 400, "bad-length", "Content-Length is no number of bytes")                       \
	X(LENGTHS, 400, "lengths", "there is more than one Content-Length")                        \
	X(CODINGS, 400, "codings", "there is more than one Transfer-Encoding")                     \
	X(LENGTH_CONFLICT, 400, "length-conflict",                                                 \
	  "there are both Content-Length and Transfer-Encoding")                                   \
	X(CODING_PLACE, 400, "coding-misplaced",                                                   \
	  "neither CONNECT nor HTTP/1.0 has a Transfer-Encoding")                                  \
	X(CODING, 501, "unknown-coding", "of transfer codings only chunked is known")              \
	X(CHUNKED, 411, "chunked", "how long the body is has to be said, by Content-Length")       \
	X(CONNECT_BODY, 400, "connect-body", "CONNECT has no body")                                \
	X(CONNECTION, 400, "bad-connection",                                                       \
	  "Connection is no list of names, or has a field that the request depends on")

/* X(NAME, reply of SOCKS5 (enum sl_socks_code), "word", "sentence") */
#define SL_HEAD_FAULTS_SOCKS(X)                                                              \
	X(SOCKS_VERSION, NO_METHOD, "socks-version", "this is not SOCKS version 5")          \
	X(SOCKS_METHOD, NO_METHOD, "socks-method", "only SOCKS5 without authentication")     \
	X(SOCKS_REQUEST, FAILURE, "socks-request", "this is no request of SOCKS5")           \
	X(SOCKS_COMMAND, COMMAND, "socks-command", "of the commands of SOCKS5 only CONNECT") \
	X(SOCKS_ADDRESS, ADDRESS, "socks-address", "this type of address is not of SOCKS5")  \
	X(SOCKS_HOST, FAILURE, "socks-host", "the host is no name")                          \
	X(SOCKS_PORT, FAILURE, "socks-port", "port 0 is nobody's")

enum sl_head_fault {
	SL_HEAD_GOOD,
#define X(name, code, word, text) SL_HEAD_##name,
	SL_HEAD_FAULTS_HTTP(X) SL_HEAD_FAULTS_SOCKS(X)
#undef X
		SL_HEAD_FAULT_MAX
};

struct sl_head_fault_text {
	unsigned int status; /* of HTTP; of faults of SOCKS5 400, which nobody is told */
	uint8_t code;        /* of SOCKS5 */
	const char *word, *text;
};

extern const struct sl_head_fault_text sl_head_faults[SL_HEAD_FAULT_MAX];

#endif
