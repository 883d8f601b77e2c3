// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/epoll.h"
#include "control/server_private.h"

#define CLIENTS_DEFAULT 1024
#define PER_USER_DEFAULT 32
#define PARTIAL_MS_DEFAULT 10000
#define EVENTS 64

static void close_client(struct sl_client *client)
{
	struct sl_server *server = client->server;

	LIST_REMOVE(client, all);
	server->count--;
	if (server->options.gone)
		server->options.gone(client, client->data, server->options.ctx);
	sl_request_drop(&client->request);
	/* Or events of this one would come to whoever has its memory next: base/epoll.h. */
	epoll_ctl(server->epoll, EPOLL_CTL_DEL, sl_wire_fd(client->wire), NULL);
	sl_wire_free(&client->wire);
	free(client);
}

void sl_client_watch(struct sl_client *client)
{
	struct epoll_event event = { .events = EPOLLRDHUP, .data.ptr = client };

	/* Nothing more is read before the call in hand is answered. */
	if (!client->request.json)
		event.events |= EPOLLIN;
	if (sl_wire_queued(client->wire) || client->kicked)
		event.events |= EPOLLOUT;
	if (event.events == client->watched)
		return;
	client->watched = event.events;
	epoll_ctl(client->server->epoll, EPOLL_CTL_MOD, sl_wire_fd(client->wire), &event);
}

/* Makes it ready, whatever it is watched for, so that run() comes by. */
static void finish(struct sl_client *client)
{
	client->ended = true;
	shutdown(sl_wire_fd(client->wire), SHUT_RDWR);
}

void sl_client_end_for(struct sl_client *client, const char *cause)
{
	client->cause = client->cause ?: cause;
	if (!client->ended)
		sl_client_say_end(client);
	finish(client);
}

void sl_client_end(struct sl_client *client, const char *cause)
{
	if (cause) {
		sl_client_end_for(client, cause);
		return;
	}
	client->cause = client->cause ?: "the agent ended the connection";
	sl_wire_flush(client->wire);
	finish(client);
}

/* Of a connection on which reading or writing has failed; the server's fault is none. */
static const char *cause_of(int code)
{
	switch (code) {
	case -EMSGSIZE:
		return "a message was too long";
	case -EPROTO:
		return "more descriptors came than a message may have";
	case -EBADMSG:
		return "a message was no JSON object in UTF-8";
	case -ENOMEM:
		return "the agent had no memory for a message";
	case -ECONNRESET:
		return "the connection was closed with an answer unread";
	default:
		return "the connection was closed";
	}
}

static void note_end(struct sl_client *client, int code)
{
	client->cause = client->cause ?: cause_of(code);
	if (code == -EMSGSIZE || code == -EPROTO || code == -EBADMSG)
		client->server->counts[SL_SERVER_MALFORMED]++;
	/* Who has closed it himself need not be told. */
	if (!client->ended && code != -EPIPE && code != -ECONNRESET)
		sl_client_say_end(client);
}

static int take_requests(struct sl_client *client)
{
	int ret = 0;

	client->kicked = false;
	client->taking = true;
	while (!client->request.json && !client->ended) {
		ret = sl_wire_next(client->wire, &client->request.json, &client->request.fds);
		if (ret)
			break;
		client->since_ms = sl_monotonic_ms();
		client->server->counts[SL_SERVER_CALLS]++;
		sl_request_run(&client->request);
	}
	client->taking = false;
	return ret == -EAGAIN ? 0 : ret;
}

static void handle_client(struct sl_client *client, unsigned int events)
{
	int ret = 0;

	if (events & EPOLLOUT) {
		ret = sl_wire_flush(client->wire);
		client->since_ms = sl_monotonic_ms();
	}
	if (ret == -EAGAIN)
		ret = 0;
	if (!ret && (events & EPOLLIN) && !client->request.json) {
		ret = sl_wire_fill(client->wire);
		if (ret == -EAGAIN)
			ret = 0;
	} else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		ret = -EPIPE;
	}
	ret = ret ?: take_requests(client);
	if (!ret && !client->ended) {
		sl_client_watch(client);
		return;
	}
	note_end(client, ret);
	close_client(client);
}

/* Whether somebody of the same user, or group, may still enter. */
static bool may_enter(const struct sl_server *server, uid_t uid, uint64_t group)
{
	const struct sl_server_options *options = &server->options;
	const struct sl_client *client;
	unsigned int same = 0;

	if (!uid && !group)
		return server->count < options->clients;
	if (server->count >= options->clients - options->clients / 4)
		return false;
	LIST_FOREACH(client, &server->clients, all)
	same += group ? client->group == group : client->peer.uid == uid;
	return same < options->per_user;
}

static int add_client(struct sl_server *server, int *fd, const struct ucred *peer, uint64_t group)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	struct sl_client *client = calloc(1, sizeof(*client));
	int ret;

	if (!client)
		return -ENOMEM;
	ret = sl_wire_new(&client->wire, *fd, &server->options.wire);
	if (ret)
		goto out;
	*fd = -1;
	client->server = server;
	client->peer = *peer;
	client->group = group;
	client->request.client = client;
	client->since_ms = sl_monotonic_ms();
	client->watched = event.events;
	event.data.ptr = client;
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, sl_wire_fd(client->wire), &event)) {
		ret = -errno;
		goto out;
	}
	LIST_INSERT_HEAD(&server->clients, client, all);
	server->count++;
	return 0;
out:
	sl_wire_free(&client->wire);
	free(client);
	return ret;
}

/* Who finds no room is told; `text` is static. */
static void refuse_client(struct sl_server *server, int fd, const char *text)
{
	server->counts[SL_SERVER_REFUSED]++;
	sl_closed_send(server, fd, text);
}

static int listen_again(struct sl_server *server, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN : 0 };

	server->paused = !on;
	return epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->options.listener, &event) ? -errno
											 : 0;
}

static void accept_clients(struct sl_server *server)
{
	for (;;) {
		_cleanup_fd_ int fd =
			accept4(server->options.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred peer;
		socklen_t len = sizeof(peer);
		uint64_t group = 0;

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			if (errno != EAGAIN) {
				server->counts[SL_SERVER_NO_FDS]++;
				listen_again(server, false);
			}
			return;
		}
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
			refuse_client(server, fd, "who connects can't be told");
			continue;
		}
		if (!peer.uid && server->options.group)
			group = server->options.group(&peer, server->options.ctx);
		if (!may_enter(server, peer.uid, group))
			refuse_client(server, fd, "no room is left for connections of this user");
		else if (add_client(server, &fd, &peer, group))
			refuse_client(server, fd, "no memory is left for another connection");
		else
			server->counts[SL_SERVER_ACCEPTED]++;
	}
}

void sl_server_run(struct sl_server *server)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(server->epoll, events, EVENTS, 0);

	/* A client is freed in its own turn only, so that no later event points to nothing. */
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr)
			handle_client(events[i].data.ptr, events[i].events);
		else
			accept_clients(server);
	}
}

void sl_server_tick(struct sl_server *server)
{
	int64_t now = sl_monotonic_ms();
	struct sl_client *client;

	if (server->paused)
		listen_again(server, true);
	LIST_FOREACH(client, &server->clients, all)
	{
		bool waits = sl_wire_queued(client->wire) ||
			     (!client->request.json && sl_wire_partial(client->wire));

		if (!waits) {
			client->since_ms = now;
		} else if (now - client->since_ms > server->options.partial_ms && !client->ended) {
			server->counts[SL_SERVER_STALLED]++;
			sl_client_end_for(client, sl_wire_queued(client->wire)
							  ? "an answer was not read in time"
							  : "a message was begun and not finished "
							    "in time");
		}
	}
}

int sl_server_new(struct sl_server **out, const struct sl_server_options *options,
		  struct sl_err *err)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct sl_server *server = calloc(1, sizeof(*server));
	int ret;

	if (!server)
		return sl_err_sys(err, ENOMEM, "can't make the control service");
	server->options = *options;
	server->options.clients = options->clients ?: CLIENTS_DEFAULT;
	server->options.per_user = options->per_user ?: PER_USER_DEFAULT;
	server->options.partial_ms = options->partial_ms ?: PARTIAL_MS_DEFAULT;
	LIST_INIT(&server->clients);
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0 ||
	    epoll_ctl(server->epoll, EPOLL_CTL_ADD, options->listener, &event)) {
		ret = sl_err_sys(err, errno, "can't watch the control socket");
		sl_server_free(&server);
		return ret;
	}
	*out = server;
	return 0;
}

void sl_server_free(struct sl_server **server)
{
	struct sl_server *s;

	if (!server || !*server)
		return;
	s = TAKE_PTR(*server);
	while (!LIST_EMPTY(&s->clients))
		close_client(LIST_FIRST(&s->clients));
	sl_cleanup_fd(&s->epoll);
	free(s);
}

int sl_server_fd(const struct sl_server *server)
{
	return server->epoll;
}

uint64_t sl_server_count(const struct sl_server *server, enum sl_server_count which)
{
	return server->counts[which];
}

unsigned int sl_server_clients(const struct sl_server *server)
{
	return server->count;
}

void sl_client_set(struct sl_client *client, void *data)
{
	client->data = data;
}

void *sl_client_get(const struct sl_client *client)
{
	return client->data;
}

const char *sl_client_cause(const struct sl_client *client)
{
	return client->cause ?: "the agent ends";
}

const struct ucred *sl_client_peer(const struct sl_client *client)
{
	return &client->peer;
}

struct sl_request *sl_client_request(const struct sl_client *client)
{
	return client->request.json ? (struct sl_request *)&client->request : NULL;
}
