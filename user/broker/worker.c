/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread of the broker: from the event of a listener to the call that was handled. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/loop_private.h"
#include "broker/task.h"

/* Takes it out of the list; whoever puts its last call out of hand frees it. */
static void unlink_listener(struct sl_broker *b, struct listener *l)
{
	struct listener **at = &b->listeners;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	l->gone = true;
	epoll_ctl(b->epoll, EPOLL_CTL_DEL, l->fd, NULL);
}

void sl_listener_free(struct listener *l)
{
	close(l->fd);
	free(l);
}

/*
 * Takes a call in hand: from here on sl_broker_drain() waits for it. `l` is the listener of
 * an event, or NULL for a call that was received already, by `tag`. False: not now, or it
 * has gone.
 */
static bool take_up(struct worker *w, struct listener *l, uint64_t tag, bool end)
{
	struct sl_broker *b = w->broker;
	bool may;

	pthread_mutex_lock(&b->lock);
	if (l) {
		l->armed = ARM_NONE;
		may = end || !l->draining;
		l->receiving = may;
		sl_listener_arm(b, l);
	} else {
		l = sl_listener_find(b, tag);
		may = l;
	}
	if (may) {
		l->running++;
		b->idle--;
		w->listener = l;
		w->id = 0;
		w->answered = false;
		w->since_ms = sl_monotonic_ms();
	}
	pthread_mutex_unlock(&b->lock);
	return may;
}

static void put_down(struct worker *w, bool lost)
{
	struct sl_broker *b = w->broker;
	struct listener *l = w->listener, *end = NULL;
	uint64_t tag = l->tag;
	bool drained;

	pthread_mutex_lock(&b->lock);
	l->running--;
	b->idle++;
	w->listener = NULL;
	if (lost)
		unlink_listener(b, l);
	else
		sl_listener_arm(b, l);
	/* One that has ended is in the list no more, and has none. */
	drained = l->draining && !l->running && !sl_listener_running(b, tag);
	if (l->gone && !l->running)
		end = l;
	pthread_cond_broadcast(&b->done);
	pthread_mutex_unlock(&b->lock);
	if (drained && b->options.ops.drained)
		b->options.ops.drained(b->options.ctx, sl_broker_group(tag));
	if (end)
		sl_listener_free(end);
	if (!lost)
		return;
	sl_races_count(&b->races, SL_BROKER_LISTENER_ENDED);
	if (b->options.ops.ended)
		b->options.ops.ended(b->options.ctx, tag);
}

/* The end of RECV: other threads may take up more calls of this listener meanwhile. */
static void received(struct worker *w, uint64_t id, bool from_event)
{
	struct sl_broker *b = w->broker;

	pthread_mutex_lock(&b->lock);
	w->id = id;
	if (from_event)
		w->listener->receiving = false;
	sl_listener_arm(b, w->listener);
	pthread_mutex_unlock(&b->lock);
	if (!id)
		return;
	sl_races_count(&b->races, SL_BROKER_RECEIVED);
	sl_broker_keep_one_idle(b);
}

/* False: this thread is not to wait for this listener alone, with the call out of hand. */
static bool set_aside(struct worker *w)
{
	struct sl_broker *b = w->broker;
	struct listener *l = w->listener;
	bool stay;

	pthread_mutex_lock(&b->lock);
	stay = !l->draining && b->idle;
	if (stay) {
		l->running--;
		w->listener = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	return stay;
}

static void take_again(struct worker *w, struct listener *l)
{
	struct sl_broker *b = w->broker;

	pthread_mutex_lock(&b->lock);
	l->running++;
	w->listener = l;
	w->id = 0;
	w->answered = false;
	w->since_ms = sl_monotonic_ms();
	pthread_mutex_unlock(&b->lock);
}

/*
 * With a call behind it that went on at once, the thread stays with its listener for a
 * while: who makes one call soon makes another. poll(2) passes on which CPU the kernel wants
 * it woken (SYNC_WAKE_UP), epoll does not, and nothing has to be armed. `receiving` stays
 * set, so nobody else does. Returns poll's events; 0: there is nothing, or no time to stay.
 */
static short linger(struct worker *w, struct listener *l)
{
	struct pollfd fds[] = { { .fd = l->fd, .events = POLLIN },
				{ .fd = w->broker->stop, .events = POLLIN } };
	bool drains;

	if (!set_aside(w))
		return 0;
	if (poll(fds, 2, (int)w->broker->options.linger_ms) <= 0 || fds[1].revents)
		fds[0].revents = 0;
	take_again(w, l);
	pthread_mutex_lock(&w->broker->lock);
	drains = l->draining;
	pthread_mutex_unlock(&w->broker->lock);
	return drains && fds[0].revents & POLLIN ? 0 : fds[0].revents;
}

/* One RECV, and what comes of it. True: the listener is still this thread's. */
static bool serve_call(struct worker *w, struct listener *l, bool *lost)
{
	struct sl_broker *b = w->broker;
	int ret = sl_inflight_receive(w->slot, l->fd, l->tag);

	*lost = false;
	if (ret == -ENOENT || ret == -EINTR) {
		if (ret == -ENOENT)
			sl_races_count(&b->races, SL_BROKER_GONE_RECEIVE);
		received(w, 0, true);
		return false;
	}
	if (ret) {
		/* Still not armed: as its end, nobody else has it. */
		sl_broker_fault(b, SL_BROKER_RECEIVE, l->tag, 0, -ret);
		*lost = true;
		return false;
	}
	if (sl_worker_at_once(w))
		return true;
	received(w, w->slot->notif.notif.id, true);
	sl_worker_handle(w);
	return false;
}

static void serve(struct worker *w, struct listener *l, bool end)
{
	bool lost = end;

	if (!take_up(w, l, l->tag, end))
		return;
	while (!lost && serve_call(w, l, &lost)) {
		short events;

		sl_broker_keep_one_idle(w->broker);
		events = linger(w, l);
		if (!events)
			received(w, 0, true);
		if (!(events & POLLIN)) {
			lost = events;
			break;
		}
	}
	put_down(w, lost);
}

/*
 * A listener ends with the last task of its filter: then nobody waits for the answer, which
 * may have been given before the worker was killed. With the task alive it is a fault.
 */
void sl_broker_orphan(struct sl_broker *b, const struct sl_inflight_slot *slot)
{
	char byte;

	if (sl_task_read((pid_t)slot->notif.notif.pid, 0, &byte, 1) == -ESRCH)
		sl_races_count(&b->races, SL_BROKER_GONE_ANSWER);
	else
		sl_broker_fault(b, SL_BROKER_ORPHAN, slot->tag, 0, 0);
}

/* What the last worker process left in this slot. */
static void recover(struct worker *w)
{
	struct sl_broker *b = w->broker;

	if (!sl_inflight_left(w->slot))
		return;
	if (take_up(w, NULL, w->slot->tag, false)) {
		sl_races_count(&b->races, SL_BROKER_RECOVERED);
		received(w, w->slot->notif.notif.id, false);
		sl_worker_handle(w);
		put_down(w, false);
	} else {
		sl_broker_orphan(b, w->slot);
		sl_inflight_done(w->slot);
	}
}

void *sl_broker_thread(void *arg)
{
	struct worker *w = arg;
	struct epoll_event event;

	recover(w);
	for (;;) {
		if (epoll_wait(w->broker->epoll, &event, 1, -1) != 1)
			continue;
		if (!event.data.ptr)
			return NULL;
		serve(w, event.data.ptr, !(event.events & EPOLLIN));
	}
}
