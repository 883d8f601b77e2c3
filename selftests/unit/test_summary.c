/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table at the end of a run. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "run/summary.h"
#include "unit/view_world.h"

static struct sl_view_source *source;
static struct sl_summary *summary;

static void setup(void)
{
	const struct sl_view_ops ops = world_view_ops();

	world_reset();
	cr_assert_eq(sl_view_source_new(&source, &ops), 0);
	cr_assert_eq(sl_summary_new(&summary), 0);
}

static void teardown(void)
{
	sl_summary_free(&summary);
	sl_view_source_free(&source);
}

TestSuite(summary, .init = setup, .fini = teardown);

static void add_event(struct sl_event_sock event)
{
	struct sl_view_event_parts parts;
	struct sl_view_event view;

	cr_assert_eq(sl_view_event_fill(&view, &parts, &event.head, source), 0);
	sl_summary_add(&view, summary);
}

static void add_sock(const struct sl_sock *sock)
{
	add_event(world_sock_event(SL_EVENT_CLOSE, sock));
}

static void add(unsigned int flags, const char *local, const char *remote, unsigned int bytes)
{
	struct sl_sock sock = world_sock();

	sock.flags = flags | SL_SOCK_ESTABLISHED | SL_SOCK_RELEASED;
	sock.local = world_endpoint(local);
	sock.remote = world_endpoint(remote);
	sock.bytes_sent = bytes;
	add_sock(&sock);
}

/* Whether a line of the table has all these words, blanks between them. */
static bool has_row(const char *table, const char *words)
{
	_cleanup_free_ char *copy = strdup(table);
	char *save = NULL;

	cr_assert_not_null(copy);
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *out = line;

		for (const char *in = line; *in; in++)
			if (*in != ' ' || in[1] != ' ')
				*out++ = *in;
		*out = '\0';
		if (strstr(line, words))
			return true;
	}
	return false;
}

static char *printed(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&text, &len);

	cr_assert_not_null(file);
	cr_assert_eq(sl_summary_print(summary, 0, file), 0);
	fclose(file);
	return text;
}

/* Clients' ports are of no interest, the server's is. */
Test(summary, inbound_rows_show_the_local_port)
{
	_cleanup_free_ char *text = NULL;

	add(SL_SOCK_ACCEPTED, "10.0.0.1:80", "192.0.2.1:40001", 1);
	add(SL_SOCK_ACCEPTED, "10.0.0.1:80", "192.0.2.1:40002", 2);
	add(SL_SOCK_ACCEPTED, "10.0.0.1:81", "192.0.2.1:40003", 4);
	add(SL_SOCK_ACCEPTED, "10.0.0.1:80", "[2001:db8::1]:40004", 8);
	text = printed();
	cr_expect(has_row(text, "tcp in 10.0.0.1:80 192.0.2.1 2 3 B"), "%s", text);
	cr_expect(has_row(text, "tcp in 10.0.0.1:81 192.0.2.1 1 4 B"), "%s", text);
	cr_expect(has_row(text, "tcp in 10.0.0.1:80 2001:db8::1 1 8 B"), "%s", text);
	cr_expect_not(has_row(text, ":4000"), "%s", text);
}

Test(summary, outbound_rows_show_the_remote_port)
{
	_cleanup_free_ char *text = NULL;

	add(SL_SOCK_CONNECTED, "10.0.0.1:40001", "192.0.2.1:443", 1);
	add(SL_SOCK_CONNECTED, "10.0.0.1:40002", "192.0.2.1:443", 2);
	add(SL_SOCK_CONNECTED, "10.0.0.1:40003", "192.0.2.1:444", 4);
	text = printed();
	cr_expect(has_row(text, "tcp out - 192.0.2.1:443 2 3 B"), "%s", text);
	cr_expect(has_row(text, "tcp out - 192.0.2.1:444 1 4 B"), "%s", text);
	cr_expect_not(has_row(text, ":4000"), "%s", text);
}

/* By name where one is known, else what the application asked for. */
Test(summary, remote_ends_as_the_application_knows_them)
{
	_cleanup_free_ char *text = NULL;
	struct sl_sock sock = world_sock();
	struct sl_event_sock event;

	sock.flags = SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED | SL_SOCK_RELEASED;
	sock.bytes_sent = 3;
	sock.remote = world_endpoint("198.18.0.1:443");
	sock.name = 1;
	add_sock(&sock);
	sock.name = 0;
	sock.flags |= SL_SOCK_MORE;
	sock.remote = world_endpoint("127.0.0.1:53");
	event = world_sock_event(SL_EVENT_CLOSE, &sock);
	event.more.original = world_endpoint("192.0.2.53:53");
	add_event(event);
	text = printed();
	cr_expect(has_row(text, "tcp out - 192.0.2.53:53 1 3 B"), "%s", text);
	cr_expect(has_row(text, "tcp out - registry.example.org:443 1 3 B"), "%s", text);
}

/* Who only receives datagrams has a local end and no remote one: many may have sent. */
Test(summary, datagrams_that_came_are_inbound)
{
	_cleanup_free_ char *text = NULL;
	struct sl_sock sock = world_sock();

	sock.type = SOCK_DGRAM;
	sock.protocol = IPPROTO_UDP;
	sock.flags = SL_SOCK_BOUND | SL_SOCK_RELEASED;
	sock.local = world_endpoint("10.0.0.1:53");
	sock.remote = (struct sl_endpoint){ 0 };
	sock.bytes_sent = 0;
	sock.bytes_received = 5;
	add_sock(&sock);
	sock.bytes_sent = 7;
	sock.flags |= SL_SOCK_SENT;
	add_sock(&sock);
	text = printed();
	cr_expect(has_row(text, "udp in 10.0.0.1:53 - 1 0 B 5 B"), "%s", text);
	cr_expect(has_row(text, "udp out - - 1 7 B 5 B"), "%s", text);
}

/* As getaddrinfo() opens one for each address, to sort them. */
Test(summary, sockets_that_were_only_connected_are_unused)
{
	_cleanup_free_ char *text = NULL;
	struct sl_sock sock = world_sock();

	sock.type = SOCK_DGRAM;
	sock.protocol = IPPROTO_UDP;
	sock.flags = SL_SOCK_CONNECTED | SL_SOCK_RELEASED;
	sock.remote = world_endpoint("192.0.2.1:443");
	sock.bytes_sent = sock.bytes_received = 0;
	sock.closed_ns = 9000000000;
	add_sock(&sock);
	sock.bytes_sent = 4;
	add_sock(&sock);
	text = printed();
	cr_expect(strstr(text, "sluice: 2 sockets, 1 of them unused\n"), "%s", text);
	cr_expect(has_row(text, "udp out - 192.0.2.1:443 1 4 B"), "%s", text);
}

/* As a raw socket's, whose sends name their destination where no hook looks. */
Test(summary, unknown_ends_are_dashes)
{
	_cleanup_free_ char *text = NULL;

	add(0, "0.0.0.0:0", "0.0.0.0:0", 1);
	text = printed();
	cr_expect(has_row(text, " - - 1 1 B"), "%s", text);
}
