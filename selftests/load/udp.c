/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UDP clients: udp-send and udp-connect. */
#include "udp.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc.h"
#include "sock.h"
#include "truth.h"

static int failed(struct sl_flow *f, const char *step, int rc)
{
	f->step = step;
	f->err = -rc;
	if (rc == -ENOSYS && !strcmp(step, "send"))
		return sl_skip("io_uring", -rc);
	return sl_fail(step, -rc);
}

static int take(struct sl_flow *f, uint64_t n)
{
	const struct sl_udp_take *way = f->o->recv ? sl_udp_take_find(f->o->recv) : NULL;
	static char buf[SL_CHUNK];

	for (uint64_t i = 0; way && i < n; i++) {
		ssize_t len = way->recv(f, buf, sizeof(buf));

		if (len < 0)
			return failed(f, "recv", -errno);
		f->replies++;
		f->received += (uint64_t)len;
	}
	return 0;
}

static int exchange(struct sl_flow *f)
{
	const struct sl_udp_via *way = sl_udp_via_find(f->o->via);
	uint64_t count = sl_or(f->o->count, 1);

	while (f->datagrams < count) {
		int n = way->send(f, count - f->datagrams);
		int rc;

		if (n < 0)
			return failed(f, "send", n);
		f->datagrams += (uint64_t)n;
		f->sent += (uint64_t)n * f->bytes;
		rc = take(f, (uint64_t)n);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void tell(const struct sl_flow *f, const char *what, const struct sl_sock_note *note)
{
	struct sl_line line;

	sl_line_start(&line, what);
	sl_line_self(&line);
	sl_line_note(&line, note);
	for (unsigned int i = 0; i < f->n_peers; i++)
		sl_line_addr(&line, "to", &f->peers[i]);
	sl_line_u64(&line, "datagrams", f->datagrams);
	sl_line_u64(&line, "sent", f->sent);
	sl_line_u64(&line, "replies", f->replies);
	sl_line_u64(&line, "received", f->received);
	sl_line_u64(&line, "truncated", f->truncated);
	sl_line_u64(&line, "peeked", f->chan.peeked);
	sl_line_add(&line, "step", "%s", f->err ? f->step : "-");
	sl_line_errno(&line, "errno", f->err);
	sl_line_end(&line);
}

static void set_peers(struct sl_flow *f)
{
	const struct sl_opts *o = f->o;
	unsigned int n = (unsigned int)sl_or(o->peers, 1);

	f->n_peers = o->n_servers > 1 ? o->n_servers : n > 0 ? n : 1;
	for (unsigned int i = 0; i < f->n_peers; i++) {
		struct sl_addr to = o->n_servers > 1 ? o->server[i]
						     : sl_addr_next(&o->server[0], i);

		f->peers[i] = sl_sock_dest(o, &to);
	}
}

static int open_flow(struct sl_flow *f)
{
	int family = sl_sock_family(f->o, &f->o->server[0]);
	int rc = sl_sock_new(family, SOCK_DGRAM, 0, &f->chan.fd);

	if (rc < 0)
		return failed(f, "socket", rc);
	rc = sl_sock_bind(f->o, family, f->chan.fd);
	if (rc < 0)
		return failed(f, "bind", rc);
	if (!f->o->connected)
		return 0;
	rc = sl_sock_connect(f->o, f->chan.fd, &f->peers[0], NULL);
	return rc < 0 && -rc < SL_ENOFEATURE ? failed(f, "connect", rc) : rc;
}

/*
 * One datagram and gone: nothing can be told afterwards, so the line comes before, with
 * the local port still unknown (unless --bind gave it).
 */
static int exit_after_one(struct sl_flow *f, struct sl_sock_note *note)
{
	int rc;

	sl_sock_note(note, f->chan.fd);
	f->datagrams = 1;
	f->sent = f->bytes;
	tell(f, "sock", note);
	f->datagrams = 0;
	rc = sl_udp_via_find(f->o->via)->send(f, 1);
	if (rc >= 0)
		_exit(SL_EXIT_OK);
	return failed(f, "send", rc);
}

static int run_flow(struct sl_flow *f, bool send_any)
{
	struct sl_sock_note note = { 0 };
	int rc = open_flow(f);

	if (rc == 0 && f->o->exit_at_once)
		return exit_after_one(f, &note);
	if (rc == 0 && send_any)
		rc = exchange(f);
	/* Only now: the local address of an unbound socket comes with its first send. */
	if (f->chan.fd >= 0)
		sl_sock_note(&note, f->chan.fd);
	if (rc == 0 && f->o->hold) {
		tell(f, "open", &note);
		sl_wait_stdin();
	}
	tell(f, "sock", &note);
	sl_chan_close(&f->chan);
	sl_cleanup_fd(&f->chan.fd);
	return rc;
}

static int udp_send(const struct sl_opts *given)
{
	struct sl_opts o = *given;
	struct sl_flow f = { .o = &o, .chan = SL_CHAN_INIT, .step = "-" };
	const struct sl_udp_via *way = sl_udp_via_find(o.via);

	f.bytes = (size_t)sl_or(o.bytes, 16);
	f.chan.uring_mode = o.uring;
	if (o.n_servers == 0)
		return sl_usage("%s needs --server", o.cmd);
	if (!way || (o.recv && !sl_udp_take_find(o.recv)))
		return sl_usage("--via or --recv: no such way");
	if (f.bytes > SL_UDP_MAX || (!strcmp(way->name, "gso") && f.bytes == 0))
		return sl_usage("--bytes: at most %d, for gso at least 1", SL_UDP_MAX);
	if (o.cmsg && !way->has_control)
		return sl_usage("--cmsg needs --via sendmsg, sendmmsg or uring");
	o.connected = o.connected || way->connected;
	set_peers(&f);
	return run_flow(&f, true);
}

static int udp_connect(const struct sl_opts *given)
{
	struct sl_opts o = *given;
	struct sl_flow f = { .o = &o, .chan = SL_CHAN_INIT, .step = "-" };

	if (o.n_servers == 0)
		return sl_usage("%s needs --server", o.cmd);
	o.connected = true;
	set_peers(&f);
	return run_flow(&f, false);
}

const struct sl_cmd sl_udp_cmds[] = {
	{ .name = "udp-send",
	  .run = udp_send,
	  .options = "server bytes count via uring recv connected connect bind v6 mapped v4-on-v6 "
		     "cmsg exit-at-once peers hold",
	  .help = "COUNT datagrams of BYTES. --via sendto send sendmsg sendmmsg gso uring splice "
		  "sendfile (send, splice and sendfile connect first); --recv recvfrom recvmmsg "
		  "recvmsg-trunc peek (one reply for each). Several --server or --peers K: the "
		  "destinations take turns; to= once for each. --exit-at-once prints its what=sock "
		  "before it sends; the exit code tells" },
	{ .name = "udp-connect",
	  .run = udp_connect,
	  .options = "server connect uring bind v6 mapped v4-on-v6 hold",
	  .help = "connects a UDP socket, sends nothing" },
	{ 0 },
};
