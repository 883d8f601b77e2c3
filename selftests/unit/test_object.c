/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include <sluice/sock.h>

#include "base/escape.h"
#include "base/format.h"
#include "base/object.h"
#include "base/parse.h"

struct inner {
	uint32_t pid;
	const char *path;
};

struct row {
	uint64_t cookie;
	uint64_t bytes;
	uint64_t took_us;
	uint64_t time;
	const char *path;
	struct sl_endpoint local;
	char comm[4];
	int32_t error;
	uint32_t flags;
	uint16_t family;
	uint8_t state;
	bool live;
	struct sl_strings lineage;
	struct inner process;
	const struct inner *peer;
	struct sl_records holders;
	const char *digest;
	uint32_t secret;
	uint32_t shown;
};

static const char *const states[] = { NULL, "open", "closed" };
static const char *const words[] = { "memfd", NULL, "deleted" };

static const struct sl_field inner_fields[] = {
	SL_FIELD_UINT(struct inner, pid, "PID"),
	SL_FIELD_TEXT(struct inner, path, NULL),
	{ 0 },
};

static const struct sl_field fields[] = {
	SL_FIELD_BOOL(struct row, live, NULL),
	SL_FIELD_INT(struct row, error, NULL),
	SL_FIELD_UINT(struct row, family, NULL),
	SL_FIELD_ID(struct row, cookie, "COOKIE"),
	SL_FIELD_BYTES(struct row, bytes, "BYTES"),
	SL_FIELD_DURATION_US(struct row, took_us, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_TIME(struct row, time, NULL),
	SL_FIELD_STRING(struct row, comm, "COMM"),
	SL_FIELD_TEXT(struct row, path, "PATH", .flags = SL_FIELD_ELIDE),
	SL_FIELD_ENDPOINT(struct row, local, NULL),
	SL_FIELD_ENUM(struct row, state, "STATE", states),
	SL_FIELD_FLAGS(struct row, flags, NULL, words),
	SL_FIELD_LIST(struct row, lineage, NULL),
	SL_FIELD_OBJECT(struct row, process, "", inner_fields),
	SL_FIELD_OBJECT_PTR(struct row, peer, NULL, inner_fields),
	SL_FIELD_RECORDS(struct row, holders, NULL, inner_fields, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_TEXT(struct row, digest, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_UINT(struct row, secret, "SECRET", .flags = SL_FIELD_JSON_ONLY),
	SL_FIELD_UINT(struct row, shown, NULL, .flags = SL_FIELD_PLAIN_ONLY),
	{ 0 },
};

static const char *const lineage[] = { "/bin/sh", "/bin/\xff\x1b" };
static const struct inner holder = { .pid = 9, .path = "h" };

static struct row full_row(void)
{
	struct row row = {
		.live = true,
		.error = -5,
		.family = 65535,
		.cookie = UINT64_MAX,
		.bytes = UINT64_MAX,
		.time = 1,
		.comm = { 'a', '\n', '\x1b', 'b' }, /* no terminator */
		.path = "/x\xc2\x9b\xe2\x80\xae\xff\"",
		.state = 2,
		.flags = 1 | 2 | 4 | 1U << 31,
		.lineage = { lineage, 2 },
		.process = { .pid = 1 },
		.holders = { &holder, 1, sizeof(holder) },
		.secret = 1,
		.shown = 2,
	};

	sl_parse_endpoint("192.0.2.1:443", &row.local);
	return row;
}

/* What printing writes; the caller frees it. */
static char *printed(const struct sl_output *form, bool list, const struct sl_records *records)
{
	struct sl_output output = *form;
	char *text = NULL;
	size_t size;

	output.file = open_memstream(&text, &size);
	if (list)
		cr_assert_eq(sl_print_list(&output, fields, records), 0);
	else
		cr_assert_eq(sl_print_record(&output, fields, records->data), 0);
	fclose(output.file);
	return text;
}

static void prints(const struct sl_output *form, bool list, const struct row *rows, size_t count,
		   const char *expected)
{
	const struct sl_records records = { rows, count, sizeof(*rows) };
	char *text = printed(form, list, &records);

	cr_expect_str_eq(text, expected);
	free(text);
}

Test(object, table_is_sound)
{
	const char *bad = NULL;

	cr_expect_eq(sl_fields_check(fields, &bad), 0, "%s", bad);
}

Test(object, json_has_every_type_and_is_safe)
{
	struct sl_output json = { .json = true };
	struct row row = full_row();
	char expected[2048], time[SL_FORMAT_MAX];

	sl_format_time(time, sizeof(time), 1, sl_realtime_offset_ns());
	snprintf(expected, sizeof(expected),
		 "{\"live\":true,\"error\":-5,\"family\":65535,"
		 "\"cookie\":\"18446744073709551615\",\"bytes\":18446744073709551615,"
		 "\"time\":\"%s\",\"comm\":\"a\\n\\u001bb\","
		 "\"path\":\"/x\\u009b\\u202e\\\\xff\\\"\","
		 "\"local\":{\"addr\":\"192.0.2.1\",\"port\":443},\"state\":\"closed\","
		 "\"flags\":[\"memfd\",\"bit1\",\"deleted\",\"bit31\"],"
		 "\"lineage\":[\"/bin/sh\",\"/bin/\\\\xff\\u001b\"],"
		 "\"process\":{\"pid\":1},\"holders\":[{\"pid\":9,\"path\":\"h\"}],"
		 "\"digest\":null,\"secret\":1}\n",
		 time);
	prints(&json, false, &row, 1, expected);
}

Test(object, lines_are_escaped_and_leave_out_what_is_absent)
{
	struct sl_output plain = { 0 };
	struct row row = full_row();
	char expected[2048], time[SL_FORMAT_MAX];

	sl_format_time(time, sizeof(time), 1, sl_realtime_offset_ns());
	snprintf(expected, sizeof(expected),
		 "live: yes\nerror: -5\nfamily: 65535\ncookie: 18446744073709551615\n"
		 "bytes: 16.0 EiB\ntime: %s\ncomm: a\\x0a\\x1bb\n"
		 "path: /x\\u{9b}\\u{202e}\\xff\"\nlocal: 192.0.2.1:443\nstate: closed\n"
		 "flags: memfd,bit1,deleted,bit31\nlineage: /bin/sh,/bin/\\xff\\x1b\n"
		 "process.pid: 1\nholders[0].pid: 9\nholders[0].path: h\nshown: 2\n",
		 time);
	prints(&plain, false, &row, 1, expected);
}

Test(object, columns_are_aligned_by_their_data)
{
	struct sl_output plain = { 0 };
	struct row rows[] = {
		{ .cookie = 1, .bytes = 10, .comm = "é", .path = "/a", .state = 1 },
		{ .cookie = 123456789,
		  .bytes = 2048,
		  .comm = "abc",
		  .state = 9,
		  .process = { .pid = 77 } },
	};

	prints(&plain, true, rows, 2,
	       "COOKIE       BYTES  COMM  PATH  STATE  PID\n"
	       "1             10 B  é     /a    open     0\n"
	       "123456789  2.0 KiB  abc   -     9       77\n");
	prints(&plain, true, rows, 0, "COOKIE  BYTES  COMM  PATH  STATE  PID\n");
}

Test(object, narrow_terminals_shorten_the_marked_column)
{
	static const char path[] = "/usr/lib/a/very/long/日本語/of/an/interpreter/python3.11";
	struct row rows[] = {
		{ .cookie = 1, .comm = "x", .path = path, .state = 1 },
		{ .cookie = 2, .comm = "y", .path = "/b", .state = 1 },
	};
	const struct sl_records records = { rows, 2, sizeof(rows[0]) };

	for (unsigned int width = 0; width < 120; width++) {
		struct sl_output output = { .width = width };
		char *text = printed(&output, true, &records), *save = NULL;
		bool whole = strstr(text, path) != NULL;

		cr_expect_not_null(strstr(text, "PATH"));
		cr_expect(whole || strstr(text, "…"), "width %u", width);
		cr_expect(!whole || width == 0 || width >= 55, "width %u", width);
		cr_expect(sl_utf8_valid(text, strlen(text)));
		for (char *line = strtok_r(text, "\n", &save); line && width >= 50;
		     line = strtok_r(NULL, "\n", &save))
			cr_expect_leq(sl_utf8_width(line), width);
		free(text);
	}
}

static bool pid_is_even(const void *record)
{
	return ((const struct inner *)record)->pid % 2 == 0;
}

Test(object, narrow_terminals_leave_out_empty_columns)
{
	static const struct sl_field three[] = {
		SL_FIELD_AS(UINT, struct inner, pid, "a", "A-LONG-HEADING"),
		SL_FIELD_AS(UINT, struct inner, pid, "b", "ANOTHER", .present = pid_is_even),
		SL_FIELD_AS(UINT, struct inner, pid, "c", "LAST"),
		{ 0 },
	};
	struct inner items[] = { { .pid = 1 }, { .pid = 3 } };
	const struct sl_records records = { items, 2, sizeof(items[0]) };

	for (unsigned int even = 0; even < 2; even++) {
		items[1].pid = even ? 4 : 3;
		for (unsigned int width = 0; width < 40; width++) {
			struct sl_output output = { .width = width };
			bool room = !width || width >= strlen("A-LONG-HEADING  ANOTHER  LAST");
			char *text = NULL;
			size_t size;

			output.file = open_memstream(&text, &size);
			cr_expect_eq(sl_print_list(&output, three, &records), 0);
			fclose(output.file);
			cr_expect_eq(!!strstr(text, "ANOTHER"), even || room, "%u: %s", width,
				     text);
			cr_expect_not_null(strstr(text, "A-LONG-HEADING"));
			cr_expect_not_null(strstr(text, "LAST\n"));
			free(text);
		}
	}
}

Test(object, list_in_json_is_one_array)
{
	static const struct sl_field two[] = {
		SL_FIELD_UINT(struct inner, pid, "PID"),
		{ 0 },
	};
	const struct inner items[] = { { .pid = 1 }, { .pid = 2 } };
	const struct sl_records records = { items, 2, sizeof(items[0]) };
	struct sl_output output = { .json = true };
	char *text = NULL;
	size_t size;

	output.file = open_memstream(&text, &size);
	cr_expect_eq(sl_print_list(&output, two, &records), 0);
	output.pretty = true;
	cr_expect_eq(sl_print_list(&output, two, &records), 0);
	cr_expect_eq(sl_print_line(output.file, two, &items[1]), 0);
	fclose(output.file);
	cr_expect_str_eq(text, "[{\"pid\":1},{\"pid\":2}]\n"
			       "[\n  {\n    \"pid\": 1\n  },\n  {\n    \"pid\": 2\n  }\n]\n"
			       "{\"pid\":2}\n");
	free(text);
}

/* Every byte value in a string: the output parses, and is one line without controls. */
Test(object, json_of_any_bytes_is_valid_and_inert)
{
	srand(2);
	for (int round = 0; round < 3000; round++) {
		char value[40];
		struct inner item = { .path = value };
		struct json_object *back;
		char *text = NULL;
		size_t size;
		FILE *file = open_memstream(&text, &size);

		for (size_t i = 0; i < sizeof(value) - 1; i++)
			value[i] = (char)(rand() % 255 + 1);
		value[sizeof(value) - 1] = '\0';
		cr_assert_eq(sl_print_line(file, inner_fields, &item), 0);
		fclose(file);
		cr_assert(sl_utf8_valid(text, size));
		for (size_t at = 0, n; at < size - 1; at += n) {
			uint32_t code = 0;

			n = sl_utf8_decode(text + at, size - at, &code);
			cr_assert(sl_utf8_safe(code));
		}
		back = json_tokener_parse(text);
		cr_assert_not_null(back);
		json_object_put(back);
		free(text);
	}
}

Test(object, characters_outside_the_bmp_survive)
{
	struct inner item = { .path = "\xf3\xa0\x81\x81🙂" };
	struct json_object *back, *path = NULL;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	cr_assert_eq(sl_print_line(file, inner_fields, &item), 0);
	fclose(file);
	cr_expect_str_eq(text, "{\"pid\":0,\"path\":\"\\udb40\\udc41🙂\"}\n");
	back = json_tokener_parse(text);
	cr_assert(json_object_object_get_ex(back, "path", &path));
	cr_expect_str_eq(json_object_get_string(path), item.path);
	json_object_put(back);
	free(text);
}

static bool never(const void *record)
{
	(void)record;
	return false;
}

Test(object, presence_may_be_decided_by_the_record)
{
	static const struct sl_field some[] = {
		SL_FIELD_UINT(struct inner, pid, "PID", .present = never),
		SL_FIELD_TEXT(struct inner, path, "PATH", .flags = SL_FIELD_OPTIONAL),
		{ 0 },
	};
	const struct inner item = { .pid = 5, .path = "" };
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	cr_expect_eq(sl_print_line(file, some, &item), 0);
	fclose(file);
	cr_expect_str_eq(text, "{}\n");
	free(text);
}

Test(object, failed_writes_are_reported)
{
	const struct inner item = { .pid = 5, .path = "p" };
	const struct sl_records records = { &item, 1, sizeof(item) };
	struct sl_output output = { .file = fopen("/dev/full", "we") };

	cr_assert_not_null(output.file);
	setvbuf(output.file, NULL, _IONBF, 0);
	cr_expect_eq(sl_print_line(output.file, inner_fields, &item), -ENOSPC);
	clearerr(output.file);
	cr_expect_eq(sl_print_list(&output, inner_fields, &records), -ENOSPC);
	fclose(output.file);
}

Test(object, faulty_tables_are_found)
{
	static const struct sl_field twice[] = {
		SL_FIELD_UINT(struct inner, pid, "PID"),
		SL_FIELD_AS(UINT, struct inner, pid, "pid", "PID"),
		{ 0 },
	};
	static const struct sl_field misfit[] = { SL_FIELD_TIME(struct inner, pid, NULL), { 0 } };
	static const struct sl_field wordless[] = {
		SL_FIELD_AS(ENUM, struct inner, pid, "pid", NULL),
		{ 0 },
	};
	static const struct sl_field nested[] = {
		SL_FIELD_OBJECT(struct row, process, NULL, misfit),
		{ 0 },
	};
	const char *bad = NULL;

	cr_expect_eq(sl_fields_check(twice, &bad), -EINVAL);
	cr_expect_str_eq(bad, "pid");
	cr_expect_eq(sl_fields_check(misfit, NULL), -EINVAL);
	cr_expect_eq(sl_fields_check(wordless, &bad), -EINVAL);
	cr_expect_eq(sl_fields_check(nested, &bad), -EINVAL);
}
