/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UTF-8 as text that somebody else chose: strict decoding (RFC 3629: no overlong forms,
 * no surrogates, nothing above U+10FFFF), and how wide a terminal shows it. No locale.
 */
#ifndef SLUICE_USER_UTF8_H
#define SLUICE_USER_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the first character of `src`. Returns its bytes (1 to 4), or 0 when `len` is 0
 * or the bytes are no valid character; *code is untouched then. NUL is a valid character.
 */
size_t sl_utf8_decode(const char *src, size_t len, uint32_t *code);

bool sl_utf8_valid(const char *src, size_t len);

/*
 * Copies a terminated string to `dst` (`size` bytes with terminator, at least 1) as valid
 * UTF-8, for text that is stored and read back: a byte of no character becomes U+FFFD, all
 * else stays, and so does what was copied before. Cut at a character when it does not fit.
 */
void sl_utf8_copy(char *dst, size_t size, const char *src);

/*
 * Whether a character may reach a terminal as it is: it moves no cursor, breaks no line,
 * reorders no text and is not invisible.
 */
bool sl_utf8_safe(uint32_t code);

/* Terminal columns of one character: 0 (combining), 1, or 2 (East Asian wide, emoji). */
unsigned int sl_utf8_columns(uint32_t code);

/* Terminal columns of a terminated string; a byte of no character counts as one. */
size_t sl_utf8_width(const char *text);

#endif
