/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "system/relayed.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define WAIT_MS 5000

#ifndef IP_ORIGDSTADDR
#define IP_ORIGDSTADDR 20
#endif
#ifndef IPV6_ORIGDSTADDR
#define IPV6_ORIGDSTADDR 74
#endif

struct relayed relayed;

void relayed_listen(void)
{
	struct sl_err err = { 0 };

	for (int i = 0; i < SL_STEER_MAX; i++) {
		cr_assert_eq(sl_steer_socket(relayed.ns, i, &relayed.listener[i], &err), 0, "%s",
			     err.text);
		if (!(i & SL_STEER_UDP))
			setsockopt(relayed.listener[i], IPPROTO_TCP, TCP_FASTOPEN, &(int){ 8 },
				   sizeof(int));
		cr_assert_eq(sl_steer_listener(relayed.steer, i, relayed.listener[i], &err), 0,
			     "%s", err.text);
	}
}

void relayed_close(void)
{
	for (int i = 0; i < SL_STEER_MAX; i++)
		close(relayed.listener[i]);
}

void relayed_up(void)
{
	_cleanup_fd_ int sysctl = -1;
	struct sl_err err = { 0 };

	world_make(NULL, true);
	cr_assert_eq(sl_netns_new(&relayed.ns, &err), 0, "%s", err.text);
	cr_assert_eq(setns(relayed.ns, CLONE_NEWNET), 0);
	/* As in guarded_up(): the first SYN carries data. */
	sysctl = open("/proc/sys/net/ipv4/tcp_fastopen", O_WRONLY | O_CLOEXEC);
	cr_assert_eq(write(sysctl, "519", 3), 3);
	cr_assert_eq(sl_steer_attach(&relayed.steer, world.set, world.sandbox, relayed.ns, &err), 0,
		     "%s", err.text);
	relayed_listen();
}

void relayed_down(void)
{
	sl_steer_free(&relayed.steer);
	world_down();
}

void relayed_name(const struct sockaddr_storage *addr, char *out, size_t size)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	char text[INET6_ADDRSTRLEN];

	if (addr->ss_family == AF_INET)
		snprintf(out, size, "%s:%u", inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)),
			 ntohs(in->sin_port));
	else
		snprintf(out, size, "[%s]:%u",
			 inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text)),
			 ntohs(in6->sin6_port));
}

static void await_input(int fd, const char *what)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	cr_assert_eq(poll(&pfd, 1, WAIT_MS), 1, "nothing comes: %s", what);
}

int relayed_accept(enum sl_steer_which which, char *name)
{
	struct sockaddr_storage local = { 0 };
	socklen_t len = sizeof(local);
	int fd;

	await_input(relayed.listener[which], "a connection");
	fd = accept4(relayed.listener[which], NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", strerror(errno));
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&local, &len), 0);
	relayed_name(&local, name, INET6_ADDRSTRLEN + 8);
	return fd;
}

size_t relayed_drain(int fd)
{
	char buf[4096];
	size_t sum = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		sum += (size_t)n;
	close(fd);
	return sum;
}

/* Where it was sent to: of the DNS an address only. */
static void take_target(struct datagram *out, struct msghdr *msg)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->to;
	struct sockaddr_in *in = (struct sockaddr_in *)&out->to;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		const void *data = CMSG_DATA(cmsg);

		if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_ORIGDSTADDR) {
			memcpy(in, data, sizeof(*in));
		} else if (cmsg->cmsg_level == IPPROTO_IPV6 &&
			   cmsg->cmsg_type == IPV6_ORIGDSTADDR) {
			memcpy(in6, data, sizeof(*in6));
		} else if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_PKTINFO) {
			in->sin_family = AF_INET;
			in->sin_port = htons(SL_DNS_PORT);
			in->sin_addr = ((const struct in_pktinfo *)data)->ipi_addr;
		} else if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_PKTINFO) {
			in6->sin6_family = AF_INET6;
			in6->sin6_port = htons(SL_DNS_PORT);
			in6->sin6_addr = ((const struct in6_pktinfo *)data)->ipi6_addr;
		}
	}
}

void relayed_datagram(enum sl_steer_which which, struct datagram *out)
{
	char control[256];
	struct iovec iov = { out->text, sizeof(out->text) };
	struct msghdr msg = { .msg_name = &out->from,
			      .msg_namelen = sizeof(out->from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };

	memset(out, 0, sizeof(*out));
	iov.iov_base = out->text;
	await_input(relayed.listener[which], "a datagram");
	out->size = recvmsg(relayed.listener[which], &msg, 0);
	cr_assert_gt(out->size, 0, "%s", strerror(errno));
	out->len = msg.msg_namelen;
	take_target(out, &msg);
	cr_assert_neq(out->to.ss_family, AF_UNSPEC, "no address beside the datagram");
	relayed_name(&out->to, out->name, sizeof(out->name));
}
