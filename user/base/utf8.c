/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

struct range {
	uint32_t first;
	uint32_t last;
};

/* Controls, format characters, line and paragraph separators, and tags. */
static const struct range
	unsafe[] = {
		{ 0x0000, 0x001f }, /* C0 */
		{ 0x007f, 0x009f }, /* DEL, C1: U+009B starts a control sequence */
		{ 0x00ad, 0x00ad }, /* soft hyphen */
		{ 0x034f, 0x034f }, /* combining grapheme joiner */
		{ 0x0600, 0x0605 }, /* Arabic number signs */
		{ 0x061c, 0x061c }, /* Arabic letter mark */
		{ 0x06dd, 0x06dd },
		{ 0x070f, 0x070f },
		{ 0x115f, 0x1160 }, /* Hangul fillers: blank letters */
		{ 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f },
		{ 0x200b, 0x200f }, /* zero width, marks of direction */
		{ 0x2028, 0x202e }, /* separators, embeddings and overrides */
		{ 0x2060, 0x206f }, /* word joiner, isolates */
		{ 0x3164, 0x3164 },
		{ 0xd800, 0xdfff }, /* surrogates: not decodable, listed for completeness */
		{ 0xfdd0, 0xfdef }, /* noncharacters */
		{ 0xfe00, 0xfe0f }, /* variation selectors */
		{ 0xfeff, 0xfeff }, /* byte order mark */
		{ 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },
		{ 0xfffe, 0xffff },
		{ 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff }, /* tags */
	};

static const struct range combining[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a },
	{ 0x064b, 0x065f }, { 0x0900, 0x0902 }, { 0x0e31, 0x0e31 }, { 0x0e34, 0x0e3a },
	{ 0x0e47, 0x0e4e }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff },
	{ 0xfe20, 0xfe2f },
};

static const struct range wide[] = {
	{ 0x1100, 0x115e },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },   { 0xac00, 0xd7a3 },
	{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
	{ 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd },
};

static bool in_ranges(const struct range *ranges, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count && code >= ranges[i].first; i++) {
		if (code <= ranges[i].last)
			return true;
	}
	return false;
}

size_t sl_utf8_decode(const char *src, size_t len, uint32_t *code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)src;
	uint32_t value;
	size_t need;

	if (len == 0)
		return 0;
	if (s[0] < 0x80) {
		*code = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		need = 2;
		value = s[0] & 0x1f;
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		need = 3;
		value = s[0] & 0x0f;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		need = 4;
		value = s[0] & 0x07;
	} else {
		return 0;
	}
	if (len < need)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (s[i] & 0x3f);
	}
	if (value < smallest[need] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	*code = value;
	return need;
}

bool sl_utf8_valid(const char *src, size_t len)
{
	uint32_t code;

	while (len > 0) {
		size_t n = sl_utf8_decode(src, len, &code);

		if (n == 0)
			return false;
		src += n;
		len -= n;
	}
	return true;
}

void sl_utf8_copy(char *dst, size_t size, const char *src)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	size_t left = strlen(src), used = 0;
	uint32_t code;

	while (left) {
		size_t n = sl_utf8_decode(src, left, &code);
		size_t bytes = n ?: sizeof(replacement) - 1;

		if (used + bytes >= size)
			break;
		memcpy(dst + used, n ? src : replacement, bytes);
		used += bytes;
		src += n ?: 1;
		left -= n ?: 1;
	}
	dst[used] = '\0';
}

bool sl_utf8_safe(uint32_t code)
{
	/* The last two code points of every plane are noncharacters. */
	if ((code & 0xfffe) == 0xfffe || code > 0x10ffff)
		return false;
	return !in_ranges(unsafe, ARRAY_SIZE(unsafe), code);
}

unsigned int sl_utf8_columns(uint32_t code)
{
	if (code < 0x300)
		return 1;
	if (in_ranges(combining, ARRAY_SIZE(combining), code))
		return 0;
	return in_ranges(wide, ARRAY_SIZE(wide), code) ? 2 : 1;
}

size_t sl_utf8_width(const char *text)
{
	size_t left = strlen(text);
	size_t width = 0;

	while (left > 0) {
		uint32_t code;
		size_t n = sl_utf8_decode(text, left, &code);

		width += n > 0 ? sl_utf8_columns(code) : 1;
		n = n > 0 ? n : 1;
		text += n;
		left -= n;
	}
	return width;
}
