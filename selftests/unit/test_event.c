/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event lines and the stream that makes them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "event/hold.h"
#include "unit/view_world.h"

static struct sl_event_stream *stream;
static char *out;
static size_t out_len;
static FILE *file;

static void start(struct sl_event_stream_options options, bool json)
{
	const struct sl_event_ops ops = world_event_ops();

	file = open_memstream(&out, &out_len);
	cr_assert_not_null(file);
	if (json)
		options.json = file;
	else
		options.text = file;
	cr_assert_eq(sl_event_stream_new(&stream, &ops, &options), 0);
}

static void teardown(void)
{
	sl_event_stream_free(&stream);
	if (file)
		fclose(file);
	free(out);
}

TestSuite(event, .init = world_reset, .fini = teardown, .timeout = 30);

static const char *output(void)
{
	cr_assert_eq(sl_event_stream_flush(stream), 0);
	return out;
}

static unsigned int line_count(void)
{
	unsigned int lines = 0;

	for (const char *at = output(); (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

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

/* The only line, which the caller puts. */
static struct json_object *only_line(void)
{
	struct json_object *json = json_tokener_parse(output());

	cr_assert_eq(line_count(), 1, "%s", out);
	cr_assert_not_null(json, "%s", out);
	return json;
}

static void feed_sock(enum sl_event_kind kind, const struct sl_sock *sock)
{
	struct sl_event_sock event = world_sock_event(kind, sock);

	sl_event_stream_feed(&event.head, stream);
}

/* Text in all the ways that it can be awkward. */
static const char hostile[] = "/a\"b\\c/\b\t\n\f\r\x01\x1f\x7f\033[2J\xff\xc3\xa9\xe2\x80\xae"
			      "\xf0\x9f\x98\x80\xf3\xa0\x81\x81\xed\xa0\x80\xc3";

/* The direct writer and the one of base/object.h must never drift apart. */
static void expect_same(const struct sl_field *fields, const void *record)
{
	_cleanup_free_ char *mine = NULL;
	_cleanup_free_ char *theirs = NULL;
	size_t mine_len, theirs_len;
	FILE *a = open_memstream(&mine, &mine_len), *b = open_memstream(&theirs, &theirs_len);
	struct sl_line line = { .file = a };

	sl_line_begin(&line);
	sl_line_fields(&line, fields, record);
	cr_assert_eq(sl_line_end(&line), 0);
	cr_assert_eq(sl_print_line(b, fields, record), 0);
	fclose(a);
	fclose(b);
	cr_expect_str_eq(mine, theirs);
}

Test(event, writer_agrees_with_the_document_writer)
{
	const struct sl_view_ops ops = world_view_ops();
	struct sl_view_source *source = NULL;
	struct sl_sock sock = world_sock();
	struct sl_sock_more more = { 0 };
	struct sl_view_sock view;

	world_exe(1, hostile);
	world_exe(2, hostile + 1);
	cr_assert_eq(sl_view_source_new(&source, &ops), 0);
	memcpy(sock.owner.comm, hostile + 5, SL_COMM_LEN);
	more.opener.tgid = 5;
	sock.peer = more.user = sock.owner;
	sock.error = EPIPE;
	sock.bytes_sent = UINT64_MAX;
	sock.closed_ns = 6123456789;
	sock.remote = world_endpoint("[2001:db8::1]:65535");
	sock.flags |= SL_SOCK_INHERITED | SL_SOCK_PEER_KNOWN | SL_SOCK_FOREIGN;
	cr_assert_eq(sl_view_sock_fill(&view, &sock, &more, source), 0);
	expect_same(sl_view_sock_fields, &view);
	view.closed_ns = UINT64_MAX;
	view.since_ns = 1;
	view.flags = 0xf0f0;
	view.direction = 77;
	expect_same(sl_view_sock_fields, &view);
	memset(&view, 0, sizeof(view));
	expect_same(sl_view_sock_fields, &view);
	sl_view_source_free(&source);
}

struct all_types {
	bool yes;
	long long low;
	signed char small;
	struct sl_strings list;
	struct sl_records records;
	char full[4];
};

Test(event, writer_knows_all_types)
{
	static const struct sl_field inner[] = {
		SL_FIELD_INT(struct all_types, small, NULL),
		{ 0 },
	};
	static const struct sl_field fields[] = {
		SL_FIELD_BOOL(struct all_types, yes, NULL),
		SL_FIELD_INT(struct all_types, low, NULL),
		SL_FIELD_LIST(struct all_types, list, NULL),
		SL_FIELD_RECORDS(struct all_types, records, NULL, inner),
		SL_FIELD_STRING(struct all_types, full, NULL),
		{ 0 },
	};
	const struct all_types parts[] = { { .small = -128 }, { .small = 1 } };
	const char *const items[] = { "", hostile, "x" };
	const struct all_types record = {
		.yes = true,
		.low = INT64_MIN,
		.list = { items, 3 },
		.records = { parts, 2, sizeof(parts[0]) },
		.full = { 'a', '\0', 'b', 'c' },
	};
	const struct all_types empty = { .full = "abcd" };

	expect_same(fields, &record);
	expect_same(fields, &empty);
}

Test(event, sock_line)
{
	struct sl_sock sock = world_sock();
	struct json_object *json;

	start((struct sl_event_stream_options){ 0 }, true);
	feed_sock(SL_EVENT_CONNECT, &sock);
	json = only_line();
	cr_expect_str_eq(text(json, "event"), "connect");
	cr_expect_str_eq(text(json, "sandbox"), "web");
	cr_expect_str_eq(text(json, "cookie"), "9223372036854775809");
	cr_expect_eq(strlen(text(json, "time")), strlen("2026-01-31T23:59:59.123456789Z"));
	cr_expect_eq(json_object_get_int(get(get(json, "process"), "pid")), 100);
	json_object_put(json);
}

Test(event, exit_line_has_status_or_signal)
{
	struct sl_event_process event = world_process_event(SL_EVENT_EXIT, 2, 2);
	struct json_object *json;

	event.exit_code = 3 << 8;
	start((struct sl_event_stream_options){ .max = 1 }, true);
	sl_event_stream_feed(&event.head, stream);
	json = only_line();
	cr_expect_str_eq(text(json, "event"), "exit");
	cr_expect_str_eq(text(json, "sandbox"), "web");
	cr_expect_eq(json_object_get_int(get(json, "exit_code")), 3);
	cr_expect_eq(json_object_get_int(get(json, "duration_us")), 2000000);
	cr_expect_not(json_object_object_get_ex(json, "signal", NULL));
	json_object_put(json);
	teardown();
	event.exit_code = SIGKILL;
	start((struct sl_event_stream_options){ 0 }, true);
	sl_event_stream_feed(&event.head, stream);
	json = only_line();
	cr_expect_str_eq(text(json, "signal"), "SIGKILL");
	cr_expect_not(json_object_object_get_ex(json, "exit_code", NULL));
	json_object_put(json);
}

Test(event, text_is_one_safe_line)
{
	struct sl_sock sock = world_sock();
	struct sl_event_process event = world_process_event(SL_EVENT_EXEC, 2, 2);

	world_exe(1, hostile);
	world_exe(2, hostile);
	memcpy(sock.owner.comm, "\n\033[0m", 6);
	sock.closed_ns = 9000000000;
	start((struct sl_event_stream_options){ .width = 100 }, false);
	feed_sock(SL_EVENT_CLOSE, &sock);
	sl_event_stream_feed(&event.head, stream);
	cr_expect_eq(line_count(), 2, "%s", out);
	for (const char *at = output(); *at; at++)
		cr_expect(*at == '\n' || ((unsigned char)*at >= 0x20 && *at != 0x7f), "byte %d",
			  *at);
	cr_expect_not_null(strstr(out, " close "));
	cr_expect_not_null(strstr(out, "tcp > 192.0.2.1:443"), "%s", out);
}

Test(event, text_fits_its_width)
{
	struct sl_event_process event = world_process_event(SL_EVENT_EXEC, 2, 2);
	char path[3000] = "/";

	memset(path + 1, 'x', sizeof(path) - 2);
	world_exe(1, path);
	world_exe(2, path);
	start((struct sl_event_stream_options){ .width = 100 }, false);
	sl_event_stream_feed(&event.head, stream);
	cr_expect_leq(sl_utf8_width(output()), 101, "%s", out);
	teardown();
	start((struct sl_event_stream_options){ 0 }, false);
	sl_event_stream_feed(&event.head, stream);
	cr_expect_eq(line_count(), 1);
}

/* The local end of an outgoing connection goes first, then how long it took. */
Test(event, close_fits_its_width)
{
	struct sl_sock sock = world_sock();

	world_exe(2, "/opt/somewhere/else/bin/python3.11");
	sock.local = world_endpoint("127.100.100.100:40000");
	sock.remote = world_endpoint("127.200.200.200:39101");
	sock.bytes_sent = sock.bytes_received = 123456789;
	sock.flags |= SL_SOCK_ESTABLISHED | SL_SOCK_RELEASED;
	sock.closed_ns = 9000000000;
	start((struct sl_event_stream_options){ .width = 100 }, false);
	feed_sock(SL_EVENT_CLOSE, &sock);
	cr_expect_leq(sl_utf8_width(output()), 101, "%s", out);
	cr_expect_not_null(strstr(out, " close       tcp > 127.200.200.200:39101 sent 117.7 MiB"),
			   "%s", out);
	cr_expect_not_null(strstr(out, "python3.11["), "%s", out);
	teardown();
	start((struct sl_event_stream_options){ .width = 200 }, false);
	feed_sock(SL_EVENT_CLOSE, &sock);
	cr_expect_not_null(strstr(output(), "tcp 127.100.100.100:40000 > "), "%s", out);
}

Test(event, only_what_is_asked_for_is_reported)
{
	struct sl_sock sock = world_sock(), other = sock;
	struct sl_event_stream_stats stats;

	other.owner.sandbox = 2;
	start((struct sl_event_stream_options){ .kinds = SL_EVENT_BIT(SL_EVENT_CONNECT),
						.sandbox = 1,
						.max = 2 },
	      true);
	cr_expect(sl_event_stream_wanted(stream) & SL_EVENT_BIT(SL_EVENT_EXEC),
		  "tables need processes");
	cr_expect_not(sl_event_stream_wanted(stream) & SL_EVENT_BIT(SL_EVENT_OPEN));
	feed_sock(SL_EVENT_OPEN, &sock);
	feed_sock(SL_EVENT_CONNECT, &other);
	feed_sock(SL_EVENT_CONNECT, &sock);
	cr_expect_not(sl_event_stream_done(stream));
	feed_sock(SL_EVENT_CONNECT, &sock);
	cr_expect(sl_event_stream_done(stream));
	feed_sock(SL_EVENT_CONNECT, &sock);
	cr_expect_eq(line_count(), 2, "%s", out);
	sl_event_stream_stats(stream, &stats);
	cr_expect_eq(stats.reported, 2);
}

Test(event, short_and_unknown_records_are_ignored)
{
	struct sl_sock sock = world_sock();
	struct sl_event_sock event = world_sock_event(SL_EVENT_CONNECT, &sock);

	start((struct sl_event_stream_options){ 0 }, true);
	event.head.size = SL_EVENT_SOCK_MIN - 1;
	sl_event_stream_feed(&event.head, stream);
	event.head.size = sizeof(event);
	event.head.kind = SL_EVENT_KIND_MAX;
	sl_event_stream_feed(&event.head, stream);
	event.head.kind = SL_EVENT_NONE;
	sl_event_stream_feed(&event.head, stream);
	cr_expect_eq(line_count(), 0);
}

Test(event, loss_is_told_and_tables_are_filled_anew)
{
	unsigned long long by_kind[SL_EVENT_KIND_MAX] = {
		[SL_EVENT_CLOSE] = 3, [SL_EVENT_EXEC] = 1
	};
	struct json_object *json;

	start((struct sl_event_stream_options){ 0 }, true);
	world.procs[0] = world_process_event(SL_EVENT_FORK, 2, 2).process;
	sl_event_stream_lost(stream, 4, by_kind);
	json = only_line();
	cr_expect_str_eq(text(json, "event"), "lost");
	cr_expect_null(get(json, "sandbox"));
	cr_expect_eq(json_object_get_int(get(json, "count")), 4);
	cr_expect_str_eq(json_object_to_json_string_ext(get(json, "by_kind"), 0),
			 "{\"exec\":1,\"close\":3}");
	json_object_put(json);
	cr_expect_not_null(sl_proc_table_find(sl_event_stream_procs(stream), 100, 5000000000));
}

static void count_event(const struct sl_view_event *event, void *arg)
{
	cr_expect_str_eq(event->process->exe->path, "/usr/bin/curl");
	++*(int *)arg;
}

Test(event, callback_gets_the_view)
{
	struct sl_sock sock = world_sock();
	int count = 0;

	start((struct sl_event_stream_options){ .fn = count_event, .arg = &count }, true);
	feed_sock(SL_EVENT_CONNECT, &sock);
	cr_expect_eq(count, 1);
}

/* Executable 2 becomes this program itself, which a store can hash. */
static void make_real(void)
{
	struct sl_exe *exe = &world.exes[2];
	char path[SL_PATH_MAX] = "";
	struct stat st;

	cr_assert_gt(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
	cr_assert_eq(stat(path, &st), 0);
	world_exe(2, path);
	exe->key.ino = st.st_ino;
	exe->key.dev = (__u32)(major(st.st_dev) << 20 | minor(st.st_dev));
	exe->key.ctime_ns = (__u64)st.st_ctim.tv_sec * 1000000000 + (__u64)st.st_ctim.tv_nsec;
	exe->size = (__u64)st.st_size;
}

Test(event, exec_waits_for_its_digest_and_order_is_kept)
{
	struct sl_event_process event = world_process_event(SL_EVENT_EXEC, 2, 2);
	struct sl_sock sock = world_sock();
	struct json_object *json;
	char *second;

	make_real();
	event.process.key.tgid = (__u32)getpid();
	start((struct sl_event_stream_options){ .digests = true }, true);
	sl_event_stream_feed(&event.head, stream);
	feed_sock(SL_EVENT_CONNECT, &sock);
	cr_assert_eq(sl_event_stream_finish(stream), 0);
	cr_assert_eq(line_count(), 2, "%s", out);
	second = strchr(out, '\n') + 1;
	second[-1] = '\0';
	json = json_tokener_parse(out);
	cr_expect_str_eq(text(json, "event"), "exec");
	cr_expect_eq(strlen(text(get(get(json, "process"), "exe"), "sha256")), 64);
	json_object_put(json);
	json = json_tokener_parse(second);
	cr_expect_str_eq(text(json, "event"), "connect");
	json_object_put(json);
}

Test(event, close_says_why_there_is_no_digest)
{
	struct sl_sock sock = world_sock();
	struct json_object *json, *exe;

	world_exe(2, "/nonexistent/binary");
	sock.owner.tgid = 0;
	sock.closed_ns = 9000000000;
	start((struct sl_event_stream_options){ .digests = true }, true);
	feed_sock(SL_EVENT_CLOSE, &sock);
	cr_assert_eq(sl_event_stream_finish(stream), 0);
	json = only_line();
	cr_expect_null(get(json, "process"), "no pid, no process");
	json_object_put(json);
	teardown();
	sock.owner.tgid = 0x7fffffff;
	start((struct sl_event_stream_options){ .digests = true }, true);
	feed_sock(SL_EVENT_CLOSE, &sock);
	cr_assert_eq(sl_event_stream_finish(stream), 0);
	json = only_line();
	exe = get(get(json, "process"), "exe");
	cr_expect_null(get(exe, "sha256"));
	cr_expect_str_eq(text(exe, "sha256_error"), "gone");
	json_object_put(json);
}

Test(event, hold_is_bounded)
{
	struct sl_event_process event = world_process_event(SL_EVENT_EXEC, 2, 2);
	struct sl_hold hold = { 0 };

	cr_expect_null(sl_hold_head(&hold));
	for (unsigned int i = 0; i < SL_HOLD_MAX; i++) {
		event.old_pid = i;
		cr_assert_eq(sl_hold_push(&hold, &event.head, i), 0);
	}
	cr_expect_eq(sl_hold_push(&hold, &event.head, 0), -ENOBUFS);
	for (unsigned int i = 0; i < 10; i++) {
		cr_expect_eq(sl_hold_head(&hold)->event.process.old_pid, i);
		sl_hold_pop(&hold);
		cr_expect_eq(sl_hold_push(&hold, &event.head, 0), 0);
	}
	event.head.size = sizeof(union sl_hold_event) + 1;
	sl_hold_pop(&hold);
	cr_expect_eq(sl_hold_push(&hold, &event.head, 0), -EINVAL);
	sl_hold_clear(&hold);
	cr_expect_null(sl_hold_head(&hold));
}
