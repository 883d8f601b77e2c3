/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policies of any size to measure with. */
#ifndef SLUICE_BENCH_POLICY_TEXT_H
#define SLUICE_BENCH_POLICY_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Rules of one entry; entry i has the image /b(i modulo SL_POLICY_TEXT_IMAGES). */
#define SL_POLICY_TEXT_PER_ENTRY 10
#define SL_POLICY_TEXT_IMAGES 256

/*
 * YAML with `rules` endpoints, half of them prefixes, half names, and an entry that lets
 * the image `exe` reach 192.0.2.0/24 at `port` as `transport`, and has a wildcard that
 * only a held exec can match; `exe` NULL: without it. NULL: no memory, or no such length.
 * The caller frees it.
 */
char *sl_policy_text(uint32_t rules, const char *exe, const char *transport, uint16_t port,
		     size_t *len);

#endif
