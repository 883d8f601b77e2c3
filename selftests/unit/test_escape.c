/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/object.h"

static void escapes_to(const char *src, size_t len, const char *expected)
{
	char dst[256];
	size_t used = sl_escape(dst, sizeof(dst), src, len);

	cr_expect_str_eq(dst, expected);
	cr_expect_eq(used, strlen(expected));
}

#define ESCAPES_TO(text, expected) escapes_to(text, sizeof(text) - 1, expected)

Test(escape, printable_text_passes)
{
	ESCAPES_TO("", "");
	ESCAPES_TO("/usr/bin/a b\"'$", "/usr/bin/a b\"'$");
	ESCAPES_TO("a\\c", "a\\\\c");
	ESCAPES_TO("größe/日本語/🙂", "größe/日本語/🙂");
}

Test(escape, controls_become_hex)
{
	ESCAPES_TO("a\0b", "a\\x00b");
	ESCAPES_TO("a\nb\tc\r", "a\\x0ab\\x09c\\x0d");
	ESCAPES_TO("\x1b[2J", "\\x1b[2J");
	ESCAPES_TO("\x7f", "\\x7f");
}

Test(escape, hiding_and_reordering_characters_become_code_points)
{
	ESCAPES_TO("\xc2\x9b"
		   "31m",
		   "\\u{9b}31m");
	ESCAPES_TO("\xc2\x85", "\\u{85}");
	ESCAPES_TO("a\xe2\x80\xae"
		   "b",
		   "a\\u{202e}b");
	ESCAPES_TO("\xe2\x80\x8b\xe2\x80\xa8\xef\xbb\xbf", "\\u{200b}\\u{2028}\\u{feff}");
	ESCAPES_TO("\xe2\x81\xa6", "\\u{2066}");
	ESCAPES_TO("\xf3\xa0\x81\x81", "\\u{e0041}");
}

Test(escape, invalid_utf8_becomes_hex)
{
	ESCAPES_TO("\xff\xfe", "\\xff\\xfe");
	ESCAPES_TO("\x80", "\\x80");
	ESCAPES_TO("\xc0\xaf", "\\xc0\\xaf"); /* overlong '/' */
	ESCAPES_TO("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	ESCAPES_TO("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* surrogate */
	ESCAPES_TO("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	ESCAPES_TO("a\xe2\x82", "a\\xe2\\x82");                 /* cut short */
	ESCAPES_TO("\xe2\x82"
		   "ab",
		   "\\xe2\\x82ab");
}

Test(escape, twice_is_once)
{
	static const char src[] = "x\x1b\n\xff\xe2\x80\xae\\";
	char once[128], twice[128];

	sl_escape(once, sizeof(once), src, sizeof(src) - 1);
	sl_escape_again(twice, sizeof(twice), once, strlen(once));
	cr_expect_str_eq(once, twice);
}

/* A name can't be chosen to look like another one's escaped bytes. */
Test(escape, different_texts_stay_different)
{
	static const char *const texts[] = { "x\xff",      "x\\xff",  "x\\\\xff",
					     "x\xff\\",    "x\\\xff", "x\u202e",
					     "x\\u{202e}", "\\",      "x\\xfg\xff" };
	char plain[ARRAY_SIZE(texts)][64];
	const char *json[ARRAY_SIZE(texts)];
	struct json_object *strings[ARRAY_SIZE(texts)];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		sl_escape_text(plain[i], sizeof(plain[i]), texts[i]);
		strings[i] = sl_json_string(texts[i], strlen(texts[i]));
		json[i] = json_object_get_string(strings[i]);
		for (size_t k = 0; k < i; k++) {
			cr_expect_str_neq(plain[i], plain[k]);
			cr_expect_str_neq(json[i], json[k]);
		}
	}
	cr_expect_str_eq(plain[1], "x\\\\xff");
	cr_expect_str_eq(json[0], "x\\xff");
	cr_expect_str_eq(json[1], "x\\\\xff");
	/* What can't be taken for a byte is exact. */
	cr_expect_str_eq(json[5], "x\u202e");
	cr_expect_str_eq(json[6], "x\\u{202e}");
	cr_expect_str_eq(json[7], "\\");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		json_object_put(strings[i]);
}

Test(escape, cut_text_ends_with_an_ellipsis_at_every_size)
{
	static const char src[] = "a\x1b"
				  "ä\xff日🙂\xe2\x80\xae"
				  "xyz";
	char whole[128];
	size_t need = sl_escape(whole, sizeof(whole), src, sizeof(src) - 1);

	for (size_t size = 0; size <= need + 2; size++) {
		/* On the heap, so that the sanitizer sees one byte too many. */
		char *dst = malloc(size + 1);
		size_t used;

		memset(dst, 'U', size + 1);
		used = sl_escape(dst, size, src, sizeof(src) - 1);
		cr_assert_eq(dst[size], 'U', "wrote past %zu", size);
		if (size > 0) {
			cr_assert_eq(used, strlen(dst));
			cr_assert_lt(used, size);
			cr_assert(sl_utf8_valid(dst, used));
		}
		if (size > need)
			cr_assert_str_eq(dst, whole);
		else if (size >= 4)
			cr_assert_str_eq(dst + used - 3, "…");
		free(dst);
	}
}

Test(escape, all_single_bytes_are_safe_and_fit_the_maximum)
{
	for (int byte = 0; byte < 256; byte++) {
		char src[8], dst[SL_ESCAPE_MAX(8)];
		size_t used;

		memset(src, byte, sizeof(src));
		used = sl_escape(dst, sizeof(dst), src, sizeof(src));
		cr_expect_eq(used, byte == '\\' ? 16 : byte >= 0x20 && byte < 0x7f ? 8 : 32);
		for (size_t i = 0; i < used; i++)
			cr_expect(dst[i] >= 0x20 && dst[i] < 0x7f);
	}
}

Test(escape, every_code_point_is_shown_or_escaped)
{
	for (uint32_t code = 0x80; code <= 0x10ffff; code++) {
		uint32_t back = 0;
		char src[5] = "", dst[SL_ESCAPE_MAX(4)];
		size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
		static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
		bool surrogate = code >= 0xd800 && code <= 0xdfff;

		for (size_t i = len; i-- > 0;)
			src[i] = (char)((code >> (6 * (len - 1 - i)) & (i ? 0x3f : 0xff)) |
					(i ? 0x80 : lead[len]));
		cr_assert_eq(sl_utf8_decode(src, len, &back), surrogate ? 0 : len, "%x", code);
		sl_escape(dst, sizeof(dst), src, len);
		if (!surrogate)
			cr_assert_eq(back, code);
		if (!surrogate && sl_utf8_safe(code))
			cr_assert_str_eq(dst, src);
		else
			cr_assert_eq(dst[0], '\\', "%x passed", code);
	}
}

Test(escape, clean_is_valid_and_keeps_controls)
{
	static const char src[] = "a\x1b\n\0\xff\xc2\x9b\xed\xa0\x80z";
	char dst[128];
	size_t used = sl_utf8_clean(dst, sizeof(dst), src, sizeof(src) - 1);

	cr_expect_str_eq(dst, "a\x1b\n\\x00\\xff\xc2\x9b\\xed\\xa0\\x80z");
	cr_expect(sl_utf8_valid(dst, used));
	cr_expect_not(sl_utf8_valid(src, sizeof(src) - 1));
}

Test(escape, elide_keeps_both_ends)
{
	char dst[64];

	cr_expect_eq(sl_elide(dst, sizeof(dst), "/usr/bin/node", 13), 13);
	cr_expect_str_eq(dst, "/usr/bin/node");
	cr_expect_eq(sl_elide(dst, sizeof(dst), "/usr/local/bin/node", 10), 10);
	cr_expect_str_eq(dst, "/usr…/node");
	cr_expect_eq(sl_elide(dst, sizeof(dst), "abc", 1), 1);
	cr_expect_str_eq(dst, "…");
	cr_expect_eq(sl_elide(dst, sizeof(dst), "abc", 0), 0);
	cr_expect_str_eq(dst, "");
}

Test(escape, elide_never_exceeds_the_columns)
{
	static const char src[] = "日本a語🙂é\xcc\x81tudes日本語";

	for (size_t columns = 0; columns < 40; columns++) {
		for (size_t size = 1; size < 60; size++) {
			char *dst = malloc(size);
			size_t used = sl_elide(dst, size, src, columns);

			cr_assert_eq(used, sl_utf8_width(dst));
			cr_assert(used <= columns || size < sizeof(src) + 3, "%zu %zu", columns,
				  size);
			cr_assert(sl_utf8_valid(dst, strlen(dst)), "%zu %zu", columns, size);
			free(dst);
		}
	}
}

Test(escape, log_writes_one_safe_line_and_keeps_errno)
{
	char text[8192] = "";
	FILE *file = tmpfile(), *old = stderr;
	struct sl_err err = { 0 };

	stderr = file;
	errno = EBUSY;
	sl_log_warning("bad\n%s", "\x1b[2Jsluice: forged");
	sl_log_debug("not %s", "shown");
	sl_err_sys(&err, ENOENT, "opening %s", "a\nb");
	sl_err_hint(&err, "try %d", 2);
	sl_log_err(SL_LOG_ERROR, &err);
	cr_expect_eq(errno, EBUSY);
	stderr = old;
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	cr_expect_str_eq(text, "sluice: warning: bad\\x0a\\x1b[2Jsluice: forged\n"
			       "sluice: opening a\\x0ab: No such file or directory\n"
			       "sluice: hint: try 2\n");
}

Test(escape, errors_nest_and_take_null)
{
	struct sl_err err = { 0 };
	char longer[1024];

	cr_expect_eq(sl_err_set(NULL, EPERM, "x"), -EPERM);
	cr_expect_eq(sl_err_hint(NULL, "x"), -EINVAL);
	cr_expect_eq(sl_err_set(&err, EPERM, "inner %d", 1), -EPERM);
	sl_err_hint(&err, "hint");
	cr_expect_eq(sl_err_prefix(&err, "outer"), -EPERM);
	cr_expect_str_eq(err.text, "outer: inner 1");
	cr_expect_str_eq(err.hint, "hint");
	memset(longer, 'y', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	sl_err_sys(&err, EIO, "%s", longer);
	sl_err_prefix(&err, "%s", longer);
	cr_expect_eq(strlen(err.text), sizeof(err.text) - 1);
	cr_expect_str_empty(err.hint);
}
