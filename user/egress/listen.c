/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets in the sandbox's network namespace, and what makes the kernel lead there. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/sockaddr.h"
#include "egress/egress_private.h"
#include "kernel/netns.h"

/* A port that is free for UDP and taken for TCP: as often as that another one is tried. */
#define PORT_TRIES 32
#define BACKLOG 1024

/* --- loopback sockets of a given or a free port --- */

static socklen_t loopback(struct sockaddr_storage *out, int family, __u16 port)
{
	memset(out, 0, sizeof(*out));
	if (family == AF_INET) {
		*(struct sockaddr_in *)out = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
			.sin_port = htons(port),
		};
		return sizeof(struct sockaddr_in);
	}
	*(struct sockaddr_in6 *)out = (struct sockaddr_in6){
		.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
		.sin6_port = htons(port),
	};
	return sizeof(struct sockaddr_in6);
}

static __u16 port_of(int fd)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *)&addr, &len))
		return 0;
	return ntohs(addr.ss_family == AF_INET ? ((struct sockaddr_in *)&addr)->sin_port
					       : ((struct sockaddr_in6 *)&addr)->sin6_port);
}

/* The descriptor or -errno. */
static int loopback_socket(int family, int type, __u16 port)
{
	_cleanup_fd_ int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage addr;
	socklen_t len = loopback(&addr, family, port);
	const int on = 1;

	if (fd < 0 ||
	    (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))))
		return -errno;
	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, len) || (type == SOCK_STREAM && listen(fd, BACKLOG)))
		return -errno;
	return TAKE_FD(fd);
}

/* A system without IPv6 has no such listeners, and no such clients. */
static bool no_family(int rc)
{
	return rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL;
}

struct make {
	int *fds;
	int family;
};

/* Both transports of policy DNS on one port, since the guard leads both there. */
static int make_dns(void *arg)
{
	const struct make *make = arg;
	int udp, tcp = -EADDRINUSE;

	for (int i = 0; i < PORT_TRIES && tcp == -EADDRINUSE; i++) {
		udp = loopback_socket(make->family, SOCK_DGRAM, 0);
		if (udp < 0)
			return udp;
		tcp = loopback_socket(make->family, SOCK_STREAM, port_of(udp));
		if (tcp < 0)
			close(udp);
	}
	if (tcp < 0)
		return tcp;
	make->fds[0] = udp;
	make->fds[1] = tcp;
	return 0;
}

static int make_proxy(void *arg)
{
	const struct make *make = arg;
	int fd = loopback_socket(make->family, SOCK_STREAM, SL_EGRESS_PROXY_PORT);

	if (fd < 0)
		return fd;
	make->fds[0] = fd;
	return 0;
}

static int in_netns(struct sl_egress *egress, int (*fn)(void *arg), void *arg)
{
	return egress->netns < 0 ? fn(arg) : sl_netns_run(egress->netns, fn, arg);
}

/* --- direct: the guard rewrites --- */

/* Where the guard leads questions of that family: loopback, and a port. */
static void lead_to(struct sl_dns_listeners *dns, int family, __u16 port)
{
	struct sockaddr_storage addr;

	loopback(&addr, family, port);
	(void)sl_sockaddr_endpoint(family == AF_INET ? &dns->v4 : &dns->v6, &addr);
}

static int listen_direct(struct sl_egress *egress, struct sl_err *err)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct sl_dns_listeners dns = { 0 };
	int rc;

	for (int i = 0; i < 2; i++) {
		struct make make = { &egress->dns_fds[2 * i], families[i] };

		rc = in_netns(egress, make_dns, &make);
		if (rc && !(i && no_family(rc)))
			return sl_err_sys(err, -rc, "can't listen for policy DNS");
		if (!rc)
			lead_to(&dns, families[i], port_of(make.fds[0]));
	}
	return sl_guard_dns(egress->set, egress->sandbox, &dns, err);
}

/* --- relay: the namespace's steering leads here --- */

/* Questions need no rule because the guard leads them to port 53 of loopback. */
static int guard_relay(struct sl_egress *egress, struct sl_err *err)
{
	struct sl_dns_listeners dns = { 0 };
	int rc;

	lead_to(&dns, AF_INET, SL_DNS_PORT);
	if (egress->listeners[SL_STEER_DNS_UDP_V6] >= 0)
		lead_to(&dns, AF_INET6, SL_DNS_PORT);
	rc = sl_guard_dns(egress->set, egress->sandbox, &dns, err);
	rc = rc ?: sl_guard_datagrams(egress->set, egress->sandbox, true, err);
	return rc ?: sl_guard_synthetic(egress->set, egress->sandbox, true, err);
}

static int listen_relay(struct sl_egress *egress, struct sl_err *err)
{
	int rc = sl_netns_relay(egress->netns, err);

	rc = rc
		     ?: sl_steer_attach(&egress->steer, egress->set, egress->sandbox, egress->netns,
					err);
	if (rc == -EEXIST) /* a process before this one has made it */
		rc = sl_steer_open(&egress->steer, egress->set, egress->sandbox, err);
	for (unsigned int i = 0; !rc && i < SL_STEER_MAX; i++) {
		rc = sl_steer_socket(egress->netns, i, &egress->listeners[i], err);
		if (no_family(rc) && i & SL_STEER_V6) {
			rc = 0;
			continue;
		}
		rc = rc ?: sl_steer_listener(egress->steer, i, egress->listeners[i], err);
	}
	for (int i = 0; !rc && i < 2; i++) {
		struct make make = { &egress->proxies[i], i ? AF_INET6 : AF_INET };

		rc = in_netns(egress, make_proxy, &make);
		if (i && no_family(rc))
			rc = 0;
		if (rc)
			sl_err_sys(err, -rc, "can't listen on port %d, for clients of a proxy",
				   SL_EGRESS_PROXY_PORT);
	}
	return rc ?: guard_relay(egress, err);
}

int sl_egress_listen(struct sl_egress *egress, struct sl_err *err)
{
	return egress->relay ? listen_relay(egress, err) : listen_direct(egress, err);
}

void sl_egress_unlisten(struct sl_egress *egress)
{
	for (unsigned int i = 0; i < SL_STEER_MAX; i++)
		sl_cleanup_fd(&egress->listeners[i]);
	for (int i = 0; i < 2; i++)
		sl_cleanup_fd(&egress->proxies[i]);
	for (int i = 0; i < 4; i++)
		sl_cleanup_fd(&egress->dns_fds[i]);
	sl_steer_free(&egress->steer);
}
