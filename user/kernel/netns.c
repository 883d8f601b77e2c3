// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "kernel/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "kernel/rtnetlink.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* The first interface of every namespace (LOOPBACK_IFINDEX, include/net/flow.h). */
#define LO_INDEX 1

/* --- inside of a namespace --- */

struct visit {
	int ns; /* negative: a new one */
	int (*fn)(void *arg);
	void *arg;
	int rc;
};

static void *visit_thread(void *arg)
{
	struct visit *visit = arg;
	bool there = visit->ns < 0 ? !unshare(CLONE_NEWNET) : !setns(visit->ns, CLONE_NEWNET);

	visit->rc = there ? visit->fn(visit->arg) : -errno;
	return NULL;
}

static int visit_run(struct visit *visit)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (rc)
		return -rc;
	rc = pthread_create(&thread, NULL, visit_thread, visit);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return -rc;
	pthread_join(thread, NULL);
	return visit->rc;
}

int sl_netns_run(int ns, int (*fn)(void *arg), void *arg)
{
	struct visit visit = { .ns = ns, .fn = fn, .arg = arg };

	return ns < 0 ? -EBADF : visit_run(&visit);
}

/* --- rtnetlink(7) --- */

/* Sends it and waits for the kernel's answer, which it has by then: 0 or -errno. */
static int talk(int fd, const struct sl_rt_request *req)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char rest[256];
	} answer;
	ssize_t n = send(fd, req, req->head.nlmsg_len, 0);

	if (n < 0)
		return -errno;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(answer.err)) || answer.head.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.err.error;
}

static int loopback_up(int fd)
{
	const struct sl_rt_request req = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(req.link)),
			  .nlmsg_type = RTM_NEWLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.link = { .ifi_index = LO_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP },
	};

	return talk(fd, &req);
}

/*
 * What `ip route replace local default dev lo src ADDR` does. Without the source, what is
 * sent to an address would come from that address.
 */
static int local_default(int fd, int family, const char *source)
{
	struct sl_rt_request req = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(req.route)),
			  .nlmsg_type = RTM_NEWROUTE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE },
		.route = { .rtm_family = (unsigned char)family,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_STATIC,
			   .rtm_scope = RT_SCOPE_HOST,
			   .rtm_type = RTN_LOCAL },
	};
	struct in6_addr addr;

	if (inet_pton(family, source, &addr) != 1)
		return -EINVAL;
	sl_rt_put_attr(&req, RTA_OIF, &(int){ LO_INDEX }, sizeof(int));
	sl_rt_put_attr(&req, RTA_PREFSRC, &addr,
		       family == AF_INET ? sizeof(struct in_addr) : sizeof(addr));
	return talk(fd, &req);
}

/*
 * Addresses beside loopback's own: getaddrinfo() with AI_ADDRCONFIG asks for no family of which
 * it finds none, and doesn't count 127.0.0.1 and ::1. Nothing is sent from there (the routes say
 * so), and no name gets it: sandboxes are numbered from 1.
 */
#define MARK_V4 "127.0.0.2"
#define MARK_V6 "fd73:6c75:6963::1"

static int add_address(int fd, int family, const char *text)
{
	const bool v4 = family == AF_INET;
	struct sl_rt_request req = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(req.addr)),
			  .nlmsg_type = RTM_NEWADDR,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE },
		.addr = { .ifa_family = (unsigned char)family,
			  .ifa_prefixlen = v4 ? 32 : 128,
			  .ifa_flags = v4 ? 0 : IFA_F_NODAD,
			  .ifa_scope = v4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
			  .ifa_index = LO_INDEX },
	};
	struct in6_addr addr;

	if (inet_pton(family, text, &addr) != 1)
		return -EINVAL;
	sl_rt_put_attr(&req, IFA_LOCAL, &addr, v4 ? sizeof(struct in_addr) : sizeof(addr));
	sl_rt_put_attr(&req, IFA_ADDRESS, &addr, v4 ? sizeof(struct in_addr) : sizeof(addr));
	return talk(fd, &req);
}

/* --- a relay's namespace --- */

/* Whether the namespace, whose loopback is up, has IPv6 at all. */
static bool has_v6(void)
{
	const struct sockaddr_in6 loopback = { .sin6_family = AF_INET6,
					       .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	_cleanup_fd_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && !bind(fd, (const struct sockaddr *)&loopback, sizeof(loopback));
}

static int make_relay(void)
{
	_cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc;

	if (fd < 0)
		return -errno;
	rc = loopback_up(fd);
	rc = rc ?: local_default(fd, AF_INET, "127.0.0.1");
	rc = rc ?: add_address(fd, AF_INET, MARK_V4);
	if (rc || !has_v6())
		return rc;
	rc = local_default(fd, AF_INET6, "::1");
	return rc ?: add_address(fd, AF_INET6, MARK_V6);
}

static int new_inside(void *arg)
{
	int *ns = arg, rc = make_relay();
	_cleanup_fd_ int fd = -1;

	if (rc)
		return rc;
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ns = TAKE_FD(fd);
	return 0;
}

int sl_netns_new(int *ns, struct sl_err *err)
{
	struct visit visit = { .ns = -1, .fn = new_inside, .arg = ns };
	int rc = visit_run(&visit);

	return rc ? sl_err_sys(err, -rc, "can't make a network namespace with loopback only") : 0;
}

static int relay_inside(void *arg)
{
	struct if_nameindex *names = if_nameindex();
	bool others;

	(void)arg;
	if (!names)
		return -errno;
	others = names[0].if_index && names[1].if_index;
	if_freenameindex(names);
	return others ? -EEXIST : make_relay();
}

int sl_netns_relay(int ns, struct sl_err *err)
{
	int rc = sl_netns_run(ns, relay_inside, NULL);

	if (rc == -EEXIST) {
		sl_err_set(err, EEXIST, "the network namespace has interfaces besides loopback");
		return sl_err_hint(err, "a relay is the only way out of its sandbox: give it a "
					"namespace without any, or use the network directly");
	}
	return rc ? sl_err_sys(err, -rc, "can't prepare the network namespace for a relay") : 0;
}

int sl_netns_of(pid_t pid, int *ns, struct sl_err *err)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return sl_err_sys(err, errno, "can't open the network namespace of process %d",
				  pid);
	*ns = fd;
	return 0;
}

static int cookie_inside(void *arg)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(__u64);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, arg, &len))
		return -errno;
	return 0;
}

int sl_netns_cookie(int ns, __u64 *out)
{
	__u64 cookie;
	int rc = sl_netns_run(ns, cookie_inside, &cookie);

	if (!rc)
		*out = cookie;
	return rc;
}
