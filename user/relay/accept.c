// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Listeners. They are watched by level and exclusively, so that of several instances on one
 * descriptor one is woken for each connection. When there is no room, all rest: connections
 * wait in the kernel until a stream ends or a short time is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay/relay_private.h"

#define ACCEPT_TURN 64 /* of one listener, before others have their turn */

static int watch(struct sl_relay_entry *entry, bool on)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE,
				     .data.ptr = &entry->watch };

	if (entry->watched == on)
		return 0;
	if (epoll_ctl(entry->relay->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, entry->listener.fd,
		      &event))
		return -errno;
	entry->watched = on;
	return 0;
}

void sl_relay_rest(struct sl_relay *relay, enum sl_relay_count why)
{
	struct sl_relay_entry *entry;

	relay->counts[why]++;
	relay->resting = true;
	sl_timer_set(&relay->rest, &relay->rests, sl_relay_now_ms(relay));
	LIST_FOREACH(entry, &relay->listeners, all)
	{
		if (entry->listener.kind != SL_RELAY_UDP)
			watch(entry, false);
	}
}

void sl_relay_wake(struct sl_relay *relay)
{
	struct sl_relay_entry *entry;

	if (!relay->resting || relay->stream_count >= relay->options.streams)
		return;
	relay->resting = false;
	sl_timer_off(&relay->rest);
	LIST_FOREACH(entry, &relay->listeners, all)
	{
		/* The memory for watching may be missing as well: then again later. */
		if (!entry->removed && watch(entry, true)) {
			relay->resting = true;
			sl_timer_set(&relay->rest, &relay->rests, sl_relay_now_ms(relay));
		}
	}
}

void sl_relay_rest_due(struct sl_timer *timer)
{
	struct sl_relay *relay = SL_OWNER(timer, struct sl_relay, rest);

	sl_relay_wake(relay);
	if (relay->resting)
		sl_timer_set(&relay->rest, &relay->rests, sl_relay_now_ms(relay));
}

static int accept_one(struct sl_relay_entry *entry)
{
	struct sl_relay *relay = entry->relay;
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	_cleanup_fd_ int fd = accept4(entry->listener.fd, (struct sockaddr *)&peer, &len,
				      SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	relay->counts[SL_RELAY_ACCEPTED]++;
	return sl_stream_new(relay, entry, &fd, &peer);
}

static void accept_ready(struct sl_watch *w, uint32_t events)
{
	struct sl_relay_entry *entry = SL_OWNER(w, struct sl_relay_entry, watch);
	struct sl_relay *relay = entry->relay;

	(void)events;
	for (unsigned int i = 0; i < ACCEPT_TURN && !relay->resting && !entry->removed; i++) {
		int ret;

		if (relay->stream_count >= relay->options.streams) {
			sl_relay_rest(relay, SL_RELAY_FULL);
			return;
		}
		ret = accept_one(entry);
		if (ret == -EAGAIN)
			return;
		if (sl_relay_is_shortage(-ret))
			sl_relay_rest(relay, SL_RELAY_NO_FDS);
	}
}

static void datagrams_ready(struct sl_watch *w, uint32_t events)
{
	struct sl_relay_entry *entry = SL_OWNER(w, struct sl_relay_entry, watch);

	(void)events;
	if (!entry->removed)
		sl_flow_receive(entry);
}

static int prepare(struct sl_relay *relay, const struct sl_relay_listener *listener,
		   struct sl_err *err)
{
	int flags = fcntl(listener->fd, F_GETFL);

	if (flags < 0 || fcntl(listener->fd, F_SETFL, flags | O_NONBLOCK))
		return sl_err_sys(err, errno, "can't use a descriptor as the relay's listener");
	if (listener->kind != SL_RELAY_UDP) {
		/* Accepted sockets inherit that, which saves their calls. */
		sl_stream_set_socket(listener->fd);
		return 0;
	}
	if (!relay->options.ops->flow_admit)
		return sl_err_set(err, EINVAL, "datagrams need operations for their flows");
	return sl_flow_listen(relay, listener, err);
}

int sl_relay_listen(struct sl_relay *relay, const struct sl_relay_listener *listener,
		    struct sl_err *err)
{
	_cleanup_free_ struct sl_relay_entry *entry = calloc(1, sizeof(*entry));
	bool rests = relay->resting && listener->kind != SL_RELAY_UDP;
	int ret;

	if (!entry)
		return sl_err_sys(err, ENOMEM, "can't listen for the relay");
	ret = prepare(relay, listener, err);
	if (ret)
		return ret;
	entry->relay = relay;
	entry->listener = *listener;
	entry->watch.ready = listener->kind == SL_RELAY_UDP ? datagrams_ready : accept_ready;
	ret = rests ? 0 : watch(entry, true);
	if (ret)
		return sl_err_sys(err, -ret, "can't watch the relay's listener");
	LIST_INSERT_HEAD(&relay->listeners, entry, all);
	TAKE_PTR(entry);
	return 0;
}

int sl_relay_unlisten(struct sl_relay *relay, int fd)
{
	struct sl_relay_entry *entry;

	LIST_FOREACH(entry, &relay->listeners, all)
	{
		if (entry->listener.fd != fd || entry->removed)
			continue;
		watch(entry, false);
		entry->removed = relay->has_removed = true;
		if (!relay->running)
			sl_relay_drop_removed(relay);
		return 0;
	}
	return -ENOENT;
}

void sl_relay_drop_removed(struct sl_relay *relay)
{
	struct sl_relay_entry *entry, *next;

	if (!relay->has_removed)
		return;
	relay->has_removed = false;
	for (entry = LIST_FIRST(&relay->listeners); entry; entry = next) {
		next = LIST_NEXT(entry, all);
		if (!entry->removed)
			continue;
		LIST_REMOVE(entry, all);
		free(entry);
	}
}
