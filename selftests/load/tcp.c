/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP clients: tcp-send with its ways, tcp-idle. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "proc.h"
#include "stream.h"

static int tcp_send(const struct sl_opts *o)
{
	return sl_stream_run(o, 16);
}

/* What has arrived, sent back; 0 at the end of the stream. */
static ssize_t echo_one(struct sl_stream *s)
{
	static char buf[SL_CHUNK];
	ssize_t n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT), done = 0, sent;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	s->received += (uint64_t)n;
	while (done < n) {
		sent = send(s->fd, buf + done, (size_t)(n - done), MSG_NOSIGNAL);
		if (sent < 0 && errno != EINTR)
			return -errno;
		done += sent > 0 ? sent : 0;
	}
	s->sent += (uint64_t)n;
	return n;
}

/* Until the server has ended all of them. */
static int echo_streams(struct sl_stream *streams, uint64_t count)
{
	_cleanup_free_ struct pollfd *fds = calloc(count, sizeof(*fds));
	uint64_t left = count;
	ssize_t n;

	if (!fds)
		return sl_fail("calloc", ENOMEM);
	for (uint64_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = streams[i].fd, .events = POLLIN };
	while (left) {
		if (poll(fds, count, -1) < 0 && errno != EINTR)
			return sl_fail("poll", errno);
		for (uint64_t i = 0; i < count; i++) {
			if (!fds[i].revents)
				continue;
			n = echo_one(&streams[i]);
			if (n < 0)
				return sl_fail("echo", (int)-n);
			if (n == 0) {
				fds[i] = (struct pollfd){ .fd = -1 };
				left--;
			}
		}
	}
	return 0;
}

static int tcp_idle(const struct sl_opts *o)
{
	uint64_t count = sl_or(o->count, 1), opened;
	_cleanup_free_ struct sl_stream *streams = calloc(count, sizeof(*streams));
	int rc = 0, end;

	if (!streams)
		return sl_fail("calloc", ENOMEM);
	if (o->n_servers == 0)
		return sl_usage("%s needs --server", o->cmd);
	for (opened = 0; rc == 0 && opened < count; opened++) {
		streams[opened] = (struct sl_stream)SL_STREAM_INIT;
		rc = sl_stream_open(&streams[opened], o, &o->server[0]);
		if (rc == 0)
			sl_stream_tell_open(&streams[opened]);
	}
	if (rc == 0 && o->echo)
		rc = echo_streams(streams, opened);
	else if (rc == 0)
		sl_wait_stdin();
	for (uint64_t i = 0; i < opened; i++) {
		end = sl_stream_end(&streams[i], rc);
		if (rc == 0)
			rc = end;
	}
	return rc;
}

const struct sl_cmd sl_tcp_cmds[] = {
	{ .name = "tcp-send",
	  .run = tcp_send,
	  .options = "server bytes count via uring recv half-close rst connect-only v6 mapped "
		     "mptcp bind connect disconnect then identify hold",
	  .help = "connects and sends COUNT messages of BYTES. --via send write writev sendmsg "
		  "sendmmsg sendfile splice vmsplice uring-send uring-sendmsg uring-sendzc "
		  "msg-zerocopy fastopen fastopen-sendmsg fastopen-connect; --recv recv read "
		  "splice recvmmsg uring-recv peek (needs an echoing server)" },
	{ .name = "tcp-idle",
	  .run = tcp_idle,
	  .options = "server count v6 mapped mptcp bind connect uring rst echo",
	  .help = "opens COUNT connections and keeps them until stdin ends; with --echo sends back "
		  "what arrives, until the server has ended them all" },
	{ 0 },
};
