/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An end of a connection in the two forms there are: the records' and the sockets'. */
#ifndef SLUICE_USER_SOCKADDR_H
#define SLUICE_USER_SOCKADDR_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <sluice/sock.h>

/* Whether it is an IPv4 address, in the one form that those have here: ::ffff:a.b.c.d. */
static inline bool sl_be_is_v4(const __be32 addr_be[4])
{
	return !addr_be[0] && !addr_be[1] && addr_be[2] == htonl(0xffff);
}

/* IPv4-mapped becomes AF_INET. Returns the length that counts. */
socklen_t sl_endpoint_sockaddr(struct sockaddr_storage *out, const struct sl_endpoint *endpoint);

/* False, *out untouched: neither AF_INET nor AF_INET6. */
bool sl_sockaddr_endpoint(struct sl_endpoint *out, const struct sockaddr_storage *addr);

#endif
