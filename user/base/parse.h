/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strict parsing of what a person typed. The whole text must be the value: no spaces, no
 * sign, no trailing junk, no leading zeros, no octal. Functions return 0, -EINVAL for
 * text of the wrong form, -ERANGE for a value outside its range; *out is untouched then.
 */
#ifndef SLUICE_USER_PARSE_H
#define SLUICE_USER_PARSE_H

#include <stdint.h>

#include <sluice/sock.h>

/* Decimal, min <= value <= max. */
int sl_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);
int sl_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out);

/* Decimal with an optional minus sign. */
int sl_parse_s32(const char *text, int32_t min, int32_t max, int32_t *out);

/* Bytes: a number and at most one of K, M, G, T (powers of 1024, either case). */
int sl_parse_size(const char *text, uint64_t *bytes);

/* A number and one of us, ms, s, m, h, d; a bare number only when it is 0. */
int sl_parse_duration_us(const char *text, uint64_t *us);

/* "192.0.2.1" (stored IPv4-mapped) or "2001:db8::1"; no scope, no brackets, no name. */
int sl_parse_addr(const char *text, __be32 addr_be[4]);

/* "192.0.2.1:443" or "[2001:db8::1]:443"; port 0 to 65535. */
int sl_parse_endpoint(const char *text, struct sl_endpoint *out);

#endif
