/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "socket/sock_client.h"

#include <errno.h>
#include <sys/socket.h>

#include "broker/parse.h"

/* Debian 12's header lacks it (include/uapi/asm-generic/socket.h). */
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

static int end_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *), struct sl_endpoint *out)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	int family;

	if (get(fd, (struct sockaddr *)&addr, &len))
		return -errno;
	return sl_parse_sockaddr(&addr, len, &family, out);
}

int sl_sock_client(struct sl_set *set, int fd, struct sl_sock *out)
{
	struct sl_endpoint ours, theirs;
	socklen_t len = sizeof(__u64);
	__u64 netns;

	if (end_of(fd, getpeername, &theirs) || end_of(fd, getsockname, &ours) ||
	    getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &netns, &len) || !netns)
		return -ENOENT;
	return sl_tuple_resolve(set, &theirs, &ours, netns, out);
}
