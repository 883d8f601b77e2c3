// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The socket that a client's datagrams of one flow go to: bound to the original destination, so
 * that answers come from there, and connected to the client, so that the kernel prefers it to
 * the listener (a connected socket is found before an sk_lookup program is asked).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay/flow_private.h"

static socklen_t size_of(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

/* Sockets belong to the namespace in which they were made, whatever their thread does next. */
static int make_in(struct sl_relay *relay, int netns, int family, int *out)
{
	_cleanup_fd_ int fd = -1;
	int ret = 0;

	if (netns >= 0 && relay->own_netns < 0) {
		relay->own_netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
		if (relay->own_netns < 0)
			return -errno;
	}
	if (netns >= 0 && setns(netns, CLONE_NEWNET))
		return -errno;
	fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		ret = -errno;
	if (netns >= 0 && setns(relay->own_netns, CLONE_NEWNET))
		return -errno;
	if (!ret)
		*out = TAKE_FD(fd);
	return ret;
}

int sl_flow_socket(struct sl_relay_flow *flow, int *out)
{
	const int on = 1;
	bool v4 = flow->client.ss_family == AF_INET;
	_cleanup_fd_ int fd = -1;
	int ret = make_in(flow->relay, flow->netns, flow->client.ss_family, &fd);

	if (ret)
		return ret;
	/* No interface has the address: that it is local is the routing table's word. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, &on,
		       sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&flow->original, size_of(&flow->original)) ||
	    connect(fd, (struct sockaddr *)&flow->client, size_of(&flow->client)))
		return -errno;
	*out = TAKE_FD(fd);
	return 0;
}
