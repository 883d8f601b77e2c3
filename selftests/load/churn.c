/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Many short connections: good ones, failing ones, and clients that exit at once. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc.h"
#include "sock.h"
#include "stream.h"

static void tell_total(uint64_t tried, uint64_t ok)
{
	struct sl_line line;

	sl_line_start(&line, "total");
	sl_line_self(&line);
	sl_line_u64(&line, "tried", tried);
	sl_line_u64(&line, "ok", ok);
	sl_line_u64(&line, "failed", tried - ok);
	sl_line_end(&line);
}

static int tcp_churn(const struct sl_opts *o)
{
	uint64_t count = sl_or(o->count, 100), ok = 0, start = sl_now_ns();
	int first = 0;

	if (o->n_servers == 0)
		return sl_usage("%s needs --server", o->cmd);
	for (uint64_t i = 0; i < count; i++) {
		struct sl_stream s = SL_STREAM_INIT;
		int rc;

		s.quiet = o->quiet;
		sl_pace(start, i, sl_or(o->rate, 0));
		rc = sl_stream_open(&s, o, &o->server[0]);
		if (rc == 0 && o->bytes != SL_UNSET)
			rc = sl_stream_send(&s, o, o->bytes, 1);
		rc = sl_stream_end(&s, rc);
		ok += rc == 0;
		if (first == 0)
			first = rc;
	}
	tell_total(count, ok);
	return first;
}

/* What a failing kind of connect needs, and what it must answer. */
struct fail {
	const struct sl_opts *o;
	struct sl_addr to;
	int expect;
	int keep[2]; /* sockets that make it fail: a bound or a full listener, its client */
};

static int bind_own(struct fail *f, bool listening)
{
	struct sl_addr any;
	int rc;

	(void)sl_addr_parse("127.0.0.1:0", &any);
	rc = sl_sock_new(AF_INET, SOCK_STREAM, 0, &f->keep[0]);
	if (rc < 0)
		return rc;
	if (bind(f->keep[0], &any.sa, any.len) < 0 || (listening && listen(f->keep[0], 0) < 0))
		return -errno;
	return sl_addr_local(f->keep[0], &f->to);
}

/* A port that is bound but has no listener answers with a reset, and nobody can take it. */
static int fail_refused(struct fail *f)
{
	return f->to.len ? 0 : bind_own(f, false);
}

/* TCP to a broadcast address: the kernel refuses before any packet. */
static int fail_unreachable(struct fail *f)
{
	return f->to.len ? 0 : sl_addr_parse("127.255.255.255:9", &f->to);
}

/* A listener with backlog 0 and one connection in its queue drops further SYNs. */
static int fail_timeout(struct fail *f)
{
	int rc;

	if (f->to.len)
		return 0;
	rc = bind_own(f, true);
	if (rc == 0)
		rc = sl_sock_new(AF_INET, SOCK_STREAM, 0, &f->keep[1]);
	if (rc == 0 && connect(f->keep[1], &f->to.sa, f->to.len) < 0)
		rc = -errno;
	return rc;
}

static const struct {
	const char *name;
	int expect;
	int (*prepare)(struct fail *f);
} fails[] = {
	{ "refused", ECONNREFUSED, fail_refused },
	{ "unreachable", ENETUNREACH, fail_unreachable },
	{ "timeout-nonblock", ETIMEDOUT, fail_timeout },
};

/* One try; its errno. For the timeout kind: ETIMEDOUT when nothing came within 20 ms. */
static int fail_once(const struct fail *f, struct sl_sock_note *note)
{
	_cleanup_fd_ int fd = -1;
	int rc = sl_sock_new(f->to.sa.sa_family, SOCK_STREAM, 0, &fd);

	if (rc < 0)
		return -rc;
	if (f->expect == ETIMEDOUT && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return errno;
	rc = connect(fd, &f->to.sa, f->to.len) < 0 ? errno : 0;
	sl_sock_note(note, fd);
	if (f->expect != ETIMEDOUT)
		return rc;
	return rc == EINPROGRESS ? -sl_sock_finish(fd, 20) : rc;
}

static void tell_fail(const struct fail *f, const struct sl_sock_note *note, int err)
{
	struct sl_line line;

	sl_line_start(&line, "sock");
	sl_line_self(&line);
	sl_line_note(&line, note);
	sl_line_addr(&line, "to", &f->to);
	sl_line_u64(&line, "sent", 0);
	sl_line_u64(&line, "received", 0);
	sl_line_add(&line, "step", "%s", err ? "connect" : "-");
	sl_line_errno(&line, "errno", err);
	sl_line_end(&line);
}

static int fail_many(const struct fail *f)
{
	uint64_t count = sl_or(f->o->count, 1), as_expected = 0, start = sl_now_ns();
	int other = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct sl_sock_note note = { 0 };
		int err;

		sl_pace(start, i, sl_or(f->o->rate, 0));
		err = fail_once(f, &note);
		if (err == f->expect || (f->expect == ENETUNREACH && err == EHOSTUNREACH))
			as_expected++;
		else
			other = err;
		if (!f->o->quiet)
			tell_fail(f, &note, err);
	}
	tell_total(count, as_expected);
	if (as_expected == count)
		return 0;
	return other ? sl_fail("connect", other) : -EISCONN;
}

static int tcp_fail(const struct sl_opts *o)
{
	struct fail f = { .o = o, .keep = { -1, -1 } };
	const char *kind = o->kind ? o->kind : "refused";
	int rc = 1;

	if (o->n_servers > 0)
		f.to = o->server[0];
	for (size_t i = 0; i < ARRAY_SIZE(fails); i++) {
		if (strcmp(fails[i].name, kind) != 0)
			continue;
		f.expect = fails[i].expect;
		rc = fails[i].prepare(&f);
	}
	if (rc == 0)
		rc = fail_many(&f);
	else if (rc < 0)
		rc = sl_fail("prepare", -rc);
	else
		rc = sl_usage("--kind: refused, unreachable or timeout-nonblock");
	sl_cleanup_fd(&f.keep[0]);
	sl_cleanup_fd(&f.keep[1]);
	return rc;
}

/* The child of tcp-exit: as few calls as can be. Its exit code is the errno. */
static void exit_child(const struct sl_opts *o, uint32_t n) __attribute__((noreturn));

static void exit_child(const struct sl_opts *o, uint32_t n)
{
	struct sl_addr to = sl_sock_dest(o, &o->server[n % o->n_servers]);
	struct sl_ident ident;
	int fd;

	if (o->identify)
		ident = sl_ident_self(n);
	fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, &to.sa, to.len) < 0)
		_exit(errno & 127);
	if (o->identify && send(fd, &ident, sizeof(ident), MSG_NOSIGNAL) != sizeof(ident))
		_exit(EIO);
	_exit(0);
}

static int tcp_exit(const struct sl_opts *o)
{
	uint64_t count = sl_or(o->count, 1), jobs = sl_or(o->jobs, 1);
	uint64_t running = 0, ok = 0, start = sl_now_ns();
	int first = 0;

	if (o->n_servers == 0 || jobs == 0)
		return sl_usage("%s needs --server and --jobs above 0", o->cmd);
	for (uint64_t i = 0; i < count || running > 0;) {
		int code;

		if (i < count && running < jobs) {
			pid_t pid;

			sl_pace(start, i, sl_or(o->rate, 0));
			pid = sl_fork();
			if (pid == 0)
				exit_child(o, (uint32_t)i);
			if (pid < 0)
				return sl_fail("fork", -pid);
			running++;
			i++;
			continue;
		}
		code = sl_reap_one(o->quiet);
		running--;
		ok += code == 0;
		if (code && !first)
			first = code < 0 ? -code : code;
	}
	tell_total(count, ok);
	return first ? sl_fail("a child", first) : 0;
}

const struct sl_cmd sl_churn_cmds[] = {
	{ .name = "tcp-churn",
	  .run = tcp_churn,
	  .options = "server count rate bytes via v6 mapped mptcp rst connect uring bind quiet",
	  .help = "COUNT (100) connections one after the other, closed at once" },
	{ .name = "tcp-fail",
	  .run = tcp_fail,
	  .options = "server kind count rate quiet",
	  .help = "connects that must fail. --kind refused (ECONNREFUSED), unreachable "
		  "(ENETUNREACH or EHOSTUNREACH), timeout-nonblock (nothing within 20 ms, "
		  "shown as ETIMEDOUT); the target is made here unless --server is given" },
	{ .name = "tcp-exit",
	  .run = tcp_exit,
	  .options = "server count jobs rate identify v6 mapped quiet",
	  .help = "COUNT children, JOBS at once: connect and _exit at once; exit= of "
		  "what=child is the child's errno. More than one --server: taken in turn" },
	{ 0 },
};
