/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two ends or two owners: self-connect and port-share. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc.h"
#include "sock.h"
#include "stream.h"

/* Sends from one stream, reads to the end on the other. */
static int transfer(struct sl_stream *from, struct sl_stream *to, const struct sl_opts *o)
{
	int rc = sl_stream_send(from, o, sl_or(o->bytes, 16), sl_or(o->count, 1));

	if (rc == 0 && shutdown(from->fd, SHUT_WR) < 0)
		rc = sl_fail("shutdown", errno);
	return rc == 0 ? sl_stream_drain(to, o) : rc;
}

static int self_connect(const struct sl_opts *given)
{
	struct sl_stream client = SL_STREAM_INIT, server = SL_STREAM_INIT;
	struct sl_opts o = *given;
	_cleanup_fd_ int fd = -1;
	int rc, conn;

	/* One thread does both ends: what is sent has to fit into the buffers. */
	if (sl_or(o.bytes, 16) > SL_CHUNK || sl_or(o.count, 1) > 1)
		return sl_usage("%s: at most %d bytes once", o.cmd, SL_CHUNK);
	if (o.listen.len == 0)
		(void)sl_addr_parse("127.0.0.1:0", &o.listen);
	rc = sl_sock_listen(&o, SOCK_STREAM, &fd);
	if (rc < 0)
		return rc;
	(void)sl_addr_local(fd, &o.server[0]);
	rc = sl_stream_open(&client, &o, &o.server[0]);
	if (rc < 0)
		return sl_stream_end(&client, rc);
	conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (conn < 0)
		return sl_stream_end(&client, sl_fail("accept", errno));
	sl_stream_adopt(&server, &o, conn);
	rc = transfer(&client, &server, &o);
	if (rc == 0 && o.hold) {
		sl_stream_tell_open(&client);
		sl_stream_tell_open(&server);
		sl_wait_stdin();
	}
	rc = sl_stream_end(&client, rc);
	return sl_stream_end(&server, rc);
}

/* One owner's turns: waits for the token, connects from the port, resets, passes it on. */
static int take_turns(const struct sl_opts *o, uint64_t count, int in, int out)
{
	int rc = 0;
	char token;

	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		struct sl_stream s = SL_STREAM_INIT;

		if (read(in, &token, 1) != 1)
			return -EPIPE;
		s.quiet = o->quiet;
		rc = sl_stream_open(&s, o, &o->server[0]);
		if (rc == 0 && o->identify)
			rc = sl_stream_identify(&s, (uint32_t)i);
		if (rc == 0 && o->bytes != SL_UNSET)
			rc = sl_stream_send(&s, o, o->bytes, 1);
		rc = sl_stream_end(&s, rc);
		/* The last pass may find the other one gone. */
		if (rc == 0 && write(out, &token, 1) != 1 && errno != EPIPE)
			rc = -errno;
	}
	return rc;
}

/* A source port that is free now, when --bind gives none. */
static int choose_port(struct sl_opts *o)
{
	_cleanup_fd_ int fd = -1;
	int rc;

	if (o->bind.len == 0)
		(void)sl_addr_parse(o->server[0].sa.sa_family == AF_INET6 ? "[::1]:0"
									  : "127.0.0.1:0",
				    &o->bind);
	if (sl_addr_port(&o->bind))
		return 0;
	rc = sl_sock_new(o->bind.sa.sa_family, SOCK_STREAM, 0, &fd);
	if (rc < 0)
		return rc;
	rc = sl_sock_bind(o, o->bind.sa.sa_family, fd);
	return rc < 0 ? rc : sl_addr_local(fd, &o->bind);
}

static int port_share(const struct sl_opts *given)
{
	struct sl_opts o = *given;
	int there[2], back[2];
	int rc;

	if (o.n_servers == 0)
		return sl_usage("%s needs --server", o.cmd);
	o.rst = true; /* no TIME_WAIT: the other one can bind at once */
	rc = choose_port(&o);
	if (rc < 0)
		return sl_fail("bind", -rc);
	if (pipe2(there, O_CLOEXEC) < 0 || pipe2(back, O_CLOEXEC) < 0)
		return sl_fail("pipe2", errno);
	if (write(there[1], "", 1) != 1)
		return sl_fail("write", errno);
	for (int i = 0; i < 2; i++) {
		pid_t pid = sl_fork();

		if (pid < 0)
			return sl_fail("fork", -pid);
		if (pid > 0)
			continue;
		/* Own write end of the own input away, or the end would never show. */
		close(i == 0 ? there[1] : back[1]);
		close(i == 0 ? back[0] : there[0]);
		sl_exit(take_turns(&o, sl_or(o.count, 1), i == 0 ? there[0] : back[0],
				   i == 0 ? back[1] : there[1]));
	}
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
	return sl_wait_all();
}

const struct sl_cmd sl_pair_cmds[] = {
	{ .name = "self-connect",
	  .run = self_connect,
	  .options = "listen bytes via recv connect uring v6 mapped mptcp hold",
	  .help = "both ends of a connection in one process; two what=sock lines, the "
		  "connecting one first" },
	{ .name = "port-share",
	  .run = port_share,
	  .options = "server bind count identify bytes quiet",
	  .help = "two processes use one source port in turn, COUNT times each, closing with "
		  "a reset" },
	{ 0 },
};
