/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/utf8.h"
#include "policy/yaml_text.h"

/* Bytes of offending text, and of the file's name, in a message. */
#define SHOWN_MAX 80
#define FILE_MAX 160

static int prefix(const struct sl_yaml_source *source, struct sl_position at)
{
	char file[FILE_MAX];

	sl_escape_text(file, sizeof(file), source->file);
	return sl_err_prefix(source->err, "%s:%u:%u", file, at.line, at.column);
}

int sl_yaml_fail(const struct sl_yaml_source *source, int code, struct sl_position at,
		 const char *offending, const char *fmt, ...)
{
	char text[256], shown[SHOWN_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (offending) {
		sl_escape_text(shown, sizeof(shown), offending);
		sl_err_set(source->err, code, "%s: '%s'", text, shown);
	} else {
		sl_err_set(source->err, code, "%s", text);
	}
	prefix(source, at);
	return -code;
}

int sl_yaml_locate(const struct sl_yaml_source *source, struct sl_position at,
		   const char *offending, const struct sl_err *bare)
{
	int ret = sl_yaml_fail(source, bare->code, at, offending, "%s", bare->text);

	if (bare->hint[0])
		sl_err_hint(source->err, "%s", bare->hint);
	return ret;
}

/* YAML 1.1, 5.1. A byte order mark is allowed at the start only, and skipped by the caller. */
static bool allowed(uint32_t code)
{
	return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code <= 0x7e) ||
	       code == 0x85 || (code >= 0xa0 && code != 0xfeff && code != 0xfffe && code != 0xffff);
}

/* As libyaml counts lines; `next` is the byte behind. */
static bool ends_line(uint32_t code, char next)
{
	return code == '\n' || (code == '\r' && next != '\n') || code == 0x85 || code == 0x2028 ||
	       code == 0x2029;
}

static void step(struct sl_position *at, uint32_t code, char next)
{
	at->column++;
	if (ends_line(code, next)) {
		at->line++;
		at->column = 1;
	}
}

int sl_yaml_check_text(const struct sl_yaml_source *source, const char *text, size_t len)
{
	struct sl_position at = { 1, 1 };

	for (size_t i = 0; i < len;) {
		uint32_t code = 0;
		size_t n = sl_utf8_decode(text + i, len - i, &code);

		if (!n) {
			sl_yaml_fail(source, EINVAL, at, NULL, "byte 0x%02x is not UTF-8",
				     (unsigned char)text[i]);
			return sl_err_hint(source->err, "save the file as UTF-8");
		}
		if (!allowed(code)) {
			sl_yaml_fail(source, EINVAL, at, NULL,
				     code ? "character U+%04X is not allowed"
					  : "a NUL byte (U+%04X) is not allowed",
				     code);
			return sl_err_hint(source->err, "a policy is text: printable characters, "
							"blanks, tabs and line ends");
		}
		i += n;
		step(&at, code, i < len ? text[i] : '\0');
	}
	return 0;
}

void sl_yaml_text_at(char *dst, size_t size, const char *text, size_t len, struct sl_position at)
{
	struct sl_position here = { 1, 1 };
	size_t used = 0;

	for (size_t i = 0; i < len && here.line <= at.line && used + 4 < size;) {
		uint32_t code = 0;
		size_t n = sl_utf8_decode(text + i, len - i, &code);

		n = n ? n : 1;
		if (here.line == at.line && here.column >= at.column) {
			if (code == '\n' || code == '\r')
				break;
			memcpy(dst + used, text + i, n);
			used += n;
		}
		i += n;
		step(&here, code, i < len ? text[i] : '\0');
	}
	dst[used] = '\0';
}
