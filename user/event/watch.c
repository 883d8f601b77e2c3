/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "event/watch.h"
#include "kernel/ring.h"

/* How often it is looked whether AF_PACKET sockets have gone: their close runs no hook. */
#define SWEEP_MS 1000

struct watch {
	struct sl_set *set;
	struct sl_event_stream *stream;
	struct sl_ring *ring;
	int epoll_fd;
	int signal_fd;
	int64_t end_ms; /* CLOCK_MONOTONIC; INT64_MAX: never */
	int64_t sweep_ms;
};

static int64_t now_ms(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int sl_event_mask_set(struct sl_set *set, unsigned int mask, unsigned int *old, struct sl_err *err)
{
	int fd = sl_set_map_fd(set, SL_MAP_CONFIG);
	struct sl_config config;
	__u32 zero = 0;
	int ret;

	if (bpf_map_lookup_elem(fd, &zero, &config))
		return sl_err_sys(err, errno, "reading the settings of %s", sl_set_dir(set));
	ret = config.events == mask ? 0 : sl_set_want_events(set, mask);
	if (ret)
		return sl_err_sys(err, -ret, "changing the wanted events of %s", sl_set_dir(set));
	*old = config.events;
	return 0;
}

static int add_fd(struct watch *watch, int fd, struct sl_err *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd >= 0 && epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return sl_err_sys(err, errno, "epoll");
	return 0;
}

/* The signals are blocked by now. */
static int open_fds(struct watch *watch, const sigset_t *signals, struct sl_err *err)
{
	int ret;

	watch->signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (watch->signal_fd < 0)
		return sl_err_sys(err, errno, "signalfd");
	watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (watch->epoll_fd < 0)
		return sl_err_sys(err, errno, "epoll");
	ret = add_fd(watch, watch->signal_fd, err);
	if (!ret)
		ret = add_fd(watch, sl_ring_fd(watch->ring), err);
	if (!ret)
		ret = add_fd(watch, sl_event_stream_fd(watch->stream), err);
	return ret;
}

static int packet_closed(const struct sl_sock *sock, void *arg)
{
	sl_event_stream_closed(arg, sock);
	return 0;
}

/* The sweep walks all descriptors of the host: only when there is something to find. */
static void sweep_packets(struct watch *watch)
{
	int fd = sl_set_map_fd(watch->set, SL_MAP_PACKETS);
	__u64 cookie;

	if (!bpf_map_get_next_key(fd, NULL, &cookie))
		(void)sl_packets_sweep(watch->set, packet_closed, watch->stream);
	watch->sweep_ms = now_ms() + SWEEP_MS;
}

/* Consumes all that is there. */
static int consume(struct watch *watch, struct sl_err *err)
{
	unsigned long long by_kind[SL_EVENT_KIND_MAX];
	unsigned long long lost;
	int ret = sl_ring_drain(watch->ring);

	if (ret < 0)
		return sl_err_sys(err, -ret, "reading the ring buffer");
	lost = sl_ring_lost(watch->ring, by_kind);
	if (lost)
		sl_event_stream_lost(watch->stream, lost, by_kind);
	if (now_ms() >= watch->sweep_ms)
		sweep_packets(watch);
	return 0;
}

/* A timeout of -1 is the longest. */
static int sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int sleep_ms(const struct watch *watch, int timeout)
{
	int64_t now = now_ms();

	timeout = sooner(timeout, (int)(watch->sweep_ms > now ? watch->sweep_ms - now : 0));
	if (watch->end_ms == INT64_MAX || watch->end_ms - now > INT_MAX)
		return timeout;
	return sooner(timeout, watch->end_ms > now ? (int)(watch->end_ms - now) : 0);
}

static bool is_over(const struct watch *watch)
{
	struct signalfd_siginfo info;

	return now_ms() >= watch->end_ms || sl_event_stream_done(watch->stream) ||
	       read(watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static int watch_loop(struct watch *watch, struct sl_err *err)
{
	struct epoll_event events[4];
	int timeout, ret;

	while (!is_over(watch)) {
		ret = consume(watch, err);
		if (ret)
			return ret;
		timeout = sooner(sl_event_stream_pump(watch->stream), sl_ring_arm(watch->ring));
		timeout = sleep_ms(watch, timeout);
		ret = timeout ? sl_event_stream_flush(watch->stream) : 0;
		if (ret)
			return sl_err_sys(err, -ret, "writing events");
		if (epoll_wait(watch->epoll_fd, events, ARRAY_SIZE(events), timeout) < 0 &&
		    errno != EINTR)
			return sl_err_sys(err, errno, "epoll");
	}
	/* What happened before the end is part of it. */
	return consume(watch, err);
}

static int watch_ring(struct watch *watch, const sigset_t *signals, struct sl_err *err)
{
	unsigned int old;
	int ret, written;

	ret = open_fds(watch, signals, err);
	if (ret)
		return ret;
	ret = sl_event_mask_set(watch->set, sl_event_stream_wanted(watch->stream), &old, err);
	if (ret)
		return ret;
	/* After the mask, so that nothing falls between the maps and the events. */
	ret = sl_event_stream_seed(watch->stream);
	if (ret)
		sl_err_sys(err, -ret, "reading the processes of %s", sl_set_dir(watch->set));
	else
		ret = watch_loop(watch, err);
	sl_event_mask_set(watch->set, old, &old, NULL);
	written = sl_event_stream_finish(watch->stream);
	if (!ret && written)
		ret = sl_err_sys(err, -written, "writing events");
	return ret;
}

int sl_event_watch(struct sl_set *set, struct sl_event_stream *stream, uint64_t time_us,
		   struct sl_err *err)
{
	struct watch watch = {
		.set = set,
		.stream = stream,
		.epoll_fd = -1,
		.signal_fd = -1,
		.end_ms = INT64_MAX,
		.sweep_ms = now_ms() + SWEEP_MS,
	};
	struct sigaction ignore = { .sa_handler = SIG_IGN }, pipe_action;
	sigset_t signals, old_signals;
	int ret;

	if (time_us && time_us / 1000 < INT64_MAX / 2)
		watch.end_ms = now_ms() + (int64_t)((time_us + 999) / 1000);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &old_signals);
	/* A reader that went away is an error of writing, after which the mask is restored. */
	sigaction(SIGPIPE, &ignore, &pipe_action);
	ret = sl_ring_new(&watch.ring, set, sl_event_stream_feed, stream, err);
	if (!ret)
		ret = watch_ring(&watch, &signals, err);
	sl_ring_free(&watch.ring);
	sl_cleanup_fd(&watch.epoll_fd);
	sl_cleanup_fd(&watch.signal_fd);
	sigaction(SIGPIPE, &pipe_action, NULL);
	sigprocmask(SIG_SETMASK, &old_signals, NULL);
	return ret;
}
