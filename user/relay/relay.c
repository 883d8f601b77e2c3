// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "relay/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "relay/relay_private.h"

#define EVENTS 256

#define STREAMS_DEFAULT 4096
#define FLOWS_DEFAULT 1024
#define HEAD_MS_DEFAULT 10000
#define CONNECT_MS_DEFAULT 30000
#define STAGGER_MS_DEFAULT 250
#define FLOW_IDLE_MS_DEFAULT 60000
#define PIPE_BYTES_DEFAULT (256 << 10)

const char *const sl_relay_way_names[SL_RELAY_WAY_MAX] = {
	[SL_RELAY_WAY_TRANSPARENT] = "transparent",
	[SL_RELAY_WAY_CONNECT] = "connect",
	[SL_RELAY_WAY_HTTP] = "http",
	[SL_RELAY_WAY_SOCKS5] = "socks5",
	[SL_RELAY_WAY_UDP] = "udp",
};

const char *const sl_relay_cause_names[SL_RELAY_CAUSE_MAX] = {
	[SL_RELAY_CAUSE_DONE] = "done",           [SL_RELAY_CAUSE_CLIENT] = "client",
	[SL_RELAY_CAUSE_SERVER] = "server",       [SL_RELAY_CAUSE_DIAL] = "dial",
	[SL_RELAY_CAUSE_REFUSED] = "refused",     [SL_RELAY_CAUSE_IDLE] = "idle",
	[SL_RELAY_CAUSE_LIFE] = "life",           [SL_RELAY_CAUSE_RESET] = "reset",
	[SL_RELAY_CAUSE_MALFORMED] = "malformed", [SL_RELAY_CAUSE_SLOW] = "slow",
	[SL_RELAY_CAUSE_MEMORY] = "memory",       [SL_RELAY_CAUSE_FREED] = "freed",
};

const char *const sl_relay_count_names[SL_RELAY_COUNT_MAX] = {
	[SL_RELAY_ACCEPTED] = "accepted",
	[SL_RELAY_CONNECTED] = "connected",
	[SL_RELAY_DIAL_FAILED] = "dial_failed",
	[SL_RELAY_REFUSED] = "refused",
	[SL_RELAY_MALFORMED] = "malformed",
	[SL_RELAY_OVERSIZED] = "oversized",
	[SL_RELAY_SLOW] = "slow",
	[SL_RELAY_IDLE] = "idle",
	[SL_RELAY_NO_FDS] = "no_fds",
	[SL_RELAY_FULL] = "full",
	[SL_RELAY_NO_PIPE] = "no_pipe",
	[SL_RELAY_FLOWS] = "flows",
	[SL_RELAY_FLOWS_FULL] = "flows_full",
	[SL_RELAY_FLOW_DROPPED] = "flow_dropped",
};

uint64_t sl_relay_now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

int64_t sl_relay_now_ms(const struct sl_relay *relay)
{
	return relay->running ? relay->now_ms : sl_monotonic_ms();
}

bool sl_relay_is_shortage(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOMEM || code == ENOBUFS ||
	       code == ENOSPC;
}

int sl_relay_watch(struct sl_relay *relay, int fd, uint32_t events, struct sl_watch *watch)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	return epoll_ctl(relay->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void sl_relay_kick(struct sl_relay *relay)
{
	const uint64_t one = 1;

	/* The only way for it to fail is that it is readable already. */
	if (!relay->running)
		(void)!write(relay->kick, &one, sizeof(one));
}

static void kicked(struct sl_watch *watch, uint32_t events)
{
	struct sl_relay *relay = SL_OWNER(watch, struct sl_relay, kick_watch);
	uint64_t count;

	(void)events;
	(void)!read(relay->kick, &count, sizeof(count));
}

static void set_defaults(struct sl_relay_options *options)
{
	options->streams = options->streams ?: STREAMS_DEFAULT;
	options->flows = options->flows ?: FLOWS_DEFAULT;
	options->head_ms = options->head_ms ?: HEAD_MS_DEFAULT;
	options->connect_ms = options->connect_ms ?: CONNECT_MS_DEFAULT;
	options->stagger_ms = options->stagger_ms ?: STAGGER_MS_DEFAULT;
	options->flow_idle_ms = options->flow_idle_ms ?: FLOW_IDLE_MS_DEFAULT;
	options->pipe_bytes = options->pipe_bytes ?: PIPE_BYTES_DEFAULT;
}

static int check_sigpipe(struct sl_err *err)
{
	struct sigaction action;

	if (sigaction(SIGPIPE, NULL, &action) || action.sa_handler == SIG_DFL) {
		sl_err_set(err, EINVAL, "SIGPIPE would end this process");
		return sl_err_hint(err, "ignore it: splice() has no MSG_NOSIGNAL");
	}
	return 0;
}

int sl_relay_new(struct sl_relay **out, const struct sl_relay_options *options, struct sl_err *err)
{
	struct sl_relay *relay;
	int ret = check_sigpipe(err);

	if (ret)
		return ret;
	relay = calloc(1, sizeof(*relay));
	if (!relay)
		return sl_err_sys(err, ENOMEM, "can't make a relay");
	relay->options = *options;
	set_defaults(&relay->options);
	LIST_INIT(&relay->listeners);
	LIST_INIT(&relay->streams);
	TAILQ_INIT(&relay->ready);
	STAILQ_INIT(&relay->ended);
	sl_stream_init_timers(relay);
	sl_timer_queue_init(&relay->staggers, relay->options.stagger_ms, sl_dial_stagger_due);
	sl_timer_queue_init(&relay->rests, SL_RELAY_REST_MS, sl_relay_rest_due);
	sl_pipes_init(&relay->pump.pipes, relay->options.pipe_bytes);
	relay->own_netns = -1;
	relay->kick_watch.ready = kicked;
	relay->epoll = epoll_create1(EPOLL_CLOEXEC);
	relay->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	relay->pump.copy = malloc(SL_PUMP_COPY);
	ret = relay->pump.copy ? sl_flow_init(relay) : -ENOMEM;
	if (!ret && (relay->epoll < 0 || relay->kick < 0))
		ret = -errno;
	if (!ret)
		ret = sl_relay_watch(relay, relay->kick, EPOLLIN, &relay->kick_watch);
	if (ret) {
		sl_relay_free(&relay);
		return sl_err_sys(err, -ret, "can't make a relay");
	}
	*out = relay;
	return 0;
}

static void reap(struct sl_relay *relay)
{
	struct sl_relay_stream *stream;

	while ((stream = STAILQ_FIRST(&relay->ended))) {
		STAILQ_REMOVE_HEAD(&relay->ended, done);
		sl_stream_destroy(stream);
	}
	sl_flow_reap(relay);
	sl_relay_drop_removed(relay);
}

void sl_relay_free(struct sl_relay **relay)
{
	struct sl_relay_stream *stream;
	struct sl_relay_entry *entry;
	struct sl_relay *r;

	if (!relay || !*relay)
		return;
	r = *relay;
	*relay = NULL;
	r->running = true;
	LIST_FOREACH(stream, &r->streams, all)
	{
		sl_stream_fail(stream, SL_RELAY_CAUSE_FREED, 0);
		sl_stream_end(stream);
	}
	LIST_FOREACH(entry, &r->listeners, all)
	entry->removed = r->has_removed = true;
	sl_flow_end_all(r);
	reap(r);
	sl_flow_clear(r);
	sl_timer_off(&r->rest);
	sl_pipes_clear(&r->pump.pipes);
	free(r->pump.copy);
	sl_cleanup_fd(&r->kick);
	sl_cleanup_fd(&r->epoll);
	sl_cleanup_fd(&r->own_netns);
	free(r);
}

int sl_relay_fd(const struct sl_relay *relay)
{
	return relay->epoll;
}

static struct sl_timer_queue *queue_at(struct sl_relay *relay, size_t index)
{
	struct sl_timer_queue *const queues[] = {
		&relay->heads,   &relay->connects, &relay->staggers,
		&relay->idles,   &relay->lives,    &relay->lingers,
		&relay->flushes, &relay->rests,    &relay->flow_idles,
	};

	return index < ARRAY_SIZE(queues) ? queues[index] : NULL;
}

static int next_ms(struct sl_relay *relay, int64_t now)
{
	struct sl_timer_queue *queue;
	int next = -1;

	if (!TAILQ_EMPTY(&relay->ready) || !STAILQ_EMPTY(&relay->ended))
		return 0;
	for (size_t i = 0; (queue = queue_at(relay, i)); i++)
		next = sl_sooner_ms(next, sl_timer_queue_next(queue, now));
	return next;
}

int sl_relay_run(struct sl_relay *relay, int wait_ms)
{
	struct epoll_event events[EVENTS];
	struct sl_timer_queue *queue;
	int n;

	if (wait_ms)
		wait_ms = sl_sooner_ms(wait_ms, next_ms(relay, sl_monotonic_ms()));
	n = epoll_wait(relay->epoll, events, EVENTS, wait_ms);
	relay->now_ms = sl_monotonic_ms();
	relay->running = true;
	for (int i = 0; i < n; i++) {
		struct sl_watch *watch = events[i].data.ptr;

		watch->ready(watch, events[i].events);
	}
	sl_stream_run_ready(relay);
	for (size_t i = 0; (queue = queue_at(relay, i)); i++)
		sl_timer_queue_run(queue, relay->now_ms);
	reap(relay);
	relay->running = false;
	return next_ms(relay, relay->now_ms);
}

void sl_relay_stats(const struct sl_relay *relay, struct sl_relay_stats *stats)
{
	*stats = (struct sl_relay_stats){
		.streams = relay->stream_count,
		.flows = relay->flow_count,
		.pipes = relay->pump.pipes.count,
		.ready = !relay->resting,
	};
	for (size_t i = 0; i < SL_RELAY_COUNT_MAX; i++)
		stats->counts[i] = relay->counts[i];
	stats->counts[SL_RELAY_NO_PIPE] = relay->pump.no_pipe;
}
