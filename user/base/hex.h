/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes as hexadecimal digits and back. */
#ifndef SLUICE_USER_HEX_H
#define SLUICE_USER_HEX_H

#include <stddef.h>

/* Lower case, 2 * len digits and a terminator. */
void sl_hex(char *dst, const void *bytes, size_t len);

/* Exactly 2 * len digits of either case; -EINVAL, `out` untouched, for all else. */
int sl_hex_parse(const char *text, void *out, size_t len);

#endif
