// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/loop_private.h"

#define THREADS 32
#define PER_LISTENER 8
#define RACE_INTERVAL_MS 60000

/* Long enough for the next of a series of calls, short for a thread of an idle listener. */
#define LINGER_MS 100

#define STACK (256UL << 10) /* paths on it are 24 KiB deep at most */

struct listener *sl_listener_find(struct sl_broker *b, uint64_t tag)
{
	struct listener *l = b->listeners;

	while (l && l->tag != tag)
		l = l->next;
	return l;
}

struct listener *sl_listener_next(struct sl_broker *b, struct listener *l, uint64_t tag)
{
	l = l ? l->next : b->listeners;
	while (l && sl_broker_group(l->tag) != sl_broker_group(tag))
		l = l->next;
	return l;
}

unsigned int sl_listener_running(struct sl_broker *b, uint64_t tag)
{
	struct listener *l = NULL;
	unsigned int running = 0;

	while ((l = sl_listener_next(b, l, tag)))
		running += l->running;
	return running;
}

void sl_listener_arm(struct sl_broker *b, struct listener *l)
{
	struct epoll_event event = { .events = EPOLLONESHOT, .data.ptr = l };
	struct pollfd end = { .fd = l->fd };

	if (l->gone || l->receiving || l->armed == ARM_CALLS)
		return;
	if (!l->draining) {
		if (l->running >= b->options.per_listener)
			return;
		event.events |= EPOLLIN;
	}
	/* The end may be in somebody's hand already, and it is for good. */
	if (l->armed == ARM_END && (l->draining || poll(&end, 1, 0) > 0))
		return;
	if (!epoll_ctl(b->epoll, EPOLL_CTL_MOD, l->fd, &event))
		l->armed = l->draining ? ARM_END : ARM_CALLS;
}

/* With the lock held: a thread on the next free slot, if there may be one more. */
static int start_thread(struct sl_broker *b, unsigned int at)
{
	pthread_attr_t attr;
	sigset_t all, old;
	struct worker *w;
	int ret;

	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->broker = b;
	w->slot = &b->inflight->slots[at];
	w->call.kind = SL_HELD_MAX;
	/* Signals are the caller's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	ret = pthread_create(&w->thread, &attr, sl_broker_thread, w);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		free(w);
		return -ret;
	}
	b->workers[at] = w;
	b->idle++;
	b->threads++;
	return 0;
}

void sl_broker_keep_one_idle(struct sl_broker *b)
{
	int ret = 0;

	pthread_mutex_lock(&b->lock);
	if (!b->idle && b->threads < b->options.threads) {
		unsigned int at = 0;

		while (b->workers[at])
			at++;
		ret = start_thread(b, at);
	}
	pthread_mutex_unlock(&b->lock);
	if (ret)
		sl_broker_fault(b, SL_BROKER_NO_THREAD, 0, 0, -ret);
}

int sl_broker_add(struct sl_broker *b, int listener, uint64_t tag, struct sl_err *err)
{
	struct epoll_event event = { .events = EPOLLONESHOT };
	struct listener *l, *mate;
	int ret = 0;

	if (!sl_notify_is_listener(listener))
		return sl_err_set(err, EBADF, "the descriptor is no seccomp listener");
	if (!b->options.quiet_wake)
		sl_notify_sync_wake(listener); /* Since 6.6; without it is slower, no more. */
	l = calloc(1, sizeof(*l));
	if (!l)
		return sl_err_sys(err, ENOMEM, "can't add a listener");
	l->fd = listener;
	l->tag = tag;
	event.data.ptr = l;
	pthread_mutex_lock(&b->lock);
	mate = sl_listener_next(b, NULL, tag);
	l->draining = mate && mate->draining;
	if (!l->draining)
		event.events |= EPOLLIN;
	if (sl_listener_find(b, tag)) {
		ret = EEXIST;
	} else if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, listener, &event)) {
		ret = errno;
	} else {
		l->armed = l->draining ? ARM_END : ARM_CALLS;
		l->next = b->listeners;
		b->listeners = l;
	}
	pthread_mutex_unlock(&b->lock);
	if (ret) {
		free(l);
		return sl_err_sys(err, ret, "can't add a listener");
	}
	sl_races_count(&b->races, SL_BROKER_LISTENER_ADDED);
	return 0;
}

/* The tick's own slot: only denials of an overload are ever left there. */
static void recover_spare(struct sl_broker *b)
{
	struct sl_answer deny = { .code = EACCES };
	struct listener *l;

	if (!sl_inflight_left(b->spare))
		return;
	l = sl_listener_find(b, b->spare->tag);
	if (l)
		sl_broker_outcome(b, SL_BROKER_OVERLOAD,
				  sl_notify_answer(l->fd, b->spare->notif.notif.id, &deny), l->tag,
				  b->spare->notif.notif.pid);
	else
		sl_broker_orphan(b, b->spare);
	sl_inflight_done(b->spare);
}

int sl_broker_start(struct sl_broker *b, struct sl_err *err)
{
	unsigned int at;
	int ret = 0;

	recover_spare(b);
	pthread_mutex_lock(&b->lock);
	/* A thread for each slot with something in it, the first one in any case. */
	for (at = 0; at < b->options.threads && !ret; at++) {
		if (!at || atomic_load(&b->inflight->slots[at].busy))
			ret = start_thread(b, at);
	}
	pthread_mutex_unlock(&b->lock);
	return ret ? sl_err_sys(err, -ret, "can't start the broker's threads") : 0;
}

static int set_up(struct sl_broker *b, struct sl_err *err)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ret;

	ret = sl_notify_check(err);
	if (!ret)
		ret = sl_task_check_access(err);
	if (ret)
		return ret;
	if (!b->inflight) {
		ret = sl_inflight_new(&b->own, b->options.threads + 1);
		if (ret)
			return sl_err_sys(err, -ret, "can't make the table of held calls");
		b->inflight = b->own;
	}
	b->spare = &b->inflight->slots[b->inflight->count - 1];
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	b->stop = eventfd(0, EFD_CLOEXEC);
	if (b->epoll < 0 || b->stop < 0 || epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->stop, &event))
		return sl_err_sys(err, errno, "can't set the broker's loop up");
	return 0;
}

int sl_broker_new(struct sl_broker **out, const struct sl_broker_options *options,
		  struct sl_err *err)
{
	_cleanup_(sl_broker_free) struct sl_broker *b = NULL;
	unsigned int threads = options->threads ?: THREADS;
	int ret;

	if (options->inflight && threads > options->inflight->count - 1)
		threads = options->inflight->count - 1;
	if (!threads)
		return sl_err_set(err, EINVAL, "the table of held calls needs two slots at least");
	b = calloc(1, sizeof(*b) + threads * sizeof(struct worker *));
	if (!b)
		return sl_err_sys(err, ENOMEM, "can't make the broker");
	b->options = *options;
	b->options.threads = threads;
	b->options.per_listener = options->per_listener ?: PER_LISTENER;
	b->options.race_interval_ms = options->race_interval_ms ?: RACE_INTERVAL_MS;
	b->options.linger_ms = options->linger_ms ?: LINGER_MS;
	b->inflight = options->inflight;
	b->epoll = b->stop = -1;
	b->told_ms = sl_monotonic_ms();
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->done, NULL);
	ret = set_up(b, err);
	if (ret)
		return ret;
	*out = TAKE_PTR(b);
	return 0;
}

void sl_broker_free(struct sl_broker **broker)
{
	struct sl_broker *b = *broker;

	if (!b)
		return;
	/* Level-triggered and never read: it ends all threads. */
	if (b->stop >= 0)
		eventfd_write(b->stop, 1);
	for (unsigned int at = 0; at < b->options.threads; at++) {
		if (b->workers[at])
			pthread_join(b->workers[at]->thread, NULL);
		free(b->workers[at]);
	}
	while (b->listeners) {
		struct listener *l = b->listeners;

		b->listeners = l->next;
		sl_listener_free(l);
	}
	sl_cleanup_fd(&b->epoll);
	sl_cleanup_fd(&b->stop);
	sl_inflight_free(&b->own);
	pthread_cond_destroy(&b->done);
	pthread_mutex_destroy(&b->lock);
	free(b);
	*broker = NULL;
}
