/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Byte strings of any length, each kept once and known by a number: 0, 1, 2, … in the
 * order of adding. Compared byte for byte; the hash is seeded per table. Not locked.
 */
#ifndef SLUICE_USER_INTERN_H
#define SLUICE_USER_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_intern;

#define SL_INTERN_NONE UINT32_MAX

int sl_intern_new(struct sl_intern **out);
void sl_intern_free(struct sl_intern **table);

/*
 * The number of a string, given to it now if it is new (*added, may be NULL, says which).
 * SL_INTERN_NONE: no memory; the table is as it was.
 */
uint32_t sl_intern_add(struct sl_intern *table, const void *data, size_t len, bool *added);

/* SL_INTERN_NONE: there is no such string. */
uint32_t sl_intern_find(const struct sl_intern *table, const void *data, size_t len);

uint32_t sl_intern_count(const struct sl_intern *table);

/*
 * The bytes, aligned for any object, with a terminator behind them; valid as long as the
 * table. `len` may be NULL.
 */
const void *sl_intern_at(const struct sl_intern *table, uint32_t id, size_t *len);

#endif
