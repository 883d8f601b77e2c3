// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* DNS over TCP (RFC 7766): several queries on a connection, answered as they come. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/epoll.h"
#include "dns/server_private.h"

/* Bytes that clients have not read, above which their next queries are not either. */
#define OUT_MAX (128 * 1024)        /* of one */
#define OUT_TOTAL (4 * 1024 * 1024) /* of all; a client that has read everything is served */

void sl_conn_close(struct sl_conn *conn)
{
	struct sl_dns *dns = conn->dns;
	struct sl_query *query, *next;

	if (conn->fd < 0)
		return;
	for (query = TAILQ_FIRST(&dns->queries); query && conn->waiting; query = next) {
		next = TAILQ_NEXT(query, all);
		if (query->conn != conn)
			continue;
		dns->counts[SL_DNS_COUNT_UNSENT]++;
		sl_query_drop(query);
	}
	sl_epoll_close(dns->epoll, &conn->fd);
	sl_cleanup_free(&conn->out);
	dns->unread -= conn->out_size - conn->out_done;
	TAILQ_REMOVE(&dns->conns, conn, all);
	TAILQ_INSERT_TAIL(&dns->dead, conn, all);
	dns->conn_count--;
	conn->asker->conns--;
	sl_asker_put(dns, &conn->asker);
}

void sl_conn_free_dead(struct sl_dns *dns)
{
	struct sl_conn *conn;

	while ((conn = TAILQ_FIRST(&dns->dead))) {
		TAILQ_REMOVE(&dns->dead, conn, all);
		free(conn);
	}
}

/* Whether its next query may be taken. */
static bool has_room(const struct sl_conn *conn)
{
	size_t unread = conn->out_size - conn->out_done;

	return conn->waiting < SL_DNS_INFLIGHT_SOCKET &&
	       (!unread || (unread < OUT_MAX && conn->dns->unread < OUT_TOTAL));
}

/* The next whole query that was read, of `size` bytes; NULL: there is none yet. */
static const uint8_t *next_query(const struct sl_conn *conn, size_t *size)
{
	if (conn->got < 2)
		return NULL;
	*size = (size_t)(conn->in[0] << 8 | conn->in[1]);
	return conn->got >= 2 + *size ? conn->in + 2 : NULL;
}

static void watch(struct sl_conn *conn)
{
	struct epoll_event event = { .data.ptr = &conn->watch };
	size_t size;

	if (has_room(conn) && !conn->ended)
		event.events |= EPOLLIN;
	/* Also to be called for what was read already, and had to wait. */
	if (conn->out_done < conn->out_size || (has_room(conn) && next_query(conn, &size)))
		event.events |= EPOLLOUT;
	if (event.events == conn->watched)
		return;
	conn->watched = event.events;
	epoll_ctl(conn->dns->epoll, EPOLL_CTL_MOD, conn->fd, &event);
}

static int flush(struct sl_conn *conn)
{
	while (conn->out_done < conn->out_size) {
		ssize_t n = send(conn->fd, conn->out + conn->out_done,
				 conn->out_size - conn->out_done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		conn->out_done += (size_t)n;
		conn->dns->unread -= (size_t)n;
		/* Room in the kernel comes in large pieces: who reads a little is late. */
		conn->since_ms = sl_monotonic_ms();
	}
	sl_cleanup_free(&conn->out);
	conn->out_size = conn->out_done = 0;
	return 0;
}

void sl_conn_send(struct sl_conn *conn, const uint8_t *data, size_t size)
{
	uint8_t *out;

	if (conn->fd < 0)
		return;
	out = realloc(conn->out, conn->out_size + 2 + size);
	if (!out) {
		conn->dns->counts[SL_DNS_COUNT_UNSENT]++;
		return;
	}
	conn->out = out;
	if (conn->out_done == conn->out_size)
		conn->since_ms = sl_monotonic_ms();
	out += conn->out_size;
	out[0] = (uint8_t)(size >> 8);
	out[1] = (uint8_t)size;
	memcpy(out + 2, data, size);
	conn->out_size += 2 + size;
	conn->dns->unread += 2 + size;
	/* An error is seen by the event that comes with it. */
	flush(conn);
}

void sl_conn_answered(struct sl_conn *conn)
{
	size_t size;

	if (conn->fd < 0)
		return;
	/* A client that sends no more still reads the answers. */
	if (conn->ended && !conn->waiting && conn->out_done == conn->out_size &&
	    !next_query(conn, &size))
		sl_conn_close(conn);
	else
		watch(conn);
}

static int take_queries(struct sl_conn *conn)
{
	const uint8_t *data;
	size_t size = 0;

	while (has_room(conn) && (data = next_query(conn, &size))) {
		sl_query_take(conn->dns, conn, &conn->source, data, size);
		conn->got -= 2 + size;
		memmove(conn->in, conn->in + 2 + size, conn->got);
		conn->since_ms = sl_monotonic_ms();
	}
	return size > SL_DNS_QUERY_SIZE ? -EMSGSIZE : 0;
}

static int fill(struct sl_conn *conn)
{
	ssize_t n =
		recv(conn->fd, conn->in + conn->got, sizeof(conn->in) - conn->got, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		conn->ended = true;
	else if (!conn->got)
		conn->since_ms = sl_monotonic_ms();
	conn->got += (size_t)n;
	return 0;
}

void sl_conn_handle(struct sl_conn *conn, unsigned int events)
{
	int ret = 0;

	if (conn->fd < 0)
		return;
	if (events & (EPOLLERR | EPOLLHUP))
		ret = -EPIPE;
	if (!ret && (events & EPOLLOUT))
		ret = flush(conn);
	if (!ret)
		ret = take_queries(conn);
	/* What is left is less than a query, so there is room for more of it. */
	if (!ret && (events & EPOLLIN) && has_room(conn) && !conn->ended)
		ret = fill(conn) ?: take_queries(conn);
	if (ret)
		sl_conn_close(conn);
	else
		sl_conn_answered(conn);
}

static bool is_idle(const struct sl_conn *conn)
{
	int unread = 0;

	return !conn->waiting && !conn->got && conn->out_done == conn->out_size &&
	       !ioctl(conn->fd, FIONREAD, &unread) && !unread;
}

/* Closes the one that was idle for the longest time, of one process or (NULL) of any. */
static bool close_idle(struct sl_dns *dns, const struct sl_asker *asker)
{
	struct sl_conn *conn, *longest = NULL;

	TAILQ_FOREACH(conn, &dns->conns, all)
	{
		if ((!asker || conn->asker == asker) &&
		    (!longest || conn->since_ms < longest->since_ms) && is_idle(conn))
			longest = conn;
	}
	if (!longest)
		return false;
	dns->counts[SL_DNS_COUNT_TCP_IDLE]++;
	sl_conn_close(longest);
	return true;
}

/* Room for one more connection of a process: its share, or in place of one that is idle. */
static bool make_room(struct sl_dns *dns, const struct sl_asker *asker)
{
	if (sl_asker_share(asker->conns, dns->conn_count, SL_DNS_TCP_PROCESS, SL_DNS_TCP_CLIENTS))
		return true;
	if (close_idle(dns, asker))
		return true;
	return !asker->conns && close_idle(dns, NULL);
}

static int add_conn(struct sl_dns *dns, int *fd, const struct sl_dns_source *source,
		    struct sl_asker **asker)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct sl_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->watch.kind = SL_WATCH_CONN;
	conn->dns = dns;
	conn->source = *source;
	conn->watched = event.events;
	conn->since_ms = sl_monotonic_ms();
	event.data.ptr = &conn->watch;
	if (epoll_ctl(dns->epoll, EPOLL_CTL_ADD, *fd, &event)) {
		free(conn);
		return -errno;
	}
	conn->fd = TAKE_FD(*fd);
	conn->asker = TAKE_PTR(*asker);
	conn->asker->conns++;
	TAILQ_INSERT_TAIL(&dns->conns, conn, all);
	dns->conn_count++;
	dns->counts[SL_DNS_COUNT_CONNECTIONS]++;
	sl_dns_start_ticking(dns);
	return 0;
}

/* It becomes a connection, or is closed by the caller. */
static void take_conn(struct sl_dns *dns, int *fd, const struct sl_dns_source *source)
{
	struct sl_dns_who who = { 0 };
	struct sl_asker *asker;

	dns->options.ops->who(dns->options.arg, source, &who);
	asker = sl_asker_get(dns, &who);
	if (!asker || !make_room(dns, asker) || add_conn(dns, fd, source, &asker))
		dns->counts[SL_DNS_COUNT_TCP_LIMIT]++;
	sl_asker_put(dns, &asker);
}

static void pause_accepting(struct sl_dns *dns, struct sl_listener *listener)
{
	dns->counts[SL_DNS_COUNT_NO_FDS]++;
	epoll_ctl(dns->epoll, EPOLL_CTL_DEL, listener->fd, NULL);
	listener->paused = true;
	sl_dns_start_ticking(dns);
}

void sl_conn_accept(struct sl_dns *dns, struct sl_listener *listener)
{
	for (;;) {
		struct sl_dns_source source = { .tcp = true };
		socklen_t client = sizeof(source.client), asked = sizeof(source.asked);
		_cleanup_fd_ int fd = accept4(listener->fd, (struct sockaddr *)&source.client,
					      &client, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
			pause_accepting(dns, listener);
			return;
		}
		/* All else is about one client (accept(2)). */
		if (fd < 0)
			continue;
		source.fd = fd;
		if (!getsockname(fd, (struct sockaddr *)&source.asked, &asked))
			take_conn(dns, &fd, &source);
	}
}

void sl_conn_tick(struct sl_dns *dns, int64_t now_ms)
{
	struct sl_conn *conn, *next;

	for (conn = TAILQ_FIRST(&dns->conns); conn; conn = next) {
		bool partial = conn->got && has_room(conn);
		bool unread = conn->out_done < conn->out_size;
		int64_t late_ms = now_ms - conn->since_ms;

		next = TAILQ_NEXT(conn, all);
		if ((partial || unread) && late_ms > SL_DNS_TCP_MESSAGE_MS) {
			dns->counts[SL_DNS_COUNT_TCP_SLOW]++;
			sl_conn_close(conn);
		} else if (!conn->waiting && !unread && late_ms > SL_DNS_TCP_IDLE_MS) {
			sl_conn_close(conn);
		}
	}
}
