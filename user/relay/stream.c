// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/epoll.h"
#include "relay/relay_private.h"

/* When to ask a silent peer whether it is there, and when to take it for gone: seconds. */
#define KEEPALIVE_IDLE 60
#define KEEPALIVE_STEP 15
#define KEEPALIVE_PROBES 4

#define DISCARD_TURNS 16

void sl_stream_fail(struct sl_relay_stream *stream, enum sl_relay_cause cause, int code)
{
	if (stream->failing)
		return;
	stream->failing = true;
	stream->end.cause = cause;
	stream->end.code = code;
}

void sl_stream_end(struct sl_relay_stream *stream)
{
	struct sl_relay *relay = stream->relay;

	if (stream->state == SL_STREAM_ENDED)
		return;
	stream->state = SL_STREAM_ENDED;
	sl_timer_off(&stream->phase);
	sl_timer_off(&stream->idle);
	sl_timer_off(&stream->life);
	/* A connection that is made in the same turn would open it again. */
	sl_dial_stop(stream->dial);
	if (stream->queued)
		TAILQ_REMOVE(&relay->ready, stream, ready);
	stream->queued = false;
	STAILQ_INSERT_TAIL(&relay->ended, stream, done);
	sl_relay_kick(relay);
}

void sl_stream_queue(struct sl_relay_stream *stream)
{
	if (stream->queued || stream->state == SL_STREAM_ENDED)
		return;
	stream->queued = true;
	TAILQ_INSERT_TAIL(&stream->relay->ready, stream, ready);
	sl_relay_kick(stream->relay);
}

/* The rest of a reset's work: what the kernel has not sent yet would be lost with it. */
static bool is_flushed(const struct sl_relay_stream *stream, const struct sl_pump *pump)
{
	int unsent = 0;

	if (!sl_pump_over(pump))
		return false;
	if (pump->dead || pump->to->fd < 0 || ioctl(pump->to->fd, SIOCOUTQNSD, &unsent))
		return true;
	return !unsent || stream->end.cause > SL_RELAY_CAUSE_SERVER;
}

static void flush_or_end(struct sl_relay_stream *stream)
{
	int64_t now = sl_relay_now_ms(stream->relay);

	if (!stream->flush_until_ms)
		stream->flush_until_ms = now + SL_RELAY_FLUSH_MS;
	if (now >= stream->flush_until_ms ||
	    (is_flushed(stream, &stream->up) && is_flushed(stream, &stream->down)))
		sl_stream_end(stream);
	else
		sl_timer_set(&stream->phase, &stream->relay->flushes, now);
}

static void linger(struct sl_relay_stream *stream)
{
	struct sl_relay *relay = stream->relay;

	/* Closing with something unread would be an RST, which takes from the client what it
	 * has not read of the answer yet. */
	shutdown(stream->client.side.fd, SHUT_WR);
	stream->state = SL_STREAM_LINGER;
	sl_timer_set(&stream->phase, &relay->lingers, sl_relay_now_ms(relay));
	sl_stream_queue(stream);
}

/* What an error on one side means for the direction that ends there, and for the other. */
static void note_errors(struct sl_relay_stream *stream)
{
	struct sl_pump *up = &stream->up, *down = &stream->down;

	if (up->error || down->dead)
		sl_stream_fail(stream, SL_RELAY_CAUSE_CLIENT, up->error ?: ECONNRESET);
	if (down->error || up->dead)
		sl_stream_fail(stream, SL_RELAY_CAUSE_SERVER, down->error ?: ECONNRESET);
	up->broken |= down->dead;
	down->broken |= up->dead;
	if (up->error && !down->dead)
		sl_pump_kill(down, &stream->relay->pump);
	if (down->error && !up->dead)
		sl_pump_kill(up, &stream->relay->pump);
}

static void move(struct sl_relay_stream *stream)
{
	struct sl_relay *relay = stream->relay;
	struct sl_pump *up = &stream->up, *down = &stream->down;
	uint64_t before = up->bytes + down->bytes;
	bool more;

	more = sl_pump_run(up, &relay->pump);
	more |= sl_pump_run(down, &relay->pump);
	if (up->bytes + down->bytes != before)
		sl_timer_set(&stream->idle, &relay->idles, sl_relay_now_ms(relay));
	note_errors(stream);
	if (more)
		sl_stream_queue(stream);
	if (stream->failing)
		flush_or_end(stream);
	else if (sl_pump_done(up) && sl_pump_done(down) && up->limited)
		linger(stream);
	else if (sl_pump_done(up) && sl_pump_done(down))
		sl_stream_end(stream);
}

static void discard(struct sl_relay_stream *stream)
{
	for (unsigned int i = 0; i < DISCARD_TURNS; i++) {
		ssize_t n = recv(stream->client.side.fd, stream->relay->pump.copy, SL_PUMP_COPY,
				 MSG_TRUNC | MSG_DONTWAIT);

		if (n > 0 || (n < 0 && errno == EINTR))
			continue;
		if (!n || errno != EAGAIN)
			sl_stream_end(stream);
		return;
	}
	sl_stream_queue(stream);
}

static void run(struct sl_relay_stream *stream)
{
	switch (stream->state) {
	case SL_STREAM_HEAD:
		if (stream->client.side.readable)
			sl_explicit_read(stream);
		break;
	case SL_STREAM_OPEN:
		move(stream);
		break;
	case SL_STREAM_REPLYING:
		sl_pump_run(&stream->down, &stream->relay->pump);
		if (stream->down.dead)
			sl_stream_end(stream);
		else if (!stream->down.first)
			linger(stream);
		break;
	case SL_STREAM_LINGER:
		discard(stream);
		break;
	case SL_STREAM_ASKED:
	case SL_STREAM_DIALLING:
	case SL_STREAM_ENDED:
		break;
	}
}

void sl_stream_run_ready(struct sl_relay *relay)
{
	struct sl_relay_stream *last = TAILQ_LAST(&relay->ready, sl_stream_queue), *stream;

	/* Who queues again comes behind `last`; one that ends takes itself out. */
	while (last && (stream = TAILQ_FIRST(&relay->ready))) {
		TAILQ_REMOVE(&relay->ready, stream, ready);
		stream->queued = false;
		run(stream);
		if (stream == last)
			break;
	}
}

static void note_events(struct sl_side *side, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		side->side.readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		side->side.writable = true;
}

static void client_ready(struct sl_watch *watch, uint32_t events)
{
	struct sl_relay_stream *stream = SL_OWNER(watch, struct sl_relay_stream, client.watch);
	int code = 0;
	socklen_t len = sizeof(code);

	note_events(&stream->client, events);
	if (!(events & EPOLLERR) || stream->state == SL_STREAM_ENDED) {
		run(stream);
	} else if (stream->state == SL_STREAM_OPEN) {
		sl_pump_kill(&stream->down, &stream->relay->pump);
		run(stream);
	} else {
		getsockopt(stream->client.side.fd, SOL_SOCKET, SO_ERROR, &code, &len);
		sl_stream_fail(stream, SL_RELAY_CAUSE_CLIENT, code);
		sl_stream_end(stream);
	}
}

static void server_ready(struct sl_watch *watch, uint32_t events)
{
	struct sl_relay_stream *stream = SL_OWNER(watch, struct sl_relay_stream, server.watch);

	note_events(&stream->server, events);
	if (events & EPOLLERR && stream->state == SL_STREAM_OPEN)
		sl_pump_kill(&stream->up, &stream->relay->pump);
	run(stream);
}

void sl_stream_set_socket(int fd)
{
	const int on = 1, idle = KEEPALIVE_IDLE, step = KEEPALIVE_STEP, probes = KEEPALIVE_PROBES;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof(step));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

void sl_stream_open(struct sl_relay_stream *stream, int *fd)
{
	struct sl_relay *relay = stream->relay;
	struct epoll_event event = { .events = SL_RELAY_EDGES, .data.ptr = &stream->server.watch };

	stream->server.side.fd = TAKE_FD(*fd);
	stream->end.connected = true;
	relay->counts[SL_RELAY_CONNECTED]++;
	sl_stream_set_socket(stream->server.side.fd);
	/* Changing what is watched for tells anew what is ready, edges or not. */
	if (epoll_ctl(relay->epoll, EPOLL_CTL_MOD, stream->server.side.fd, &event) ||
	    (stream->way != SL_RELAY_WAY_TRANSPARENT && sl_explicit_connected(stream))) {
		sl_stream_fail(stream, SL_RELAY_CAUSE_MEMORY, ENOMEM);
		sl_stream_end(stream);
		return;
	}
	stream->server.side.writable = true;
	stream->state = SL_STREAM_OPEN;
	sl_timer_off(&stream->phase);
	sl_timer_set(&stream->idle, &relay->idles, sl_relay_now_ms(relay));
	sl_stream_queue(stream);
}

void sl_stream_ask(struct sl_relay_stream *stream, const char *host, uint16_t port)
{
	struct sl_relay *relay = stream->relay;
	struct sl_relay_ask ask = { .way = stream->way,
				    .listener = stream->listener_arg,
				    .fd = stream->client.side.fd,
				    .client = stream->peer,
				    .host = host,
				    .port = port };
	socklen_t len = sizeof(ask.original);

	getsockname(stream->client.side.fd, (struct sockaddr *)&ask.original, &len);
	sl_timer_off(&stream->phase);
	stream->state = SL_STREAM_ASKED;
	stream->asked = true;
	relay->options.ops->admit(relay->options.arg, stream, &ask);
}

int sl_stream_new(struct sl_relay *relay, const struct sl_relay_entry *entry, int *fd,
		  const struct sockaddr_storage *peer)
{
	_cleanup_free_ struct sl_relay_stream *stream = calloc(1, sizeof(*stream));
	struct sl_relay_stream *s = stream;
	int ret;

	if (!s)
		return -ENOMEM;
	s->relay = relay;
	s->listener_arg = entry->listener.arg;
	s->way = SL_RELAY_WAY_TRANSPARENT;
	s->peer = *peer;
	s->since_ns = sl_relay_now_ns();
	s->client.side.fd = *fd;
	s->client.side.writable = true;
	s->client.watch.ready = client_ready;
	s->server.side.fd = -1;
	s->server.watch.ready = server_ready;
	s->up = (struct sl_pump){ .from = &s->client.side, .to = &s->server.side };
	s->down = (struct sl_pump){ .from = &s->server.side, .to = &s->client.side };
	ret = sl_relay_watch(relay, *fd, SL_RELAY_EDGES, &s->client.watch);
	if (ret)
		return ret;
	TAKE_PTR(stream);
	*fd = -1;
	LIST_INSERT_HEAD(&relay->streams, s, all);
	relay->stream_count++;
	sl_timer_set(&s->life, &relay->lives, sl_relay_now_ms(relay));
	if (entry->listener.kind == SL_RELAY_PROXY)
		sl_timer_set(&s->phase, &relay->heads, sl_relay_now_ms(relay));
	else
		sl_stream_ask(s, NULL, 0);
	return 0;
}

static void close_side(struct sl_relay *relay, struct sl_pump_side *side, bool reset)
{
	const struct linger now = { .l_onoff = 1 };

	if (side->fd < 0)
		return;
	if (reset)
		setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	sl_epoll_close(relay->epoll, &side->fd);
}

static void tell(struct sl_relay_stream *stream)
{
	const struct sl_relay_ops *ops = stream->relay->options.ops;
	struct sl_relay_end *end = &stream->end;

	end->bytes_sent = stream->up.bytes;
	end->bytes_received = stream->down.bytes;
	end->duration_us = (sl_relay_now_ns() - stream->since_ns) / 1000;
	if (!stream->asked)
		return;
	if (stream->answered)
		ops->ended(stream->relay->options.arg, stream, end);
	else
		ops->gone(stream->relay->options.arg, stream);
}

/* A refusal that was told in words is a failure, but no reset: the client is to read them. */
static bool is_reset(const struct sl_relay_stream *stream)
{
	return stream->failing && !stream->told;
}

void sl_stream_destroy(struct sl_relay_stream *stream)
{
	struct sl_relay *relay = stream->relay;

	LIST_REMOVE(stream, all);
	sl_dial_free(&stream->dial);
	sl_pump_kill(&stream->up, &relay->pump);
	sl_pump_kill(&stream->down, &relay->pump);
	close_side(stream->relay, &stream->client.side, is_reset(stream));
	close_side(stream->relay, &stream->server.side, is_reset(stream));
	sl_explicit_free(&stream->request);
	tell(stream);
	free(stream);
	relay->stream_count--;
	sl_relay_wake(relay);
}

static void phase_due(struct sl_timer *timer)
{
	struct sl_relay_stream *stream = SL_OWNER(timer, struct sl_relay_stream, phase);

	switch (stream->state) {
	case SL_STREAM_HEAD:
		stream->relay->counts[SL_RELAY_SLOW]++;
		sl_stream_fail(stream, SL_RELAY_CAUSE_SLOW, ETIMEDOUT);
		sl_explicit_slow(stream);
		break;
	case SL_STREAM_DIALLING:
		sl_dial_failed(stream, ETIMEDOUT);
		break;
	case SL_STREAM_OPEN:
		run(stream);
		break;
	default:
		sl_stream_end(stream);
	}
}

static void over_time(struct sl_relay_stream *stream, enum sl_relay_cause cause)
{
	stream->relay->counts[SL_RELAY_IDLE]++;
	sl_stream_fail(stream, cause, ETIMEDOUT);
	sl_stream_end(stream);
}

static void idle_due(struct sl_timer *timer)
{
	over_time(SL_OWNER(timer, struct sl_relay_stream, idle), SL_RELAY_CAUSE_IDLE);
}

static void life_due(struct sl_timer *timer)
{
	over_time(SL_OWNER(timer, struct sl_relay_stream, life), SL_RELAY_CAUSE_LIFE);
}

void sl_stream_init_timers(struct sl_relay *relay)
{
	const struct sl_relay_options *options = &relay->options;

	sl_timer_queue_init(&relay->heads, options->head_ms, phase_due);
	sl_timer_queue_init(&relay->connects, options->connect_ms, phase_due);
	sl_timer_queue_init(&relay->lingers, SL_RELAY_LINGER_MS, phase_due);
	sl_timer_queue_init(&relay->flushes, SL_RELAY_FLUSH_STEP_MS, phase_due);
	sl_timer_queue_init(&relay->idles, options->idle_ms, idle_due);
	sl_timer_queue_init(&relay->lives, options->life_ms, life_due);
}
