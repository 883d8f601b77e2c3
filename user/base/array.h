/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A growable array of equal items, held by value; items are zeroed when added. Declare
 * with SL_ARRAY(type), release with sl_array_free(), which makes it empty and usable
 * again. Pointers to items are valid until the next add.
 */
#ifndef SLUICE_USER_ARRAY_H
#define SLUICE_USER_ARRAY_H

#include <stddef.h>

struct sl_array {
	void *data;
	size_t count;
	size_t item; /* bytes of one */
	size_t room; /* items that fit */
};

#define SL_ARRAY(type)               \
	{                            \
		.item = sizeof(type) \
	}
#define _cleanup_array_ __attribute__((cleanup(sl_array_free)))

/* Appends a zeroed item. NULL when there is no memory: the array is as it was. */
void *sl_array_add(struct sl_array *array);

/* NULL when `index` is not below the count. */
void *sl_array_at(const struct sl_array *array, size_t index);

void sl_array_free(struct sl_array *array);

#endif
