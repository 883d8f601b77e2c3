// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dns/server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dns/server_private.h"

#define EVENTS 64
#define DATAGRAMS 64 /* of one socket in one turn */

/*
 * Of a UDP socket, which takes twice of it (socket(7)); a short query is 768 bytes there. By
 * default there is room for 277, and the rest of a burst is lost.
 */
#define RECEIVE_BYTES (4 << 20)

static int add_watch(struct sl_dns *dns, int fd, struct sl_watch *watch)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = watch };

	return epoll_ctl(dns->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int sl_dns_new(struct sl_dns **out, const struct sl_dns_options *options, struct sl_err *err)
{
	struct sl_dns *dns = calloc(1, sizeof(*dns));
	int ret;

	if (!dns)
		return sl_err_sys(err, ENOMEM, "policy DNS");
	dns->options = *options;
	LIST_INIT(&dns->listeners);
	TAILQ_INIT(&dns->conns);
	TAILQ_INIT(&dns->dead);
	TAILQ_INIT(&dns->queries);
	TAILQ_INIT(&dns->turns);
	dns->resolver_watch.kind = SL_WATCH_RESOLVER;
	dns->timer_watch.kind = SL_WATCH_TIMER;
	dns->again_watch.kind = SL_WATCH_AGAIN;
	dns->epoll = epoll_create1(EPOLL_CLOEXEC);
	dns->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	dns->again = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = dns->epoll < 0 || dns->timer < 0 || dns->again < 0 ? -errno : 0;
	if (!ret)
		ret = sl_htab_new(&dns->askers, sizeof(struct sl_asker_key),
				  sizeof(struct sl_asker *));
	if (!ret)
		ret = add_watch(dns, dns->timer, &dns->timer_watch);
	if (!ret)
		ret = add_watch(dns, dns->again, &dns->again_watch);
	if (!ret)
		ret = add_watch(dns, sl_resolver_fd(options->resolver), &dns->resolver_watch);
	if (ret) {
		sl_dns_free(&dns);
		return sl_err_sys(err, -ret, "policy DNS");
	}
	*out = dns;
	return 0;
}

void sl_dns_free(struct sl_dns **dns)
{
	struct sl_listener *listener;
	struct sl_dns *d;

	if (!dns || !*dns)
		return;
	d = *dns;
	while (!TAILQ_EMPTY(&d->queries))
		sl_query_drop(TAILQ_FIRST(&d->queries));
	while (!TAILQ_EMPTY(&d->conns))
		sl_conn_close(TAILQ_FIRST(&d->conns));
	sl_conn_free_dead(d);
	while ((listener = LIST_FIRST(&d->listeners))) {
		LIST_REMOVE(listener, all);
		close(listener->fd);
		free(listener);
	}
	sl_htab_free(&d->askers);
	sl_cleanup_fd(&d->again);
	sl_cleanup_fd(&d->timer);
	sl_cleanup_fd(&d->epoll);
	free(d);
	*dns = NULL;
}

/* Answers have to come from the address that was asked, which the socket may not be bound to. */
static int ask_for_destinations(int fd, const struct sockaddr_storage *addr)
{
	bool v4 = addr->ss_family == AF_INET;
	int on = 1;

	return setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_PKTINFO : IPV6_RECVPKTINFO,
			  &on, sizeof(on))
		       ? -errno
		       : 0;
}

/* Beyond what the system lets a user have, if this process may. */
static void take_bursts(int fd)
{
	const int bytes = RECEIVE_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static int look_at_socket(int fd, struct sl_listener *listener)
{
	socklen_t size = sizeof(listener->addr), type_size = sizeof(int);
	int type, flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ||
	    getsockname(fd, (struct sockaddr *)&listener->addr, &size) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size))
		return -errno;
	if ((listener->addr.ss_family != AF_INET && listener->addr.ss_family != AF_INET6) ||
	    (type != SOCK_DGRAM && type != SOCK_STREAM))
		return -EPROTOTYPE;
	listener->watch.kind = type == SOCK_DGRAM ? SL_WATCH_UDP : SL_WATCH_TCP;
	if (type != SOCK_DGRAM)
		return 0;
	take_bursts(fd);
	return ask_for_destinations(fd, &listener->addr);
}

int sl_dns_listen(struct sl_dns *dns, int fd, struct sl_err *err)
{
	_cleanup_fd_ int own = fd;
	_cleanup_free_ struct sl_listener *listener = calloc(1, sizeof(*listener));
	int ret;

	if (!listener)
		return sl_err_sys(err, ENOMEM, "socket of policy DNS");
	ret = look_at_socket(fd, listener);
	if (!ret)
		ret = add_watch(dns, fd, &listener->watch);
	if (ret)
		return sl_err_sys(err, -ret, "socket of policy DNS");
	listener->fd = TAKE_FD(own);
	LIST_INSERT_HEAD(&dns->listeners, listener, all);
	TAKE_PTR(listener);
	return 0;
}

/* Where a datagram was sent to, in the form of the socket's own address. */
static void set_asked(struct sl_dns_source *source, const struct sl_listener *listener,
		      struct msghdr *message)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&source->asked;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&source->asked;
	struct cmsghdr *cmsg;

	source->asked = listener->addr;
	for (cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		struct in_pktinfo info;
		struct in6_pktinfo info6;

		if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_PKTINFO &&
		    source->asked.ss_family == AF_INET) {
			memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
			in->sin_addr = info.ipi_addr;
		} else if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_PKTINFO) {
			memcpy(&info6, CMSG_DATA(cmsg), sizeof(info6));
			in6->sin6_addr = info6.ipi6_addr;
			if (IN6_IS_ADDR_LINKLOCAL(&info6.ipi6_addr))
				in6->sin6_scope_id = info6.ipi6_ifindex;
		}
	}
}

/* What found the receive buffer full. Once it is read, all that was dropped before is told. */
static void count_lost(struct sl_dns *dns, struct sl_listener *listener)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(listener->fd, SOL_SOCKET, SO_MEMINFO, info, &size))
		return;
	dns->counts[SL_DNS_COUNT_LOST] += info[SK_MEMINFO_DROPS] - listener->dropped;
	listener->dropped = info[SK_MEMINFO_DROPS];
}

static void read_datagrams(struct sl_dns *dns, struct sl_listener *listener)
{
	uint8_t data[SL_DNS_QUERY_SIZE];

	for (int i = 0; i < DATAGRAMS; i++) {
		struct sl_dns_source source = { .fd = listener->fd };
		_Alignas(struct cmsghdr) char control[256];
		struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
		struct msghdr message = { .msg_name = &source.client,
					  .msg_namelen = sizeof(source.client),
					  .msg_iov = &iov,
					  .msg_iovlen = 1,
					  .msg_control = control,
					  .msg_controllen = sizeof(control) };
		ssize_t size = recvmsg(listener->fd, &message, 0);

		if (size < 0) {
			/* What earlier answers met (no such port) is told here, and is nothing. */
			if (errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == EINTR)
				continue;
			break;
		}
		set_asked(&source, listener, &message);
		sl_query_take(dns, NULL, &source, data, (size_t)size);
	}
	count_lost(dns, listener);
}

static void set_source(struct msghdr *message, const struct sockaddr_storage *asked)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)asked;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)asked;
	bool v4 = asked->ss_family == AF_INET;
	struct in_pktinfo info = { .ipi_spec_dst = in->sin_addr };
	struct in6_pktinfo info6 = { .ipi6_addr = in6->sin6_addr,
				     .ipi6_ifindex = in6->sin6_scope_id };
	size_t size = v4 ? sizeof(info) : sizeof(info6);
	struct cmsghdr *cmsg;

	message->msg_controllen = CMSG_SPACE(size);
	cmsg = CMSG_FIRSTHDR(message);
	cmsg->cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	cmsg->cmsg_type = v4 ? IP_PKTINFO : IPV6_PKTINFO;
	cmsg->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(cmsg), v4 ? (void *)&info : (void *)&info6, size);
}

void sl_udp_send(struct sl_dns *dns, const struct sl_dns_source *source, const uint8_t *data,
		 size_t size)
{
	struct sockaddr_storage client = source->client;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr message = { .msg_name = &client,
				  .msg_namelen = client.ss_family == AF_INET
							 ? sizeof(struct sockaddr_in)
							 : sizeof(struct sockaddr_in6),
				  .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };

	set_source(&message, &source->asked);
	if (sendmsg(source->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	/* An earlier answer's error: this one was not tried yet. */
	if (errno == ECONNREFUSED &&
	    sendmsg(source->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	dns->counts[SL_DNS_COUNT_UNSENT]++;
}

void sl_dns_start_ticking(struct sl_dns *dns)
{
	const struct itimerspec second = { .it_value.tv_sec = 1, .it_interval.tv_sec = 1 };

	if (!dns->ticking && !timerfd_settime(dns->timer, 0, &second, NULL))
		dns->ticking = true;
}

static void tick(struct sl_dns *dns)
{
	struct sl_listener *listener;
	uint64_t fired;

	if (read(dns->timer, &fired, sizeof(fired)) < 0)
		return;
	sl_conn_tick(dns, sl_monotonic_ms());
	sl_query_overdue(dns);
	LIST_FOREACH(listener, &dns->listeners, all)
	{
		if (listener->paused && !add_watch(dns, listener->fd, &listener->watch))
			listener->paused = false;
	}
	if (TAILQ_EMPTY(&dns->conns) && !dns->queued) {
		const struct itimerspec never = { 0 };

		timerfd_settime(dns->timer, 0, &never, NULL);
		dns->ticking = false;
	}
}

static void handle(struct sl_dns *dns, struct sl_watch *watch, unsigned int events)
{
	eventfd_t more;

	switch (watch->kind) {
	case SL_WATCH_RESOLVER:
		sl_resolver_run(dns->options.resolver);
		break;
	case SL_WATCH_TIMER:
		tick(dns);
		break;
	case SL_WATCH_AGAIN:
		(void)eventfd_read(dns->again, &more);
		break;
	case SL_WATCH_UDP:
		read_datagrams(dns, (struct sl_listener *)watch);
		break;
	case SL_WATCH_TCP:
		sl_conn_accept(dns, (struct sl_listener *)watch);
		break;
	case SL_WATCH_CONN:
		sl_conn_handle((struct sl_conn *)watch, events);
		break;
	}
}

int sl_dns_fd(const struct sl_dns *dns)
{
	return dns->epoll;
}

void sl_dns_run(struct sl_dns *dns)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(dns->epoll, events, EVENTS, 0);

	for (int i = 0; i < n; i++)
		handle(dns, events[i].data.ptr, events[i].events);
	sl_query_turns(dns);
	sl_conn_free_dead(dns);
}

uint64_t sl_dns_count(const struct sl_dns *dns, enum sl_dns_count which)
{
	return which < SL_DNS_COUNT_MAX ? dns->counts[which] : 0;
}

uint64_t sl_dns_outcomes(const struct sl_dns *dns, enum sl_dns_outcome outcome)
{
	return outcome < SL_DNS_OUTCOME_MAX ? dns->outcomes[outcome] : 0;
}

unsigned int sl_dns_waiting(const struct sl_dns *dns)
{
	return dns->waiting;
}
