/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"

#define ELLIPSIS "…"

/* What escape and clean share: append whole units, remember where a cut still fits. */
struct sink {
	char *dst;
	size_t size;
	size_t used;
	size_t cut; /* the largest `used` after which an ellipsis still fits */
};

static bool sink_put(struct sink *sink, const char *unit, size_t len)
{
	if (sink->used + sizeof(ELLIPSIS) <= sink->size)
		sink->cut = sink->used;
	if (sink->used + len >= sink->size)
		return false;
	memcpy(sink->dst + sink->used, unit, len);
	sink->used += len;
	return true;
}

static size_t sink_end(struct sink *sink, bool whole)
{
	if (sink->size == 0)
		return 0;
	if (!whole) {
		sink->used = sink->cut;
		if (sink->used + sizeof(ELLIPSIS) <= sink->size) {
			memcpy(sink->dst + sink->used, ELLIPSIS, sizeof(ELLIPSIS) - 1);
			sink->used += sizeof(ELLIPSIS) - 1;
		}
	}
	sink->dst[sink->used] = '\0';
	return sink->used;
}

static size_t escape(char *dst, size_t size, const char *src, size_t len, bool again)
{
	struct sink sink = { .dst = dst, .size = size };
	bool whole = true;

	while (len > 0 && whole) {
		char unit[16];
		uint32_t code;
		size_t n = sl_utf8_decode(src, len, &code);

		if (n > 0 && code == '\\' && !again) {
			whole = sink_put(&sink, "\\\\", 2);
		} else if (n > 0 && sl_utf8_safe(code)) {
			whole = sink_put(&sink, src, n);
		} else {
			int used;

			if (n > 1)
				used = snprintf(unit, sizeof(unit), "\\u{%x}", code);
			else
				used = snprintf(unit, sizeof(unit), "\\x%02x", (unsigned char)*src);
			whole = sink_put(&sink, unit, (size_t)used);
			n = n > 0 ? n : 1;
		}
		src += n;
		len -= n;
	}
	return sink_end(&sink, whole);
}

size_t sl_escape(char *dst, size_t size, const char *src, size_t len)
{
	return escape(dst, size, src, len, false);
}

size_t sl_escape_again(char *dst, size_t size, const char *src, size_t len)
{
	return escape(dst, size, src, len, true);
}

size_t sl_escape_text(char *dst, size_t size, const char *src)
{
	if (!src)
		src = "-";
	return sl_escape(dst, size, src, strlen(src));
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool sl_utf8_unclean(const char *src, size_t len)
{
	const char *end = src + len;

	if (memchr(src, 0, len) || !sl_utf8_valid(src, len))
		return true;
	for (const char *at = src; (at = memchr(at, '\\', (size_t)(end - at))); at++) {
		if (end - at >= 4 && at[1] == 'x' && is_hex(at[2]) && is_hex(at[3]))
			return true;
	}
	return false;
}

size_t sl_utf8_clean(char *dst, size_t size, const char *src, size_t len)
{
	struct sink sink = { .dst = dst, .size = size };
	bool whole = true;

	while (len > 0 && whole) {
		char unit[8];
		uint32_t code;
		size_t n = sl_utf8_decode(src, len, &code);

		if (n > 0 && code == '\\') {
			whole = sink_put(&sink, "\\\\", 2);
		} else if (n > 0 && code != 0) {
			whole = sink_put(&sink, src, n);
		} else {
			snprintf(unit, sizeof(unit), "\\x%02x", (unsigned char)*src);
			whole = sink_put(&sink, unit, 4);
			n = 1;
		}
		src += n;
		len -= n;
	}
	return sink_end(&sink, whole);
}

/* Bytes of the longest prefix of `text` that takes at most `columns`; *used is its width. */
static size_t prefix_bytes(const char *text, size_t columns, size_t *used)
{
	size_t left = strlen(text);
	size_t bytes = 0;

	*used = 0;
	while (left > 0) {
		uint32_t code = '?';
		size_t n = sl_utf8_decode(text + bytes, left, &code);
		unsigned int width = sl_utf8_columns(code);

		if (*used + width > columns)
			break;
		n = n > 0 ? n : 1;
		*used += width;
		bytes += n;
		left -= n;
	}
	return bytes;
}

size_t sl_elide(char *dst, size_t size, const char *src, size_t columns)
{
	size_t width = sl_utf8_width(src);
	size_t head_width, skip_width, head, skip;

	if (size == 0)
		return 0;
	if (width <= columns) {
		/* A destination that is too small cuts like a narrow column does. */
		if (strlen(src) < size) {
			memcpy(dst, src, strlen(src) + 1);
			return width;
		}
		sl_escape_again(dst, size, src, strlen(src));
		return sl_utf8_width(dst);
	}
	if (columns == 0) {
		dst[0] = '\0';
		return 0;
	}
	head = prefix_bytes(src, (columns - 1) / 2, &head_width);
	/* Skip at least so much that head, ellipsis and tail fit. */
	skip = prefix_bytes(src, width - (columns - 1 - head_width), &skip_width);
	if (width - skip_width > columns - 1 - head_width) {
		size_t one;

		/* A wide character straddles the border: drop it whole. */
		skip += prefix_bytes(src + skip, 2, &one);
		skip_width += one;
	}
	if (head + strlen(src + skip) + sizeof(ELLIPSIS) > size)
		sl_escape_again(dst, size, src, strlen(src));
	else
		snprintf(dst, size, "%.*s" ELLIPSIS "%s", (int)head, src, src + skip);
	return sl_utf8_width(dst);
}
