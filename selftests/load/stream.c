/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stream.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "proc.h"
#include "sock.h"

/* A way that the kernel does not have, by what it answered. */
static const char *missing(const struct sl_opts *o, int err)
{
	const char *via = o->via ? o->via : "";

	if (via[0] == 'u' && (err == ENOSYS || err == EOPNOTSUPP))
		return err == ENOSYS ? "io_uring" : "io_uring SEND_ZC";
	if (via[0] == 'f' && err == EOPNOTSUPP)
		return "TCP Fast Open (net.ipv4.tcp_fastopen)";
	return NULL;
}

static int failed(struct sl_stream *s, const struct sl_opts *o, const char *step, int rc)
{
	const char *feature = missing(o, -rc);

	s->step = step;
	if (-rc < SL_ENOFEATURE)
		s->err = -rc;
	if (feature)
		return sl_skip(feature, -rc);
	return -rc < SL_ENOFEATURE ? sl_fail(step, -rc) : rc;
}

static int check_ways(struct sl_stream *s, const struct sl_opts *o)
{
	if (!sl_via_find(o->via))
		return sl_usage("--via: no such way");
	if (!sl_take_find(o->recv))
		return sl_usage("--recv: no such way");
	s->chan.uring_mode = o->uring;
	return 0;
}

int sl_stream_open(struct sl_stream *s, const struct sl_opts *o, const struct sl_addr *to)
{
	const struct sl_via *via = sl_via_find(o->via);
	int rc = check_ways(s, o);

	if (rc < 0)
		return rc;
	s->to = sl_sock_dest(o, to);
	s->step = "socket";
	rc = sl_sock_tcp(o, to, &s->fd);
	if (rc < 0) {
		s->err = -rc < SL_ENOFEATURE ? -rc : 0;
		return rc;
	}
	s->chan.fd = s->fd;
	sl_sock_note(&s->note, s->fd);
	if (via->fastopen_connect &&
	    setsockopt(s->fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &(int){ 1 }, sizeof(int)) < 0)
		return failed(s, o, "TCP_FASTOPEN_CONNECT", -errno);
	if (via->fastopen && !o->connect_only) {
		s->chan.to = &s->to;
		return 0;
	}
	rc = sl_sock_connect(o, s->fd, &s->to, &s->in_progress);
	if (rc < 0)
		return failed(s, o, "connect", rc);
	sl_sock_note(&s->note, s->fd);
	return 0;
}

void sl_stream_adopt(struct sl_stream *s, const struct sl_opts *o, int fd)
{
	s->fd = fd;
	s->chan.fd = fd;
	s->chan.uring_mode = o->uring;
	sl_sock_note(&s->note, fd);
	s->to = s->note.remote;
}

/* Reads back `len` bytes. */
static int take(struct sl_stream *s, const struct sl_opts *o, uint64_t len)
{
	const struct sl_take *way = sl_take_find(o->recv);
	static char buf[SL_CHUNK];

	while (len > 0) {
		ssize_t n = way->recv(&s->chan, buf, len < sizeof(buf) ? len : sizeof(buf));

		if (n == 0)
			n = -ECONNABORTED; /* the end came before the echo */
		if (n < 0)
			return failed(s, o, "recv", (int)n);
		s->received += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static int send_all(struct sl_stream *s, const struct sl_opts *o, uint64_t len)
{
	const struct sl_via *way = sl_via_find(o->via);

	while (len > 0) {
		size_t piece = len < SL_CHUNK ? len : SL_CHUNK;
		ssize_t n = way->send(&s->chan, sl_payload(), piece);
		int rc;

		if (n == 0)
			n = -EIO;
		if (n < 0)
			return failed(s, o, "send", (int)n);
		s->sent += (uint64_t)n;
		len -= (uint64_t)n;
		/* Piece by piece: a long echo would fill both sides' buffers. */
		rc = o->recv ? take(s, o, (uint64_t)n) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sl_stream_send(struct sl_stream *s, const struct sl_opts *o, uint64_t bytes, uint64_t count)
{
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < count; i++)
		rc = send_all(s, o, bytes);
	if (rc == 0)
		rc = sl_chan_flush(&s->chan);
	/* Fast Open: only now is there a connection to read addresses from. */
	sl_sock_note(&s->note, s->fd);
	return rc;
}

int sl_stream_identify(struct sl_stream *s, uint32_t n)
{
	struct sl_ident ident = sl_ident_self(n);
	ssize_t rc = send(s->fd, &ident, sizeof(ident), MSG_NOSIGNAL);

	s->step = "identify";
	if (rc != (ssize_t)sizeof(ident)) {
		s->err = rc < 0 ? errno : EIO;
		return sl_fail(s->step, s->err);
	}
	s->sent += sizeof(ident);
	return 0;
}

int sl_stream_drain(struct sl_stream *s, const struct sl_opts *o)
{
	const struct sl_take *way = sl_take_find(o->recv);
	char buf[4096];
	ssize_t n;

	while ((n = way->recv(&s->chan, buf, sizeof(buf))) > 0)
		s->received += (uint64_t)n;
	return n < 0 ? failed(s, o, "recv", (int)n) : 0;
}

static void tell(struct sl_stream *s, const char *what)
{
	struct sl_line line;

	sl_line_start(&line, what);
	sl_line_self(&line);
	sl_line_note(&line, &s->note);
	sl_line_addr(&line, "to", &s->to);
	sl_line_u64(&line, "sent", s->sent);
	sl_line_u64(&line, "received", s->received);
	sl_line_u64(&line, "peeked", s->chan.peeked);
	sl_line_add(&line, "in_progress", "%d", s->in_progress);
	sl_line_add(&line, "step", "%s", s->err ? s->step : "-");
	sl_line_errno(&line, "errno", s->err);
	sl_line_end(&line);
}

void sl_stream_tell_open(struct sl_stream *s)
{
	tell(s, "open");
}

int sl_stream_end(struct sl_stream *s, int rc)
{
	sl_chan_close(&s->chan);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (!s->quiet && rc != -SL_EUSAGE)
		tell(s, "sock");
	return rc;
}

/* connect(AF_UNSPEC), then the same socket again. */
static int connect_again(struct sl_stream *s, const struct sl_opts *o)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	int rc;

	sl_stream_tell_open(s);
	if (connect(s->fd, &unspec, sizeof(unspec)) < 0)
		return failed(s, o, "disconnect", -errno);
	s->to = sl_sock_dest(o, o->then.len ? &o->then : &o->server[0]);
	s->note.remote.len = 0;
	rc = sl_sock_connect(o, s->fd, &s->to, &s->in_progress);
	sl_sock_note(&s->note, s->fd);
	return rc < 0 ? failed(s, o, "connect", rc) : 0;
}

static int exchange(struct sl_stream *s, const struct sl_opts *o, uint64_t bytes)
{
	uint64_t count = o->connect_only ? 0 : sl_or(o->count, 1);
	int rc = o->identify ? sl_stream_identify(s, 0) : 0;

	if (rc == 0)
		rc = sl_stream_send(s, o, sl_or(o->bytes, bytes), count);
	if (rc == 0 && o->disconnect) {
		rc = connect_again(s, o);
		if (rc == 0)
			rc = sl_stream_send(s, o, sl_or(o->bytes, bytes), count);
	}
	if (rc == 0 && o->half_close) {
		if (shutdown(s->fd, SHUT_WR) < 0)
			return failed(s, o, "shutdown", -errno);
		rc = sl_stream_drain(s, o);
	}
	if (rc == 0 && o->hold) {
		sl_stream_tell_open(s);
		sl_wait_stdin();
	}
	return rc;
}

int sl_stream_run(const struct sl_opts *o, uint64_t bytes)
{
	struct sl_stream s = SL_STREAM_INIT;
	int rc;

	if (o->n_servers == 0)
		return sl_usage("%s needs --server", o->cmd);
	rc = sl_stream_open(&s, o, &o->server[0]);
	if (rc == 0)
		rc = exchange(&s, o, bytes);
	return sl_stream_end(&s, rc);
}
