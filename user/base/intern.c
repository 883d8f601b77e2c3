/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/intern.h"

#define FIRST_SLOTS 16

struct item {
	const char *data;
	size_t len;
	uint64_t hash;
};

/* slots[i] is an item's number + 1, 0 for an empty slot; at most half are used. */
struct sl_intern {
	struct sl_arena *arena;
	struct sl_array items; /* struct item */
	uint32_t *slots;
	size_t slot_count; /* power of two */
	uint64_t seed;
};

int sl_intern_new(struct sl_intern **out)
{
	struct sl_intern *table = calloc(1, sizeof(*table));
	int ret;

	if (!table)
		return -ENOMEM;
	table->items = (struct sl_array)SL_ARRAY(struct item);
	table->seed = sl_hash_seed();
	table->slot_count = FIRST_SLOTS;
	table->slots = calloc(FIRST_SLOTS, sizeof(*table->slots));
	ret = table->slots ? sl_arena_new(&table->arena) : -ENOMEM;
	if (ret) {
		sl_intern_free(&table);
		return ret;
	}
	*out = table;
	return 0;
}

void sl_intern_free(struct sl_intern **table)
{
	if (!table || !*table)
		return;
	sl_arena_free(&(*table)->arena);
	sl_array_free(&(*table)->items);
	free((*table)->slots);
	free(*table);
	*table = NULL;
}

/* The slot of the string, or the empty one where it would go. */
static size_t find_slot(const struct sl_intern *table, const void *data, size_t len, uint64_t hash)
{
	size_t slot = hash & (table->slot_count - 1);

	for (; table->slots[slot]; slot = (slot + 1) & (table->slot_count - 1)) {
		const struct item *item = sl_array_at(&table->items, table->slots[slot] - 1);

		if (item->hash == hash && item->len == len &&
		    (!len || !memcmp(item->data, data, len)))
			break;
	}
	return slot;
}

static int grow(struct sl_intern *table)
{
	size_t count = table->slot_count * 2;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->items.count; i++) {
		const struct item *item = sl_array_at(&table->items, i);
		size_t slot = item->hash & (count - 1);

		while (slots[slot])
			slot = (slot + 1) & (count - 1);
		slots[slot] = (uint32_t)i + 1;
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = count;
	return 0;
}

uint32_t sl_intern_add(struct sl_intern *table, const void *data, size_t len, bool *added)
{
	uint64_t hash = sl_hash_bytes(data, len, table->seed);
	size_t slot = find_slot(table, data, len, hash);
	struct item *item;
	char *copy;

	if (added)
		*added = !table->slots[slot];
	if (table->slots[slot])
		return table->slots[slot] - 1;
	if (table->items.count >= SL_INTERN_NONE - 1 || len == SIZE_MAX)
		return SL_INTERN_NONE;
	if ((table->items.count + 1) * 2 > table->slot_count) {
		if (grow(table))
			return SL_INTERN_NONE;
		slot = find_slot(table, data, len, hash);
	}
	copy = sl_arena_alloc(table->arena, len + 1);
	item = copy ? sl_array_add(&table->items) : NULL;
	if (!item)
		return SL_INTERN_NONE;
	if (len)
		memcpy(copy, data, len);
	copy[len] = '\0';
	*item = (struct item){ .data = copy, .len = len, .hash = hash };
	table->slots[slot] = (uint32_t)table->items.count;
	return (uint32_t)table->items.count - 1;
}

uint32_t sl_intern_find(const struct sl_intern *table, const void *data, size_t len)
{
	uint64_t hash = sl_hash_bytes(data, len, table->seed);

	/* The number of an empty slot is 0 - 1, which is SL_INTERN_NONE. */
	return table->slots[find_slot(table, data, len, hash)] - 1;
}

uint32_t sl_intern_count(const struct sl_intern *table)
{
	return (uint32_t)table->items.count;
}

const void *sl_intern_at(const struct sl_intern *table, uint32_t id, size_t *len)
{
	const struct item *item = sl_array_at(&table->items, id);

	if (!item)
		return NULL;
	if (len)
		*len = item->len;
	return item->data;
}
