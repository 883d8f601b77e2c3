/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The UDP server: datagrams and bytes by source. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "chan.h"
#include "sock.h"
#include "truth.h"

#define SOURCES_MAX 1024

struct source {
	struct sl_addr addr;
	uint64_t datagrams;
	uint64_t bytes;
};

struct tally {
	struct source sources[SOURCES_MAX];
	unsigned int n;
	struct source other; /* what came from sources beyond the table */
	uint64_t datagrams;
	uint64_t received;
	uint64_t sent;
};

static struct source *find(struct tally *t, const struct sl_addr *addr)
{
	for (unsigned int i = 0; i < t->n; i++) {
		if (t->sources[i].addr.len == addr->len &&
		    !memcmp(&t->sources[i].addr.sa, &addr->sa, addr->len))
			return &t->sources[i];
	}
	if (t->n == SOURCES_MAX)
		return &t->other;
	t->sources[t->n].addr = *addr;
	return &t->sources[t->n++];
}

static int take_one(const struct sl_opts *o, int fd, struct tally *t)
{
	static char buf[SL_CHUNK];
	struct sl_addr from = { .len = sizeof(from.in6) };
	ssize_t n = recvfrom(fd, buf, sizeof(buf), 0, &from.sa, &from.len);
	struct source *source;

	if (n < 0)
		return errno == EINTR || errno == ECONNREFUSED ? 0 : sl_fail("recvfrom", errno);
	source = find(t, &from);
	source->datagrams++;
	source->bytes += (uint64_t)n;
	t->datagrams++;
	t->received += (uint64_t)n;
	if (!o->echo)
		return 0;
	if (sendto(fd, buf, (size_t)n, 0, &from.sa, from.len) < 0)
		return sl_fail("sendto", errno);
	t->sent += (uint64_t)n;
	return 0;
}

static void tell_source(const struct source *source)
{
	struct sl_line line;

	sl_line_start(&line, "source");
	sl_line_addr(&line, "remote", &source->addr);
	sl_line_add(&line, "mapped", "%d", sl_addr_is_mapped(&source->addr));
	sl_line_u64(&line, "datagrams", source->datagrams);
	sl_line_u64(&line, "received", source->bytes);
	sl_line_end(&line);
}

static void tell(const struct tally *t, int fd)
{
	struct sl_line line;

	for (unsigned int i = 0; i < t->n; i++)
		tell_source(&t->sources[i]);
	if (t->other.datagrams > 0)
		tell_source(&t->other);
	sl_line_start(&line, "total");
	sl_line_u64(&line, "sources", t->n);
	sl_line_u64(&line, "datagrams", t->datagrams);
	sl_line_u64(&line, "received", t->received);
	sl_line_u64(&line, "sent", t->sent);
	sl_line_u64(&line, "dropped", sl_sock_drops(fd));
	sl_line_end(&line);
}

static int udp_server(const struct sl_opts *o)
{
	uint64_t count = sl_or(o->count, o->until_eof ? SL_UNSET : 1);
	static struct tally t;
	_cleanup_fd_ int fd = -1;
	bool draining = false;
	int rc = sl_sock_listen(o, SOCK_DGRAM, &fd);

	if (rc < 0)
		return rc;
	while (t.datagrams < count) {
		rc = sl_sock_next(o, fd, &draining);
		if (rc <= 0)
			break;
		rc = take_one(o, fd, &t);
		if (rc < 0)
			break;
	}
	tell(&t, fd);
	return rc < 0 ? rc : 0;
}

const struct sl_cmd sl_udp_server_cmds[] = {
	{ .name = "udp-server",
	  .run = udp_server,
	  .options = "listen count echo until-eof",
	  .help = "takes COUNT datagrams; a what=source line for each of up to 1024 sources "
		  "(remote=- sums the rest)" },
	{ 0 },
};
