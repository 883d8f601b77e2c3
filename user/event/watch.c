/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "event/consume.h"
#include "event/watch.h"

struct watch {
	struct sl_consumer consumer;
	int epoll_fd;
	int signal_fd;
	int64_t end_ms;  /* CLOCK_MONOTONIC; INT64_MAX: never */
	int64_t look_ms; /* when it is looked next whether the set is still there */
};

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
		ret = add_fd(watch, sl_ring_fd(watch->consumer.ring), err);
	if (!ret)
		ret = add_fd(watch, sl_event_stream_fd(watch->consumer.stream), err);
	return ret;
}

static int consume(struct watch *watch, struct sl_err *err)
{
	int ret = sl_consume(&watch->consumer);

	return ret ? sl_err_sys(err, -ret, "reading the ring buffer") : 0;
}

static int sleep_ms(const struct watch *watch, int timeout)
{
	int64_t now = sl_monotonic_ms();

	timeout = sl_sooner_ms(timeout,
			       (int)(watch->consumer.sweep_ms > now ? watch->consumer.sweep_ms - now
								    : 0));
	if (watch->end_ms == INT64_MAX || watch->end_ms - now > INT_MAX)
		return timeout;
	return sl_sooner_ms(timeout, watch->end_ms > now ? (int)(watch->end_ms - now) : 0);
}

static bool is_over(const struct watch *watch)
{
	struct signalfd_siginfo info;

	return sl_monotonic_ms() >= watch->end_ms || sl_event_stream_done(watch->consumer.stream) ||
	       read(watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

/*
 * The last detach takes the pins away, and a set that is made anew at the same place is
 * another one: nothing more will come out of this ring.
 */
static int look_gone(struct watch *watch, struct sl_err *err)
{
	const struct sl_set *set = watch->consumer.set;
	int64_t now = sl_monotonic_ms();

	if (now < watch->look_ms)
		return 0;
	watch->look_ms = now + SL_SWEEP_MS;
	if (!sl_set_gone(set))
		return 0;
	sl_err_set(err, ENOENT, "the set at '%s' was removed: its last sandbox was detached",
		   sl_set_dir(set));
	return sl_err_hint(err, "watch again once a sandbox is attached");
}

static int watch_loop(struct watch *watch, struct sl_err *err)
{
	struct epoll_event events[4];
	int timeout, ret;

	while (!is_over(watch)) {
		/* Looked for first, so that what came before it is read. */
		int gone = look_gone(watch, err);

		ret = consume(watch, err);
		ret = ret ? ret : gone;
		if (ret)
			return ret;
		timeout = sl_sooner_ms(sl_event_stream_pump(watch->consumer.stream),
				       sl_ring_arm(watch->consumer.ring));
		timeout = sleep_ms(watch, timeout);
		ret = timeout ? sl_event_stream_flush(watch->consumer.stream) : 0;
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
	unsigned int old = 0;
	int ret, written;

	ret = open_fds(watch, signals, err);
	if (ret)
		return ret;
	ret = sl_event_mask_set(watch->consumer.set, sl_event_stream_wanted(watch->consumer.stream),
				&old, err);
	if (ret)
		return ret;
	/* After the mask, so that nothing falls between the maps and the events. */
	ret = sl_event_stream_seed(watch->consumer.stream);
	if (ret)
		sl_err_sys(err, -ret, "reading the processes of %s",
			   sl_set_dir(watch->consumer.set));
	else
		ret = watch_loop(watch, err);
	sl_event_mask_set(watch->consumer.set, old, &old, NULL);
	written = sl_event_stream_finish(watch->consumer.stream);
	if (!ret && written)
		ret = sl_err_sys(err, -written, "writing events");
	return ret;
}

int sl_event_watch(struct sl_set *set, struct sl_event_stream *stream, uint64_t time_us,
		   struct sl_err *err)
{
	struct watch watch = {
		.consumer = { .set = set, .stream = stream },
		.epoll_fd = -1,
		.signal_fd = -1,
		.end_ms = INT64_MAX,
	};
	struct sigaction ignore = { .sa_handler = SIG_IGN }, pipe_action;
	sigset_t signals, old_signals;
	int ret;

	if (time_us && time_us / 1000 < INT64_MAX / 2)
		watch.end_ms = sl_monotonic_ms() + (int64_t)((time_us + 999) / 1000);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &old_signals);
	/* A reader that went away is an error of writing, after which the mask is restored. */
	sigaction(SIGPIPE, &ignore, &pipe_action);
	ret = sl_ring_new(&watch.consumer.ring, set, sl_event_stream_feed, stream, err);
	if (!ret)
		ret = watch_ring(&watch, &signals, err);
	sl_ring_free(&watch.consumer.ring);
	sl_cleanup_fd(&watch.epoll_fd);
	sl_cleanup_fd(&watch.signal_fd);
	sigaction(SIGPIPE, &pipe_action, NULL);
	sigprocmask(SIG_SETMASK, &old_signals, NULL);
	return ret;
}
