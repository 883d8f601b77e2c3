/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Views of sockets and processes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/sock_query.h"
#include "unit/view_world.h"

static struct sl_view_source *source;

static void setup(void)
{
	const struct sl_view_ops ops = world_view_ops();

	world_reset();
	cr_assert_eq(sl_view_source_new(&source, &ops), 0);
}

static void teardown(void)
{
	sl_view_source_free(&source);
	cr_assert_null(source);
}

TestSuite(view, .init = setup, .fini = teardown);

static struct json_object *get(struct json_object *json, const char *key)
{
	struct json_object *value = NULL;

	cr_assert(json_object_object_get_ex(json, key, &value), "no key %s", key);
	return value;
}

static const char *text(struct json_object *json, const char *key)
{
	return json_object_get_string(get(json, key));
}

static struct json_object *sock_more_json(const struct sl_sock *sock,
					  const struct sl_sock_more *more)
{
	struct json_object *json = NULL;
	struct sl_view_sock view;

	cr_assert_eq(sl_view_sock_fill(&view, sock, more, source), 0);
	cr_assert_eq(sl_object_json(&json, sl_view_sock_fields, &view), 0);
	return json;
}

static struct json_object *sock_json(const struct sl_sock *sock)
{
	return sock_more_json(sock, NULL);
}

Test(view, tables_are_sound)
{
	const struct sl_field *const tables[] = {
		sl_view_exe_fields,           sl_view_exe_list_fields,
		sl_view_process_fields,       sl_view_sock_fields,
		sl_view_process_list_fields,  sl_view_event_head_fields,
		sl_view_event_process_fields, sl_view_event_lost_fields,
	};
	const char *bad = NULL;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		cr_expect_eq(sl_fields_check(tables[i], &bad), 0, "table %zu: %s", i, bad);
}

Test(view, sock_has_the_keys_of_an_event)
{
	struct sl_sock sock = world_sock();
	struct json_object *json, *process, *exe, *lineage;

	sock.closed_ns = sock.since_ns + 2500000;
	sock.flags |= SL_SOCK_ESTABLISHED | SL_SOCK_RELEASED;
	sock.bytes_sent = 10;
	sock.bytes_received = 20;
	json = sock_json(&sock);
	process = get(json, "process");
	exe = get(process, "exe");
	lineage = get(process, "lineage");
	cr_expect_str_eq(text(json, "cookie"), "9223372036854775809");
	cr_expect_str_eq(text(json, "sandbox"), "web");
	cr_expect_str_eq(text(json, "sandbox_id"), "1");
	cr_expect_str_eq(text(json, "proto"), "tcp");
	cr_expect_str_eq(text(json, "family"), "inet");
	cr_expect_str_eq(text(json, "direction"), "out");
	cr_expect_str_eq(text(json, "state"), "closed");
	cr_expect_null(get(json, "error"));
	cr_expect_null(get(json, "name"));
	cr_expect_str_eq(text(get(json, "remote"), "addr"), "192.0.2.1");
	cr_expect_eq(json_object_get_int(get(get(json, "remote"), "port")), 443);
	cr_expect_eq(json_object_get_int(get(json, "bytes_sent")), 10);
	cr_expect_eq(json_object_get_int(get(json, "bytes_received")), 20);
	cr_expect_eq(json_object_get_int(get(json, "duration_us")), 2500);
	cr_expect_eq(json_object_get_int(get(process, "pid")), 100);
	cr_expect_eq(json_object_get_int(get(process, "ns_pid")), 7);
	cr_expect_eq(json_object_get_int(get(process, "tid")), 101);
	cr_expect_eq(json_object_get_int(get(process, "uid")), 1000);
	cr_expect_str_eq(text(process, "comm"), "curl");
	cr_expect_null(get(process, "script"));
	cr_expect_str_eq(text(exe, "path"), "/usr/bin/curl");
	cr_expect_str_eq(text(exe, "dev"), "8:1");
	cr_expect_eq(json_object_get_int(get(exe, "ino")), 1002);
	cr_expect_null(get(exe, "sha256"));
	cr_assert_eq(json_object_array_length(lineage), 1);
	cr_expect_str_eq(json_object_get_string(json_object_array_get_idx(lineage, 0)),
			 "/usr/bin/sh");
	cr_expect_eq(json_object_get_int(get(process, "lineage_outside")), 1);
	cr_expect_not(json_object_object_get_ex(json, "opener", NULL));
	cr_expect_not(json_object_object_get_ex(json, "user", NULL));
	cr_expect_not(json_object_object_get_ex(json, "peer", NULL));
	json_object_put(json);
}

Test(view, open_sock_has_no_duration)
{
	struct sl_sock sock = world_sock();
	struct json_object *json = sock_json(&sock);

	cr_expect_null(get(json, "duration_us"));
	cr_expect_not(json_object_object_get_ex(json, "closed", NULL));
	json_object_put(json);
}

Test(view, other_processes_are_shown_when_they_differ)
{
	struct sl_sock sock = world_sock();
	struct sl_sock_more more = { 0 };
	struct json_object *json;

	more.opener.tgid = 90;
	more.user = sock.owner;
	more.user.tgid = 120;
	sock.peer = sock.owner;
	sock.peer.tgid = 130;
	sock.flags |= SL_SOCK_INHERITED | SL_SOCK_PEER_KNOWN;
	json = sock_more_json(&sock, &more);
	cr_expect_eq(json_object_get_int(get(get(json, "opener"), "pid")), 90);
	cr_expect_eq(json_object_get_int(get(get(json, "user"), "pid")), 120);
	cr_expect_eq(json_object_get_int(get(get(json, "peer"), "pid")), 130);
	cr_expect_str_eq(json_object_to_json_string_ext(get(json, "flags"), 0), "[\"inherited\"]");
	json_object_put(json);
}

struct state_case {
	enum sl_view_state state;
	unsigned int flags;
	unsigned char tcp_state;
	int error;
	bool closed;
};

Test(view, states)
{
	static const struct state_case cases[] = {
		{ SL_VIEW_OPEN, 0, TCP_CLOSE, 0, false },
		{ SL_VIEW_LISTENING, SL_SOCK_LISTENING, TCP_LISTEN, 0, false },
		{ SL_VIEW_CONNECTING, SL_SOCK_CONNECTED, TCP_SYN_SENT, 0, false },
		{ SL_VIEW_ESTABLISHED, SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED, TCP_ESTABLISHED, 0,
		  false },
		{ SL_VIEW_CLOSING, SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED, TCP_CLOSE_WAIT, 0,
		  false },
		{ SL_VIEW_REFUSED, SL_SOCK_CONNECTED, TCP_CLOSE, ECONNREFUSED, false },
		{ SL_VIEW_REFUSED, SL_SOCK_CONNECTED, TCP_CLOSE, ECONNREFUSED, true },
		{ SL_VIEW_TIMED_OUT, SL_SOCK_CONNECTED, TCP_CLOSE, ETIMEDOUT, true },
		{ SL_VIEW_UNREACHABLE, SL_SOCK_CONNECTED, TCP_CLOSE, EHOSTUNREACH, true },
		{ SL_VIEW_RESET, SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED, TCP_CLOSE, ECONNRESET,
		  true },
		{ SL_VIEW_FAILED, SL_SOCK_CONNECTED, TCP_CLOSE, 0, true },
		{ SL_VIEW_ABORTED, SL_SOCK_CONNECTED, TCP_SYN_SENT, 0, true },
		{ SL_VIEW_CLOSED, SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED, TCP_ESTABLISHED, 0,
		  true },
		{ SL_VIEW_CLOSED, 0, TCP_CLOSE, 0, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_sock sock = world_sock();

		sock.flags = cases[i].flags | (cases[i].closed ? SL_SOCK_RELEASED : 0);
		sock.state = cases[i].tcp_state;
		sock.error = cases[i].error;
		cr_expect_str_eq(sl_view_state_name(sl_view_sock_state(&sock)),
				 sl_view_state_name(cases[i].state), "case %zu", i);
	}
}

Test(view, remote_has_a_name)
{
	struct sl_sock sock = world_sock();
	struct json_object *json;

	sock.name = 1;
	json = sock_json(&sock);
	cr_expect_str_eq(text(json, "name"), "registry.example.org");
	json_object_put(json);
	sock.name = 2; /* forgotten */
	json = sock_json(&sock);
	cr_expect_null(get(json, "name"));
	json_object_put(json);
}

Test(view, errors_have_names)
{
	struct sl_sock sock = world_sock();
	struct json_object *json;

	sock.error = ECONNREFUSED;
	json = sock_json(&sock);
	cr_expect_str_eq(text(json, "error"), "ECONNREFUSED");
	json_object_put(json);
	sock.error = 100000;
	json = sock_json(&sock);
	cr_expect_str_eq(text(json, "error"), "errno 100000");
	json_object_put(json);
}

Test(view, udp_connected_without_a_datagram_is_a_probe)
{
	struct sl_sock sock = world_sock();
	struct sl_view_sock view;

	sock.type = SOCK_DGRAM;
	sock.protocol = IPPROTO_UDP;
	cr_assert_eq(sl_view_sock_fill(&view, &sock, NULL, source), 0);
	cr_expect_not(view.flags & SL_VIEW_PROBE, "it may still send something");
	cr_expect_eq(view.state, SL_VIEW_CONNECTED);
	sock.closed_ns = 9000000000;
	cr_assert_eq(sl_view_sock_fill(&view, &sock, NULL, source), 0);
	cr_expect(view.flags & SL_VIEW_PROBE);
	cr_expect_str_eq(view.proto, "udp");
	sock.bytes_sent = 1;
	cr_assert_eq(sl_view_sock_fill(&view, &sock, NULL, source), 0);
	cr_expect_not(view.flags & SL_VIEW_PROBE);
}

Test(view, directions)
{
	struct sl_sock sock = world_sock();

	cr_expect_eq(sl_view_sock_direction(&sock), SL_VIEW_DIRECTION_OUT);
	sock.flags = SL_SOCK_ACCEPTED | SL_SOCK_ESTABLISHED;
	cr_expect_eq(sl_view_sock_direction(&sock), SL_VIEW_DIRECTION_IN);
	sock.flags = SL_SOCK_LISTENING;
	cr_expect_eq(sl_view_sock_direction(&sock), SL_VIEW_DIRECTION_LISTEN);
	sock.flags = SL_SOCK_CONNECTED | SL_SOCK_PREEXISTING;
	sock.since_ns = 0;
	cr_expect_eq(sl_view_sock_direction(&sock), SL_VIEW_DIRECTION_NONE);
	sock.flags = SL_SOCK_SENT;
	sock.type = SOCK_DGRAM;
	cr_expect_eq(sl_view_sock_direction(&sock), SL_VIEW_DIRECTION_DATAGRAM);
}

Test(view, unknown_ids_are_absent)
{
	struct sl_sock sock = world_sock();
	struct json_object *json;

	sock.owner.exe = 15;
	sock.owner.lineage = 15;
	sock.owner.sandbox = 9;
	json = sock_json(&sock);
	cr_expect_null(get(get(json, "process"), "exe"));
	cr_expect_eq(json_object_array_length(get(get(json, "process"), "lineage")), 0);
	cr_expect_null(get(json, "sandbox"));
	cr_expect_str_eq(text(json, "sandbox_id"), "9");
	json_object_put(json);
}

Test(view, hostile_text_stays_on_one_line)
{
	struct sl_sock sock = world_sock();
	struct sl_view_sock view;
	struct sl_output output = { 0 };
	char *buf = NULL;
	size_t len = 0;

	world_exe(2, "/tmp/a\nb\033[31m\xff\u202e");
	memcpy(sock.owner.comm, "\n\033]0;x\a\xfe-0123456789", SL_COMM_LEN);
	cr_assert_eq(sl_view_sock_fill(&view, &sock, NULL, source), 0);
	output.file = open_memstream(&buf, &len);
	cr_assert_eq(sl_print_record(&output, sl_view_process_fields, &view.process), 0);
	fclose(output.file);
	cr_expect_null(strchr(buf, '\033'));
	cr_expect_null(strchr(buf, '\a'));
	cr_expect_not_null(strstr(buf, "path: /tmp/a\\x0ab\\x1b[31m\\xff\\u{202e}\n"), "%s", buf);
	cr_expect_not_null(strstr(buf, "comm: \\x0a\\x1b]0;x\\x07\\xfe-0123456\n"), "%s", buf);
	free(buf);
}

Test(view, sandbox_slot_gets_a_new_name)
{
	cr_expect_str_eq(sl_view_source_sandbox(source, 1), "web");
	strcpy(world.sandboxes[1], "ci");
	cr_expect_str_eq(sl_view_source_sandbox(source, 1), "web");
	sl_view_source_forget_sandbox(source, 1);
	cr_expect_str_eq(sl_view_source_sandbox(source, 1), "ci");
	cr_expect_null(sl_view_source_sandbox(source, 0));
}

static int digest_of(unsigned int exe_id, struct sl_digest *out, void *arg)
{
	*out = (struct sl_digest){ .error = *(enum sl_digest_error *)arg };
	out->sha256[0] = (unsigned char)exe_id;
	return 0;
}

Test(view, digest_is_taken_up_when_it_has_come)
{
	enum sl_digest_error error = SL_DIGEST_PENDING;
	const struct sl_view_exe *exe;

	sl_view_source_digests(source, digest_of, &error);
	cr_assert_eq(sl_view_source_exe(source, 2, &exe), 0);
	cr_expect_str_eq(exe->sha256, "");
	cr_expect_str_eq(exe->sha256_error, "pending");
	error = SL_DIGEST_NONE;
	cr_assert_eq(sl_view_source_exe(source, 2, &exe), 0);
	cr_expect_eq(strlen(exe->sha256), 64);
	cr_expect_eq(strncmp(exe->sha256, "0200", 4), 0);
	cr_expect_null(exe->sha256_error);
	error = SL_DIGEST_GONE;
	cr_assert_eq(sl_view_source_exe(source, 2, &exe), 0);
	cr_expect_eq(strlen(exe->sha256), 64, "what is known stays");
}

Test(view, ends_of_tcp_are_exact)
{
	struct sl_sock sock = world_sock();
	struct sl_sock_ends ends = { .local = sock.local, .remote = sock.remote };

	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 3);
	ends.netns_cookie = 2;
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 0);
	ends.netns_cookie = 1;
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 3);
	ends.remote = world_endpoint("192.0.2.1:444");
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 0);
}

Test(view, ends_of_udp_may_be_wildcards)
{
	struct sl_sock sock = world_sock();
	struct sl_sock_ends ends = { .local = sock.local, .remote = sock.remote, .udp = true };

	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 0, "that is TCP");
	sock.type = SOCK_DGRAM;
	sock.protocol = IPPROTO_UDP;
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 3);
	sock.local = world_endpoint("0.0.0.0:40000");
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 2);
	sock.remote = world_endpoint("192.0.2.9:53");
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 0, "connected elsewhere");
	sock.flags = SL_SOCK_SENT;
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 1);
	sock.local = world_endpoint("0.0.0.0:40001");
	cr_expect_eq(sl_sock_ends_match(&ends, &sock), 0);
}
