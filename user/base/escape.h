/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text that a workload chose (paths, comm, names) on its way to a terminal, a log or
 * JSON. Everything here is bounded by the destination.
 */
#ifndef SLUICE_USER_ESCAPE_H
#define SLUICE_USER_ESCAPE_H

#include <stddef.h>

#include "base/utf8.h"

/*
 * Writes `src` (`len` bytes, NUL among them allowed) as one safe line into `dst` (`size`
 * bytes with terminator). Control bytes, DEL and bytes of no valid character become
 * \xHH; characters that control, hide or reorder text become \u{...}; a backslash becomes
 * two, so that different texts stay different. All else passes. Text that does not fit is
 * cut between units and ends with "…" (with nothing, when `size` is below 4). Returns the
 * bytes written without terminator.
 */
size_t sl_escape(char *dst, size_t size, const char *src, size_t len);

/*
 * The same, but a backslash passes: what is escaped already stays as it is. For a whole
 * message whose parts were escaped where that matters.
 */
size_t sl_escape_again(char *dst, size_t size, const char *src, size_t len);

/* The same of a terminated string; NULL is written as "-". */
size_t sl_escape_text(char *dst, size_t size, const char *src);

/*
 * Whether text can't go into JSON as it is: a byte in it belongs to no character or is NUL,
 * or it has the characters \xHH, which would be taken for such a byte.
 */
bool sl_utf8_unclean(const char *src, size_t len);

/*
 * Copies `src` to `dst` (`size` bytes with terminator) as valid UTF-8, for JSON: a byte
 * that belongs to no character, and NUL, become the four characters \xHH, a backslash
 * becomes two. For text that is unclean: so no other text becomes the same. All other
 * characters pass, controls too (the JSON writer escapes them). Text that does not fit is
 * cut at a character and ends as in sl_escape(). Returns the bytes written without
 * terminator.
 */
size_t sl_utf8_clean(char *dst, size_t size, const char *src, size_t len);

/* Size of `dst` with which sl_escape() and sl_utf8_clean() never cut `len` bytes. */
#define SL_ESCAPE_MAX(len) (4 * (len) + 1)

/*
 * Writes `src`, which is safe text, into at most `columns` terminal columns: what is too
 * wide loses its middle to "…". The tail, where a path has its name, gets the larger
 * half. `size` should be strlen(src) + 4 or more: with less, the text is cut at its end
 * like any other. Returns the columns used.
 */
size_t sl_elide(char *dst, size_t size, const char *src, size_t columns);

#endif
