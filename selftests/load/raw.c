/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw IP sockets of a protocol nobody uses (253, RFC 3692). A raw socket also gets a
 * copy of what goes the other way on loopback, so each packet says what it is in its
 * first byte, and both sides skip the other kind; skipped bytes are counted apart.
 */
#include <errno.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "chan.h"
#include "sock.h"
#include "truth.h"

#define QUERY 'Q'
#define REPLY 'R'
#define RAW_PROTO 253
#define RAW_MAX 65000

struct raw {
	const struct sl_opts *o;
	int fd;
	struct sl_addr to;
	size_t bytes; /* payload, headers apart */
	uint64_t datagrams;
	uint64_t sent; /* as handed over: with the header for --hdrincl */
	uint64_t replies;
	uint64_t received; /* as read: IPv4 has its header in front */
	uint64_t skipped;
};

static void tell(const struct raw *r, const char *step, int err)
{
	struct sl_sock_note note = { 0 };
	struct sl_line line;

	if (r->fd >= 0)
		sl_sock_note(&note, r->fd);
	sl_line_start(&line, "sock");
	sl_line_self(&line);
	sl_line_note(&line, &note);
	sl_line_addr(&line, "to", &r->to);
	sl_line_u64(&line, "datagrams", r->datagrams);
	sl_line_u64(&line, "sent", r->sent);
	sl_line_u64(&line, "replies", r->replies);
	sl_line_u64(&line, "received", r->received);
	sl_line_u64(&line, "skipped", r->skipped);
	sl_line_add(&line, "step", "%s", err ? step : "-");
	sl_line_errno(&line, "errno", err);
	sl_line_end(&line);
}

/* Where the payload starts in what a raw socket reads. */
static size_t header_len(int family, const char *buf)
{
	return family == AF_INET ? (size_t)(buf[0] & 15) * 4 : 0;
}

/* Reads one packet. 1 when it is of the wanted kind, 0 when not, -errno. */
static int read_one(struct raw *r, char kind, char *buf, size_t size, ssize_t *len,
		    struct sl_addr *from)
{
	size_t skip;

	from->len = sizeof(from->in6);
	*len = recvfrom(r->fd, buf, size, 0, &from->sa, &from->len);
	if (*len < 0)
		return -errno;
	r->received += (uint64_t)*len;
	skip = header_len(r->to.sa.sa_family, buf);
	if ((size_t)*len > skip && buf[skip] == kind)
		return 1;
	r->skipped += (uint64_t)*len;
	return 0;
}

static int read_reply(struct raw *r)
{
	static char buf[SL_CHUNK];
	struct sl_addr from;
	ssize_t len;
	int rc;

	do {
		rc = read_one(r, REPLY, buf, sizeof(buf), &len, &from);
	} while (rc == 0);
	if (rc > 0)
		r->replies++;
	return rc < 0 ? rc : 0;
}

/* The kernel fills in length, checksum and, since it is 0, the source and the id. */
static size_t put_header(const struct raw *r, char *buf)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = (uint8_t)sl_or(r->o->proto, RAW_PROTO),
		.saddr = r->o->bind.len ? r->o->bind.in.sin_addr.s_addr : 0,
		.daddr = r->to.in.sin_addr.s_addr,
	};

	memcpy(buf, &ip, sizeof(ip));
	return sizeof(ip);
}

static int send_all(struct raw *r)
{
	_cleanup_free_ char *buf = calloc(1, sizeof(struct iphdr) + r->bytes);
	size_t skip = 0, len;
	ssize_t n;
	int rc = 0;

	if (!buf)
		return -ENOMEM;
	if (r->o->hdrincl)
		skip = put_header(r, buf);
	memcpy(buf + skip, sl_payload(), r->bytes);
	buf[skip] = QUERY;
	len = skip + r->bytes;
	for (uint64_t i = 0; rc == 0 && i < sl_or(r->o->count, 1); i++) {
		n = r->o->connected ? send(r->fd, buf, len, 0)
				    : sendto(r->fd, buf, len, 0, &r->to.sa, r->to.len);
		if (n < 0)
			return -errno;
		r->datagrams++;
		r->sent += (uint64_t)n;
		rc = r->o->echo ? read_reply(r) : 0;
	}
	return rc;
}

static int open_raw(struct raw *r, const struct sl_addr *addr)
{
	int protocol = r->o->hdrincl ? IPPROTO_RAW : (int)sl_or(r->o->proto, RAW_PROTO);

	r->to = *addr;
	sl_addr_set_port(&r->to, 0);
	return sl_sock_new(addr->sa.sa_family, SOCK_RAW, protocol, &r->fd);
}

static int raw_send(const struct sl_opts *o)
{
	struct raw r = { .o = o, .fd = -1, .bytes = sl_or(o->bytes, 16) };
	const char *step = "socket";
	int rc;

	if (o->n_servers == 0 || r.bytes == 0 || r.bytes > RAW_MAX)
		return sl_usage("%s needs --server and 1 to %d bytes", o->cmd, RAW_MAX);
	if (o->hdrincl && (o->echo || o->server[0].sa.sa_family != AF_INET))
		return sl_usage("--hdrincl: IPv4, and no --echo (IPPROTO_RAW can't receive)");
	rc = open_raw(&r, &o->server[0]);
	if (rc == 0) {
		step = "bind";
		rc = sl_sock_bind(o, r.to.sa.sa_family, r.fd);
	}
	if (rc == 0 && o->connected) {
		step = "connect";
		rc = connect(r.fd, &r.to.sa, r.to.len) < 0 ? -errno : 0;
	}
	if (rc == 0) {
		step = "send";
		rc = send_all(&r);
	}
	tell(&r, step, -rc);
	sl_cleanup_fd(&r.fd);
	return rc < 0 ? sl_fail(step, -rc) : 0;
}

static int echo_one(struct raw *r, char *buf, ssize_t len, const struct sl_addr *from)
{
	size_t skip = header_len(r->to.sa.sa_family, buf);
	ssize_t n;

	buf[skip] = REPLY;
	n = sendto(r->fd, buf + skip, (size_t)len - skip, 0, &from->sa, from->len);
	if (n < 0)
		return -errno;
	r->sent += (uint64_t)n;
	return 0;
}

static int serve(struct raw *r)
{
	uint64_t count = sl_or(r->o->count, r->o->until_eof ? SL_UNSET : 1);
	static char buf[SL_CHUNK];
	struct sl_addr from;
	bool draining = false;
	ssize_t len;
	int rc;

	while (r->datagrams < count) {
		rc = sl_sock_next(r->o, r->fd, &draining);
		if (rc <= 0)
			return rc;
		rc = read_one(r, QUERY, buf, sizeof(buf), &len, &from);
		if (rc < 0)
			return rc;
		r->datagrams += (uint64_t)rc;
		if (rc > 0 && r->o->echo)
			rc = echo_one(r, buf, len, &from);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int raw_server(const struct sl_opts *o)
{
	struct raw r = { .o = o, .fd = -1 };
	struct sl_sock_note note = { 0 };
	struct sl_line line;
	int rc;

	if (o->listen.len == 0)
		return sl_usage("%s needs --listen", o->cmd);
	rc = open_raw(&r, &o->listen);
	if (rc == 0)
		sl_sock_buffer(r.fd);
	if (rc == 0 && bind(r.fd, &r.to.sa, r.to.len) < 0)
		rc = -errno;
	if (rc == 0) {
		sl_sock_note(&note, r.fd);
		sl_line_start(&line, "listen");
		sl_line_add(&line, "port", "%d", 0);
		sl_line_self(&line);
		sl_line_note(&line, &note);
		sl_line_end(&line);
		rc = serve(&r);
	}
	sl_line_start(&line, "total");
	sl_line_u64(&line, "datagrams", r.datagrams);
	sl_line_u64(&line, "received", r.received);
	sl_line_u64(&line, "skipped", r.skipped);
	sl_line_u64(&line, "sent", r.sent);
	sl_line_u64(&line, "dropped", r.fd >= 0 ? sl_sock_drops(r.fd) : 0);
	sl_line_end(&line);
	sl_cleanup_fd(&r.fd);
	return rc < 0 ? sl_fail("raw-server", -rc) : 0;
}

const struct sl_cmd sl_raw_cmds[] = {
	{ .name = "raw-send",
	  .run = raw_send,
	  .options = "server bytes count proto hdrincl echo connected bind",
	  .help = "COUNT packets of protocol PROTO with BYTES of payload; --echo reads one reply "
		  "for each. With --bind to another address than the server's, nothing is "
		  "skipped. received= counts IPv4 headers, as read" },
	{ .name = "raw-server",
	  .run = raw_server,
	  .options = "listen count proto echo until-eof",
	  .help = "counts the packets of raw-send; datagrams= queries, skipped= other bytes" },
	{ 0 },
};
