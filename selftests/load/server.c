/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP servers: what arrived, by connection and in total. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "chan.h"
#include "proc.h"
#include "sock.h"
#include "truth.h"

/* Shared with the children of --fork, so added to atomically. */
struct totals {
	uint64_t accepted;
	uint64_t received;
	uint64_t sent;
	uint64_t resets;
	uint64_t identified;
};

/* One accepted connection. */
struct peer {
	int fd;
	struct sl_sock_note note;
	uint64_t received;
	uint64_t sent;
	const char *end;
	struct sl_ident ident;
};

static void tell_peer(const struct peer *p, const char *what)
{
	struct sl_line line;

	sl_line_start(&line, what);
	if (!strcmp(what, "ident")) {
		/* The client's own words, not this process. */
		sl_line_u64(&line, "pid", p->ident.pid);
		sl_line_start_time(&line, p->ident.start_ticks);
		sl_line_u64(&line, "n", p->ident.n);
	} else {
		sl_line_self(&line);
	}
	sl_line_note(&line, &p->note);
	sl_line_u64(&line, "received", p->received);
	sl_line_u64(&line, "sent", p->sent);
	sl_line_add(&line, "end", "%s", p->end);
	sl_line_end(&line);
}

static bool echo_all(struct peer *p, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = send(p->fd, buf, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p->sent += (uint64_t)n;
		buf += n;
		len -= (size_t)n;
	}
	return true;
}

/* Reads to the end; keeps the first bytes as the identity. */
static void serve(struct peer *p, bool echo)
{
	static char buf[SL_CHUNK];
	ssize_t n;

	for (;;) {
		n = recv(p->fd, buf, sizeof(buf), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (p->received < sizeof(p->ident)) {
			size_t room = sizeof(p->ident) - p->received;

			memcpy((char *)&p->ident + p->received, buf,
			       (size_t)n < room ? (size_t)n : room);
		}
		p->received += (uint64_t)n;
		if (echo && !echo_all(p, buf, (size_t)n)) {
			n = -1;
			break;
		}
	}
	p->end = n == 0 ? "eof" : errno == ECONNRESET || errno == EPIPE ? "rst" : "error";
}

static void add(uint64_t *sum, uint64_t n)
{
	__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

static void handle(const struct sl_opts *o, struct peer *p, bool want_ident, struct totals *t)
{
	bool whole;

	p->end = "early";
	if (!o->close_early)
		serve(p, o->echo);
	whole = want_ident && p->received == sizeof(p->ident);
	add(&t->received, p->received);
	add(&t->sent, p->sent);
	add(&t->resets, !strcmp(p->end, "rst"));
	add(&t->identified, whole);
	if (!o->quiet)
		tell_peer(p, whole ? "ident" : "peer");
}

static int accept_one(const struct sl_opts *o, int fd, bool want_ident, struct totals *t)
{
	_cleanup_fd_ int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	struct peer p = { .fd = conn };
	pid_t pid = 1;

	/* A client that reset its connection before accept() is no failure of the server. */
	if (conn < 0)
		return errno == ECONNABORTED || errno == EINTR ? 0 : sl_fail("accept", errno);
	t->accepted++;
	sl_sock_note(&p.note, conn);
	if (o->fork) {
		pid = sl_fork();
		if (pid < 0)
			return sl_fail("fork", -pid);
		if (pid > 0)
			return 0;
	}
	handle(o, &p, want_ident, t);
	if (pid == 0)
		sl_exit(0);
	return 0;
}

static void tell_totals(const struct totals *t)
{
	struct sl_line line;

	sl_line_start(&line, "total");
	sl_line_u64(&line, "accepted", t->accepted);
	sl_line_u64(&line, "received", t->received);
	sl_line_u64(&line, "sent", t->sent);
	sl_line_u64(&line, "resets", t->resets);
	sl_line_u64(&line, "identified", t->identified);
	sl_line_end(&line);
}

static int run_server(const struct sl_opts *o, bool want_ident)
{
	uint64_t count = sl_or(o->count, o->until_eof ? SL_UNSET : 1);
	struct totals *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_cleanup_fd_ int fd = -1;
	bool draining = false;
	int rc;

	if (t == MAP_FAILED)
		return sl_fail("mmap", errno);
	rc = sl_sock_listen(o, SOCK_STREAM, &fd);
	if (rc < 0)
		return rc;
	if (o->no_accept) {
		sl_wait_stdin();
		count = 0;
	}
	while (t->accepted < count) {
		rc = sl_sock_next(o, fd, &draining);
		if (rc <= 0)
			break;
		rc = accept_one(o, fd, want_ident, t);
		if (rc < 0)
			break;
	}
	if (o->fork)
		(void)sl_wait_all();
	tell_totals(t);
	return rc < 0 ? rc : 0;
}

static int tcp_server(const struct sl_opts *o)
{
	return run_server(o, false);
}

static int tcp_exit_server(const struct sl_opts *o)
{
	return run_server(o, true);
}

const struct sl_cmd sl_server_cmds[] = {
	{ .name = "tcp-server",
	  .run = tcp_server,
	  .options = "listen count echo close-early fork mptcp backlog until-eof no-accept "
		     "fastopen quiet",
	  .help = "accepts COUNT connections, one after the other, and reads each to its end" },
	{ .name = "tcp-exit-server",
	  .run = tcp_exit_server,
	  .options = "listen count fork backlog until-eof quiet",
	  .help = "as tcp-server, for clients with --identify: prints who each said it was" },
	{ 0 },
};
