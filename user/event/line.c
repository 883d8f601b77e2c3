/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <sluice/sock.h>

#include "base/format.h"
#include "base/escape.h"
#include "event/line.h"

#define NS_PER_S 1000000000LL

static void drain(struct sl_line *line)
{
	fwrite(line->buf, 1, line->used, line->file);
	line->used = 0;
}

static void put(struct sl_line *line, const char *text, size_t len)
{
	if (len > sizeof(line->buf) - line->used)
		drain(line);
	if (len > sizeof(line->buf)) {
		fwrite(text, 1, len, line->file);
		return;
	}
	memcpy(line->buf + line->used, text, len);
	line->used += len;
}

static void put_char(struct sl_line *line, char c)
{
	if (line->used == sizeof(line->buf))
		drain(line);
	line->buf[line->used++] = c;
}

static void put_text(struct sl_line *line, const char *text)
{
	put(line, text, strlen(text));
}

static void put_uint(struct sl_line *line, unsigned long long value)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put(line, digits + at, sizeof(digits) - at);
}

static void put_int(struct sl_line *line, long long value)
{
	if (value < 0)
		put_char(line, '-');
	put_uint(line, value < 0 ? -(unsigned long long)value : (unsigned long long)value);
}

/* A character that may not stand in the text as it is. */
static void put_escaped(struct sl_line *line, uint32_t code)
{
	static const char short_forms[] = "\bb\nn\rr\tt\ff\"\"\\\\";
	const char *form = code && code < 0x80 ? strchr(short_forms, (int)code) : NULL;
	char text[16];

	/* Each form is a pair: what it stands for comes first. */
	if (form && (form - short_forms) % 2 == 0)
		snprintf(text, sizeof(text), "\\%c", form[1]);
	else if (code > 0xffff)
		snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
			 0xdc00 + (code & 0x3ff));
	else
		snprintf(text, sizeof(text), "\\u%04x", code);
	put_text(line, text);
}

static void put_string(struct sl_line *line, const char *text, size_t len)
{
	bool unclean = sl_utf8_unclean(text, len);
	size_t start = 0;
	char hex[8];

	put_char(line, '"');
	for (size_t at = 0; at < len;) {
		unsigned char byte = (unsigned char)text[at];
		uint32_t code = byte;
		size_t n = byte < 0x80 ? 1 : sl_utf8_decode(text + at, len - at, &code);

		if (n && code >= 0x20 && code != '"' && code != '\\' &&
		    (code < 0x7f || sl_utf8_safe(code))) {
			at += n;
			continue;
		}
		put(line, text + start, at - start);
		/* A byte of no character, and NUL, are the text \xHH (base/object.h, rule 3). */
		if (unclean && code == '\\' && n) {
			put_text(line, "\\\\\\\\");
		} else if (!n || !code) {
			snprintf(hex, sizeof(hex), "\\\\x%02x", byte);
			put_text(line, hex);
		} else {
			put_escaped(line, code);
		}
		at += n ? n : 1;
		start = at;
	}
	put(line, text + start, len - start);
	put_char(line, '"');
}

static void put_word(struct sl_line *line, const char *word)
{
	put_string(line, word, strlen(word));
}

/* The text of a few seconds is kept: most times of a line, and of those after it. */
static const char *second_text(struct sl_line *line, __u64 boot_ns, int64_t second)
{
	struct sl_line_second *slot = &line->seconds[second % SL_LINE_SECONDS];
	char text[SL_FORMAT_MAX];

	if (!slot->text[0] || slot->second != second) {
		sl_format_time(text, sizeof(text), boot_ns, line->offset_ns);
		snprintf(slot->text, sizeof(slot->text), "%.*s", (int)strcspn(text, "."), text);
		slot->second = second;
	}
	return slot->text;
}

static void put_time(struct sl_line *line, __u64 boot_ns)
{
	char text[SL_FORMAT_MAX];
	int64_t real;

	if (boot_ns > INT64_MAX ||
	    __builtin_add_overflow((int64_t)boot_ns, line->offset_ns, &real) || real < 0) {
		put_word(line, sl_format_time(text, sizeof(text), boot_ns, line->offset_ns));
		return;
	}
	put_char(line, '"');
	put_text(line, second_text(line, boot_ns, real / NS_PER_S));
	real %= NS_PER_S;
	for (int i = 9; i > 0; i--, real /= 10)
		text[i] = (char)('0' + real % 10);
	text[0] = '.';
	put(line, text, 10);
	put_text(line, "Z\"");
}

static void put_endpoint(struct sl_line *line, const struct sl_endpoint *endpoint)
{
	char text[SL_FORMAT_MAX];

	put_text(line, "{\"addr\":\"");
	put_text(line, sl_format_addr(text, sizeof(text), endpoint->addr_be));
	put_text(line, "\",\"port\":");
	put_uint(line, ntohs(endpoint->port_be));
	put_char(line, '}');
}

static void put_flags(struct sl_line *line, const struct sl_field *field, unsigned long long value)
{
	bool more = false;

	put_char(line, '[');
	for (unsigned int i = 0; value >> i && i < 64; i++) {
		const char *word = i < field->word_count ? field->words[i] : NULL;
		char text[8];

		if (!(value >> i & 1))
			continue;
		snprintf(text, sizeof(text), "bit%u", i);
		if (more)
			put_char(line, ',');
		put_word(line, word ? word : text);
		more = true;
	}
	put_char(line, ']');
}

static void put_list(struct sl_line *line, const struct sl_strings *list)
{
	put_char(line, '[');
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			put_char(line, ',');
		put_word(line, list->items[i]);
	}
	put_char(line, ']');
}

static void put_object(struct sl_line *line, const struct sl_field *fields, const void *record)
{
	bool more = line->more;

	put_char(line, '{');
	line->more = false;
	sl_line_fields(line, fields, record);
	put_char(line, '}');
	line->more = more;
}

static void put_records(struct sl_line *line, const struct sl_field *field,
			const struct sl_records *records)
{
	put_char(line, '[');
	for (size_t i = 0; i < records->count; i++) {
		if (i)
			put_char(line, ',');
		put_object(line, field->fields, (const char *)records->data + i * records->stride);
	}
	put_char(line, ']');
}

static void put_enum(struct sl_line *line, const struct sl_field *field, unsigned long long value)
{
	if (value < field->word_count && field->words[value])
		put_word(line, field->words[value]);
	else
		put_uint(line, value);
}

static void put_value(struct sl_line *line, const struct sl_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;
	unsigned long long value = sl_field_uint(field, record);

	switch (field->type) {
	case SL_FIELD_TYPE_BOOL:
		return put_text(line, value ? "true" : "false");
	case SL_FIELD_TYPE_INT:
		return put_int(line, sl_field_int(field, record));
	case SL_FIELD_TYPE_ID:
		put_char(line, '"');
		put_uint(line, value);
		put_char(line, '"');
		return;
	case SL_FIELD_TYPE_TIME:
		return put_time(line, value);
	case SL_FIELD_TYPE_STRING:
		return put_string(line, at, strnlen(at, field->size));
	case SL_FIELD_TYPE_TEXT:
		return put_word(line, *(const char *const *)at);
	case SL_FIELD_TYPE_ENDPOINT:
		return put_endpoint(line, (const struct sl_endpoint *)at);
	case SL_FIELD_TYPE_ENUM:
		return put_enum(line, field, value);
	case SL_FIELD_TYPE_FLAGS:
		return put_flags(line, field, value);
	case SL_FIELD_TYPE_LIST:
		return put_list(line, (const struct sl_strings *)at);
	case SL_FIELD_TYPE_OBJECT:
	case SL_FIELD_TYPE_OBJECT_PTR:
		return put_object(line, field->fields, sl_field_object(field, record));
	case SL_FIELD_TYPE_RECORDS:
		return put_records(line, field, (const struct sl_records *)at);
	default:
		return put_uint(line, value);
	}
}

void sl_line_fields(struct sl_line *line, const struct sl_field *fields, const void *record)
{
	for (const struct sl_field *field = fields; field->type; field++) {
		bool absent = sl_field_absent(field, record);

		if (field->flags & SL_FIELD_PLAIN_ONLY ||
		    (absent && !(field->flags & SL_FIELD_NULL)))
			continue;
		if (line->more)
			put_char(line, ',');
		line->more = true;
		put_char(line, '"');
		put_text(line, field->name);
		put_text(line, "\":");
		if (absent)
			put_text(line, "null");
		else
			put_value(line, field, record);
	}
}

void sl_line_begin(struct sl_line *line)
{
	int64_t offset_ns = sl_realtime_offset_ns();

	if (offset_ns != line->offset_ns)
		memset(line->seconds, 0, sizeof(line->seconds));
	line->offset_ns = offset_ns;
	line->more = false;
	line->used = 0;
	put_char(line, '{');
}

int sl_line_end(struct sl_line *line)
{
	errno = 0;
	put_text(line, "}\n");
	drain(line);
	return ferror(line->file) ? -(errno ? errno : EIO) : 0;
}
