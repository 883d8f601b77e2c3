/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verbs on the current socket by the usual calls. */
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "do.h"
#include "truth.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static const struct {
	const char *name;
	int family, type, protocol;
} kinds[] = {
	{ "tcp", AF_INET, SOCK_STREAM, 0 },
	{ "tcp6", AF_INET6, SOCK_STREAM, 0 },
	{ "udp", AF_INET, SOCK_DGRAM, 0 },
	{ "udp6", AF_INET6, SOCK_DGRAM, 0 },
	{ "mptcp", AF_INET, SOCK_STREAM, IPPROTO_MPTCP },
};

static long result(long rc)
{
	return rc < 0 ? -errno : rc;
}

static long do_socket(struct sl_doer *doer, const char *arg)
{
	int family, type, protocol;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(kinds[i].name, arg))
			return sl_do_use(doer, result(socket(kinds[i].family,
							     kinds[i].type | SOCK_CLOEXEC,
							     kinds[i].protocol)));
	}
	if (sscanf(arg, "%d.%d.%d", &family, &type, &protocol) != 3)
		return sl_usage("socket: no such kind '%s'", arg);
	return sl_do_use(doer, result(socket(family, type | SOCK_CLOEXEC, protocol)));
}

static long do_adopt(struct sl_doer *doer, const char *arg)
{
	uint64_t fd;

	if (sl_number(arg, INT_MAX, &fd) < 0)
		return sl_usage("adopt: no descriptor '%s'", arg);
	return sl_do_use(doer, result(dup((int)fd)));
}

static long do_bind(struct sl_doer *doer, const char *arg)
{
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	return rc < 0 ? rc : result(bind(doer->fd, &addr.sa, addr.len));
}

/* Its result is the port. */
static long do_port(struct sl_doer *doer, const char *arg)
{
	struct sl_addr addr;
	int rc = sl_addr_local(doer->fd, &addr);

	(void)arg;
	return rc < 0 ? rc : sl_addr_port(&addr);
}

/* The same. */
static long do_listen(struct sl_doer *doer, const char *arg)
{
	return listen(doer->fd, 16) < 0 ? -errno : do_port(doer, arg);
}

static long do_connect(struct sl_doer *doer, const char *arg)
{
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	return rc < 0 ? rc : result(connect(doer->fd, &addr.sa, addr.len));
}

static long do_disconnect(struct sl_doer *doer, const char *arg)
{
	struct sockaddr addr = { .sa_family = AF_UNSPEC };

	(void)arg;
	return result(connect(doer->fd, &addr, sizeof(addr)));
}

static long do_sendto(struct sl_doer *doer, const char *arg)
{
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	return rc < 0 ? rc : result(sendto(doer->fd, "x", 1, MSG_NOSIGNAL, &addr.sa, addr.len));
}

static long do_send(struct sl_doer *doer, const char *arg)
{
	(void)arg;
	return result(send(doer->fd, "x", 1, MSG_NOSIGNAL));
}

/* Waits until the other side has ended the connection: an error, or the end (0). */
static long do_await_end(struct sl_doer *doer, const char *arg)
{
	char byte;

	(void)arg;
	return result(recv(doer->fd, &byte, 1, 0));
}

/* Its result is how many datagrams were there to take. */
static long do_drain(struct sl_doer *doer, const char *arg)
{
	char byte;
	long n = 0;

	(void)arg;
	while (recv(doer->fd, &byte, 1, MSG_DONTWAIT) >= 0)
		n++;
	return errno == EAGAIN ? n : -errno;
}

/* Waits until there is somebody to accept, and accepts. */
static long do_accept(struct sl_doer *doer, const char *arg)
{
	(void)arg;
	return sl_do_use(doer, result(accept4(doer->fd, NULL, NULL, SOCK_CLOEXEC)));
}

static void tell_length(const char *call, int len, long rc)
{
	struct sl_line line;

	sl_line_start(&line, "length");
	sl_line_add(&line, "call", "%s", call);
	sl_line_add(&line, "len", "%d", len);
	sl_line_errno(&line, "errno", rc < 0 ? errno : 0);
	sl_line_end(&line);
}

/* Each call that takes an address, with lengths that no address has. */
static long do_lengths(struct sl_doer *doer, const char *arg)
{
	static const int lengths[] = { INT_MAX, -1, 0, 1, 2, INT_MIN, 129, 1 << 16 };
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		socklen_t len = (socklen_t)lengths[i];

		tell_length("connect", lengths[i], connect(doer->fd, &addr.sa, len));
		tell_length("bind", lengths[i], bind(doer->fd, &addr.sa, len));
		tell_length("sendto", lengths[i],
			    sendto(doer->fd, "x", 1, MSG_NOSIGNAL, &addr.sa, len));
		tell_length("fastopen", lengths[i],
			    sendto(doer->fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, &addr.sa, len));
	}
	tell_length("no address", (int)addr.len, connect(doer->fd, NULL, addr.len));
	return 0;
}

static long do_ifaddrs(struct sl_doer *doer, const char *arg)
{
	struct ifaddrs *all;
	long n = 0;

	(void)doer, (void)arg;
	if (getifaddrs(&all) < 0)
		return -errno;
	for (struct ifaddrs *one = all; one; one = one->ifa_next)
		n++;
	freeifaddrs(all);
	return n;
}

/* A loose source route by way of this address: the packet goes there first (RFC 791). */
static long do_source_route(struct sl_doer *doer, const char *arg)
{
	struct sl_addr addr;
	unsigned char option[] = { IPOPT_NOP, IPOPT_LSRR, 7, 4, 0, 0, 0, 0 };
	int rc = sl_do_addr(arg, &addr);

	if (rc < 0 || addr.sa.sa_family != AF_INET)
		return rc < 0 ? rc : -EAFNOSUPPORT;
	memcpy(option + 4, &addr.in.sin_addr, 4);
	return result(setsockopt(doer->fd, IPPROTO_IP, IP_OPTIONS, option, sizeof(option)));
}

/* A segment routing header whose one other segment is this address (RFC 8754). */
static long do_routing_header(struct sl_doer *doer, const char *arg)
{
	struct {
		struct ip6_rthdr head;
		uint8_t last, flags;
		uint16_t tag;
		struct in6_addr segments[2];
	} header = { .head = { .ip6r_len = 4, .ip6r_type = 4, .ip6r_segleft = 1 }, .last = 1 };
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	if (rc < 0 || addr.sa.sa_family != AF_INET6)
		return rc < 0 ? rc : -EAFNOSUPPORT;
	header.segments[1] = addr.in6.sin6_addr;
	return result(setsockopt(doer->fd, IPPROTO_IPV6, IPV6_RTHDR, &header, sizeof(header)));
}

const struct sl_verb sl_socket_verbs[] = {
	{ "socket", do_socket },
	{ "adopt", do_adopt },
	{ "bind", do_bind },
	{ "listen", do_listen },
	{ "accept", do_accept },
	{ "drain", do_drain },
	{ "port", do_port },
	{ "connect", do_connect },
	{ "disconnect", do_disconnect },
	{ "sendto", do_sendto },
	{ "send", do_send },
	{ "await-end", do_await_end },
	{ "lengths", do_lengths },
	{ "ifaddrs", do_ifaddrs },
	{ "source-route", do_source_route },
	{ "routing-header", do_routing_header },
	{ 0 },
};
