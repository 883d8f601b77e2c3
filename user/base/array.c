/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* At first: large items are seldom many. */
#define FIRST_BYTES 512

static size_t first_room(const struct sl_array *array)
{
	return array->item < FIRST_BYTES / 8 ? 8 : FIRST_BYTES / array->item + 1;
}

void *sl_array_add(struct sl_array *array)
{
	void *item;

	if (array->count == array->room) {
		size_t room = array->room ? array->room * 2 : first_room(array);
		size_t bytes;
		void *data;

		if (room < array->room || __builtin_mul_overflow(room, array->item, &bytes) ||
		    bytes > PTRDIFF_MAX)
			return NULL;
		data = realloc(array->data, bytes);
		if (!data)
			return NULL;
		array->data = data;
		array->room = room;
	}
	item = (char *)array->data + array->count++ * array->item;
	return memset(item, 0, array->item);
}

void *sl_array_at(const struct sl_array *array, size_t index)
{
	return index < array->count ? (char *)array->data + index * array->item : NULL;
}

void sl_array_free(struct sl_array *array)
{
	if (!array)
		return;
	free(array->data);
	array->data = NULL;
	array->count = 0;
	array->room = 0;
}
