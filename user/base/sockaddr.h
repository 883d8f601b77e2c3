/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An end of a connection in the two forms there are: the records' and the sockets'. */
#ifndef SLUICE_USER_SOCKADDR_H
#define SLUICE_USER_SOCKADDR_H

#include <stdbool.h>
#include <sys/socket.h>

#include <sluice/sock.h>

/* IPv4-mapped becomes AF_INET. Returns the length that counts. */
socklen_t sl_endpoint_sockaddr(struct sockaddr_storage *out, const struct sl_endpoint *endpoint);

/* False, *out untouched: neither AF_INET nor AF_INET6. */
bool sl_sockaddr_endpoint(struct sl_endpoint *out, const struct sockaddr_storage *addr);

#endif
