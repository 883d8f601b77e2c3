// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/own_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/sockaddr.h"
#include "kernel/netns.h"
#include "kernel/rtnetlink.h"

#define NAMESPACES_MAX 2

struct sl_own {
	pthread_mutex_t lock; /* over the sockets: a question and its answer */
	uint32_t mark;
	unsigned int device; /* index; 0: none */
	uint32_t seq;
	int fds[NAMESPACES_MAX]; /* of each namespace */
	unsigned int count;
};

int sl_own_new(struct sl_own **out, uint32_t mark, const char *device, struct sl_err *err)
{
	struct sl_own *own = calloc(1, sizeof(*own));

	if (!own)
		return sl_err_sys(err, ENOMEM, "own addresses");
	pthread_mutex_init(&own->lock, NULL);
	own->mark = mark;
	own->device = device ? if_nametoindex(device) : 0;
	*out = own;
	return 0;
}

void sl_own_free(struct sl_own **own)
{
	if (!*own)
		return;
	for (unsigned int i = 0; i < (*own)->count; i++)
		sl_cleanup_fd(&(*own)->fds[i]);
	pthread_mutex_destroy(&(*own)->lock);
	free(*own);
	*own = NULL;
}

static int open_inside(void *arg)
{
	int *fd = arg;

	*fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	return *fd < 0 ? -errno : 0;
}

int sl_own_add(struct sl_own *own, int ns, struct sl_err *err)
{
	int fd = -1, rc = own->count == NAMESPACES_MAX ? -E2BIG : 0;

	if (!rc)
		rc = ns < 0 ? open_inside(&fd) : sl_netns_run(ns, open_inside, &fd);
	if (rc)
		return sl_err_sys(err, -rc, "can't ask for the routes of the network namespace");
	own->fds[own->count++] = fd;
	return 0;
}

/* The kernel's answer to `seq`, which it has by then: a route's type, or -errno. */
static int read_type(int fd, uint32_t seq)
{
	union {
		struct nlmsghdr head;
		char room[4096];
	} answer;
	const struct nlmsgerr *failed = NLMSG_DATA(&answer.head);
	const struct rtmsg *route = NLMSG_DATA(&answer.head);
	ssize_t n;

	do {
		n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
		if (n < 0 && errno != EINTR)
			return -errno;
	} while (n < 0 || (n >= (ssize_t)sizeof(answer.head) && answer.head.nlmsg_seq != seq));
	if (n >= (ssize_t)NLMSG_LENGTH(sizeof(*failed)) && answer.head.nlmsg_type == NLMSG_ERROR)
		return failed->error;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*route)) || answer.head.nlmsg_type != RTM_NEWROUTE)
		return -EPROTO;
	return route->rtm_type;
}

/* Whether a packet to it, as that device's (0: any), stays here. */
static bool stays(struct sl_own *own, int fd, const __be32 addr_be[4], unsigned int device)
{
	const bool v4 = sl_be_is_v4(addr_be);
	struct sl_rt_request question = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(question.route)),
			  .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST,
			  .nlmsg_seq = ++own->seq },
		.route = { .rtm_family = v4 ? AF_INET : AF_INET6, .rtm_dst_len = v4 ? 32 : 128 },
	};

	sl_rt_put_attr(&question, RTA_DST, v4 ? &addr_be[3] : addr_be, v4 ? 4 : 16);
	if (own->mark)
		sl_rt_put_attr(&question, RTA_MARK, &own->mark, sizeof(own->mark));
	if (device)
		sl_rt_put_attr(&question, RTA_OIF, &device, sizeof(device));
	if (send(fd, &question, question.head.nlmsg_len, 0) < 0)
		return true;
	switch (read_type(fd, own->seq)) {
	/* There is no way there, or no such family: nothing arrives anywhere. */
	case -ENETUNREACH:
	case -EHOSTUNREACH:
	case -EACCES:
	case -EINVAL:
	case -ENODEV:
	case -ENETDOWN:
	case -EAFNOSUPPORT:
	case -EOPNOTSUPP:
	case RTN_UNICAST:
	case RTN_BLACKHOLE:
	case RTN_UNREACHABLE:
	case RTN_PROHIBIT:
	case RTN_THROW:
		return false;
	default:
		return true;
	}
}

static bool has(struct sl_own *own, const __be32 addr_be[4])
{
	bool found = false;

	pthread_mutex_lock(&own->lock);
	for (unsigned int i = 0; !found && i < own->count; i++)
		found = stays(own, own->fds[i], addr_be, 0) ||
			/* The device is the first one's. */
			(!i && own->device && stays(own, own->fds[i], addr_be, own->device));
	pthread_mutex_unlock(&own->lock);
	return found;
}

/* The IPv4 address that an IPv6 one stands for where somebody translates. */
static bool embedded(const __be32 addr_be[4], __be32 out_be[4])
{
	uint32_t first = ntohl(addr_be[0]), second = ntohl(addr_be[1]);

	out_be[0] = out_be[1] = 0;
	out_be[2] = htonl(0xffff);
	if (first == 0x0064ff9b && !addr_be[1] && !addr_be[2]) /* 64:ff9b::/96 */
		out_be[3] = addr_be[3];
	else if (first >> 16 == 0x2002) /* 2002::/16 */
		out_be[3] = htonl(first << 16 | second >> 16);
	else
		return false;
	return true;
}

bool sl_own_has(struct sl_own *own, const __be32 addr_be[4])
{
	__be32 v4_be[4];

	return has(own, addr_be) || (embedded(addr_be, v4_be) && has(own, v4_be));
}
