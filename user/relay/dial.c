// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Happy Eyeballs, version 2 (RFC 8305, 4 and 5): families take turns, one try a stagger. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/epoll.h"
#include "relay/relay_private.h"

struct attempt {
	struct sl_watch watch;
	struct sl_dial *dial;
	int fd; /* -1: not begun, or over */
};

struct sl_dial {
	struct sl_relay_stream *stream;
	struct sl_relay_target target; /* its pointers are to what follows */
	struct sl_addr addresses[SL_RELAY_ADDRESSES_MAX];
	char device[SL_RELAY_DEVICE_MAX];
	struct sl_timer stagger;
	size_t next;               /* address to try */
	size_t last;               /* tried, or failed, last */
	unsigned int open;         /* attempts */
	int code;                  /* errno of the last one that failed */
	struct attempt attempts[]; /* of each address */
};

static socklen_t fill_address(struct sockaddr_storage *out, const struct sl_addr *addr,
			      uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (sl_addr_is_v4(addr)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		v4->sin_addr.s_addr = addr->be[3];
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, addr->be, sizeof(v6->sin6_addr));
	return sizeof(*v6);
}

int sl_dial_check(const struct sl_relay_target *target)
{
	if (!target->count || target->head_size > SL_RELAY_FIRST_MAX ||
	    (target->device && strlen(target->device) >= SL_RELAY_DEVICE_MAX))
		return -EINVAL;
	return 0;
}

int sl_dial_socket(int type, const struct sl_relay_target *target, const struct sl_addr *addr,
		   int *out)
{
	struct sockaddr_storage to;
	socklen_t len = fill_address(&to, addr, target->port);
	_cleanup_fd_ int fd = socket(to.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (target->mark &&
	    setsockopt(fd, SOL_SOCKET, SO_MARK, &target->mark, sizeof(target->mark)))
		return -errno;
	if (target->device && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, target->device,
					 (socklen_t)strlen(target->device) + 1))
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, len) && errno != EINPROGRESS)
		return -errno;
	*out = TAKE_FD(fd);
	return 0;
}

void sl_dial_stop(struct sl_dial *dial)
{
	if (!dial)
		return;
	sl_timer_off(&dial->stagger);
	for (size_t i = 0; i < dial->target.count; i++)
		sl_epoll_close(dial->stream->relay->epoll, &dial->attempts[i].fd);
	dial->open = 0;
}

void sl_dial_free(struct sl_dial **dial)
{
	if (!*dial)
		return;
	sl_dial_stop(*dial);
	free(*dial);
	*dial = NULL;
}

void sl_dial_failed(struct sl_relay_stream *stream, int code)
{
	const struct sl_relay_options *options = &stream->relay->options;
	bool shortage = sl_relay_is_shortage(code);

	sl_dial_stop(stream->dial);
	stream->relay->counts[SL_RELAY_DIAL_FAILED]++;
	stream->end.address = stream->dial->addresses[stream->dial->last];
	stream->end.port = stream->dial->target.port;
	sl_stream_fail(stream, shortage ? SL_RELAY_CAUSE_MEMORY : SL_RELAY_CAUSE_DIAL, code);
	if (options->ops->unreachable)
		options->ops->unreachable(options->arg, stream, &stream->end);
	if (stream->way == SL_RELAY_WAY_TRANSPARENT)
		sl_stream_end(stream);
	else
		sl_explicit_unreachable(stream, code);
}

static void attempt_ready(struct sl_watch *watch, uint32_t events);

static int try_address(struct sl_dial *dial, size_t index)
{
	struct attempt *attempt = &dial->attempts[index];
	_cleanup_fd_ int fd = -1;
	int ret = sl_dial_socket(SOCK_STREAM, &dial->target, &dial->addresses[index], &fd);

	dial->last = index;
	if (ret)
		return ret;
	attempt->dial = dial;
	attempt->watch.ready = attempt_ready;
	ret = sl_relay_watch(dial->stream->relay, fd, SL_RELAY_EDGES, &attempt->watch);
	if (ret)
		return ret;
	attempt->fd = TAKE_FD(fd);
	dial->open++;
	return 0;
}

/* The next address that can be tried; when none is left and none is open, it has failed. */
static void advance(struct sl_dial *dial)
{
	struct sl_relay *relay = dial->stream->relay;

	sl_timer_off(&dial->stagger);
	while (dial->next < dial->target.count) {
		int ret = try_address(dial, dial->next++);

		if (!ret) {
			if (dial->next < dial->target.count)
				sl_timer_set(&dial->stagger, &relay->staggers,
					     sl_relay_now_ms(relay));
			return;
		}
		dial->code = -ret;
	}
	if (!dial->open)
		sl_dial_failed(dial->stream, dial->code);
}

void sl_dial_stagger_due(struct sl_timer *timer)
{
	advance(SL_OWNER(timer, struct sl_dial, stagger));
}

static void attempt_ready(struct sl_watch *watch, uint32_t events)
{
	struct attempt *attempt = SL_OWNER(watch, struct attempt, watch);
	struct sl_dial *dial = attempt->dial;
	_cleanup_fd_ int fd = -1;
	int code = 0;
	socklen_t len = sizeof(code);

	if (attempt->fd < 0)
		return;
	if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &code, &len))
		code = errno;
	if (!code && !(events & EPOLLOUT))
		return;
	dial->open--;
	if (code) {
		sl_epoll_close(dial->stream->relay->epoll, &attempt->fd);
		dial->code = code;
		dial->last = (size_t)(attempt - dial->attempts);
		advance(dial);
		return;
	}
	fd = TAKE_FD(attempt->fd);
	dial->stream->end.address = dial->addresses[attempt - dial->attempts];
	dial->stream->end.port = dial->target.port;
	sl_dial_stop(dial);
	sl_stream_open(dial->stream, &fd);
}

/* RFC 8305, 4: the first family stays first, then they take turns as long as both last. */
static void interleave(struct sl_dial *dial, const struct sl_addr *from, size_t count)
{
	bool v4 = sl_addr_is_v4(&from[0]);
	size_t at[2] = { 0, 0 }, n = 0;

	for (unsigned int turn = 0; n < count; turn ^= 1) {
		size_t *i = &at[turn];

		while (*i < count && sl_addr_is_v4(&from[*i]) != (turn ? !v4 : v4))
			(*i)++;
		if (*i < count)
			dial->addresses[n++] = from[(*i)++];
	}
}

int sl_dial_new(struct sl_relay_stream *stream, const struct sl_relay_target *target)
{
	struct sl_relay *relay = stream->relay;
	size_t count = target->count < SL_RELAY_ADDRESSES_MAX ? target->count
							      : SL_RELAY_ADDRESSES_MAX;
	struct sl_dial *dial = calloc(1, sizeof(*dial) + count * sizeof(dial->attempts[0]));

	if (!dial)
		return -ENOMEM;
	if (sl_pump_first(&stream->up, target->head, target->head_size)) {
		free(dial);
		return -ENOMEM;
	}
	dial->stream = stream;
	dial->target = *target;
	dial->target.count = count;
	dial->target.addresses = dial->addresses;
	dial->target.head = NULL;
	if (target->device) {
		strcpy(dial->device, target->device);
		dial->target.device = dial->device;
	}
	interleave(dial, target->addresses, count);
	for (size_t i = 0; i < count; i++)
		dial->attempts[i].fd = -1;
	stream->dial = dial;
	stream->state = SL_STREAM_DIALLING;
	sl_timer_set(&stream->phase, &relay->connects, sl_relay_now_ms(relay));
	advance(dial);
	return 0;
}
