/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internet addresses as the command line gives them and as the truth prints them. */
#ifndef SLUICE_LOAD_ADDR_H
#define SLUICE_LOAD_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct sl_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len; /* 0: empty */
};

/* "[" IPv6 "]:" port and a terminating NUL, with room to spare. */
#define SL_ADDR_TEXT 72

/*
 * Reads "1.2.3.4:80", "[::1]:80", "1.2.3.4", "[::1]" or "::1"; the port is 0 when
 * missing. 0 or -EINVAL.
 */
int sl_addr_parse(const char *text, struct sl_addr *out);

/* Writes the normal form: an IPv4-mapped address as a.b.c.d:port. "-" for an empty one. */
void sl_addr_text(const struct sl_addr *addr, char out[SL_ADDR_TEXT]);

/* The same address as an IPv4-mapped IPv6 one; IPv6 stays as it is. */
struct sl_addr sl_addr_mapped(const struct sl_addr *addr);

bool sl_addr_is_mapped(const struct sl_addr *addr);

/* The address `n` above this one (last byte or bytes), same port. */
struct sl_addr sl_addr_next(const struct sl_addr *addr, unsigned int n);

uint16_t sl_addr_port(const struct sl_addr *addr);
void sl_addr_set_port(struct sl_addr *addr, uint16_t port);

/* getsockname and getpeername; 0 or -errno. */
int sl_addr_local(int fd, struct sl_addr *out);
int sl_addr_remote(int fd, struct sl_addr *out);

#endif
