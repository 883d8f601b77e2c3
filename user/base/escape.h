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
 * \xHH; characters that control, hide or reorder text become \u{...}. All else passes,
 * the backslash too: escaping twice changes nothing, so a message may be made of
 * escaped parts (exact text is JSON's task). Text that does not fit is cut between
 * units and ends with "…" (with nothing, when `size` is below 4). Returns the bytes
 * written without terminator.
 */
size_t sl_escape(char *dst, size_t size, const char *src, size_t len);

/* The same of a terminated string; NULL is written as "-". */
size_t sl_escape_text(char *dst, size_t size, const char *src);

/*
 * Copies `src` to `dst` (`size` bytes with terminator) as valid UTF-8, for JSON: a byte
 * that belongs to no character, and NUL, become the four characters \xHH. All other
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
