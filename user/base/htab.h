/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table with open addressing. Keys and values have a fixed size and are held by
 * value; keys are compared byte for byte, so padding in a key must be zero. The hash is
 * seeded per table: whoever chooses keys can't aim at one slot. Not locked.
 *
 *	sl_htab_new(&tab, sizeof(uint64_t), sizeof(struct row));
 *	row = sl_htab_add(tab, &key, &added);
 *	for (size_t at = 0; sl_htab_next(tab, &at, &key, &value);) …
 *	sl_htab_free(&tab);
 *
 * Pointers to keys and values are valid until the next add or delete.
 */
#ifndef SLUICE_USER_HTAB_H
#define SLUICE_USER_HTAB_H

#include <stdbool.h>
#include <stddef.h>

struct sl_htab;

/* Sizes in bytes; `value_size` 0 makes a set. -EINVAL for a key of no bytes, -ENOMEM. */
int sl_htab_new(struct sl_htab **out, size_t key_size, size_t value_size);
void sl_htab_free(struct sl_htab **tab);

size_t sl_htab_count(const struct sl_htab *tab);

/* The value of `key` or NULL. */
void *sl_htab_get(const struct sl_htab *tab, const void *key);

/*
 * The value of `key`, made and zeroed when there was none; *added (may be NULL) says
 * which. NULL when there is no memory: the table is as it was.
 */
void *sl_htab_add(struct sl_htab *tab, const void *key, bool *added);

/* Whether there was such a key. */
bool sl_htab_del(struct sl_htab *tab, const void *key);

/*
 * Walks all rows in no order: start with *at = 0; `key` and `value` may be NULL. False at
 * the end. Adding or deleting during a walk is not allowed.
 */
bool sl_htab_next(const struct sl_htab *tab, size_t *at, const void **key, void **value);

#endif
