// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls that are answered for a decision that does not come: overdue, or to be frozen. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "broker/loop_private.h"

/*
 * With the lock held, so that a fault is counted only. Answers in place of the thread that
 * has the call in hand.
 */
static bool answer_for(struct sl_broker *b, struct worker *w, enum sl_broker_kind kind, int code)
{
	struct sl_answer deny = { .code = code };

	if (!w->id || w->answered)
		return false;
	w->answered = true;
	kind = sl_broker_kind_of(kind, sl_notify_answer(w->listener->fd, w->id, &deny));
	sl_races_count(&b->races, kind);
	return true;
}

static bool is_overdue(const struct sl_broker *b, const struct worker *w, int64_t now_ms)
{
	return w && w->listener && w->id && now_ms - w->since_ms >= b->options.deadline_ms;
}

/* With the lock held. All calls in hand of this listener hang. */
static bool is_stuck(struct sl_broker *b, const struct listener *l, int64_t now_ms)
{
	unsigned int overdue = 0;

	for (unsigned int at = 0; at < b->options.threads; at++) {
		struct worker *w = b->workers[at];

		overdue += is_overdue(b, w, now_ms) && w->listener == l;
	}
	return overdue >= b->options.per_listener;
}

/* With the lock held. Nobody else receives from this listener: it is not armed. */
static void deny_pending(struct sl_broker *b, struct listener *l)
{
	struct sl_answer deny = { .code = EACCES };
	struct pollfd fd = { .fd = l->fd, .events = POLLIN };

	while (poll(&fd, 1, 0) > 0 && fd.revents & POLLIN) {
		int ret = sl_inflight_receive(b->spare, l->fd, l->tag);

		if (ret == -ENOENT) {
			sl_races_count(&b->races, SL_BROKER_GONE_RECEIVE);
			continue;
		}
		if (ret)
			return;
		sl_races_count(&b->races, SL_BROKER_RECEIVED);
		ret = sl_notify_answer(l->fd, b->spare->notif.notif.id, &deny);
		sl_races_count(&b->races, sl_broker_kind_of(SL_BROKER_OVERLOAD, ret));
		sl_inflight_done(b->spare);
	}
}

static void deny_overdue(struct sl_broker *b, int64_t now_ms)
{
	pthread_mutex_lock(&b->lock);
	for (unsigned int at = 0; at < b->options.threads; at++) {
		if (is_overdue(b, b->workers[at], now_ms))
			answer_for(b, b->workers[at], SL_BROKER_OVERDUE, EACCES);
	}
	for (struct listener *l = b->listeners; l; l = l->next) {
		if (l->armed == ARM_NONE && !l->receiving && !l->draining && is_stuck(b, l, now_ms))
			deny_pending(b, l);
	}
	pthread_mutex_unlock(&b->lock);
}

void sl_broker_tick(struct sl_broker *b)
{
	int64_t now_ms = sl_monotonic_ms();

	if (b->options.deadline_ms)
		deny_overdue(b, now_ms);
	if (!b->options.ops.races || now_ms - b->told_ms < b->options.race_interval_ms)
		return;
	b->told_ms = now_ms;
	sl_races_tell(&b->races, b->options.ops.races, b->options.ctx);
}

/* With the lock held; false when the time is over. */
static bool wait_done(struct sl_broker *b, int64_t end_ms)
{
	int64_t left_ms = end_ms - sl_monotonic_ms();
	struct timespec until;

	if (left_ms <= 0)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += left_ms / 1000;
	until.tv_nsec += left_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	return pthread_cond_clockwait(&b->done, &b->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

/* With the lock held; false: the group has no listener. */
static bool set_draining(struct sl_broker *b, uint64_t tag)
{
	struct listener *l = NULL;
	bool found = false;

	while ((l = sl_listener_next(b, l, tag)))
		found = l->draining = true;
	return found;
}

int sl_broker_drain(struct sl_broker *b, uint64_t tag, unsigned int timeout_ms, int code)
{
	int64_t end_ms = sl_monotonic_ms() + timeout_ms;
	int denied = 0;
	bool found;

	pthread_mutex_lock(&b->lock);
	found = set_draining(b, tag);
	while (sl_listener_running(b, tag) && wait_done(b, end_ms))
		;
	for (unsigned int at = 0; found && at < b->options.threads; at++) {
		struct worker *w = b->workers[at];

		if (w && w->listener && sl_broker_group(w->listener->tag) == sl_broker_group(tag))
			denied += answer_for(b, w, SL_BROKER_DRAINED, code);
	}
	pthread_mutex_unlock(&b->lock);
	return found ? denied : -ENOENT;
}

int sl_broker_drain_begin(struct sl_broker *b, uint64_t tag)
{
	int running = -ENOENT;

	pthread_mutex_lock(&b->lock);
	if (set_draining(b, tag))
		running = (int)sl_listener_running(b, tag);
	pthread_mutex_unlock(&b->lock);
	return running;
}

int sl_broker_resume(struct sl_broker *b, uint64_t tag)
{
	struct listener *l = NULL;
	int ret = -ENOENT;

	pthread_mutex_lock(&b->lock);
	while ((l = sl_listener_next(b, l, tag))) {
		l->draining = false;
		sl_listener_arm(b, l);
		ret = 0;
	}
	pthread_mutex_unlock(&b->lock);
	return ret;
}

uint64_t sl_broker_count(const struct sl_broker *b, enum sl_broker_kind kind)
{
	return atomic_load(&b->races.total[kind]);
}

unsigned int sl_broker_running(struct sl_broker *b)
{
	unsigned int running = 0;

	pthread_mutex_lock(&b->lock);
	for (struct listener *l = b->listeners; l; l = l->next)
		running += l->running;
	pthread_mutex_unlock(&b->lock);
	return running;
}
