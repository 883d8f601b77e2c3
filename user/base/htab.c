/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/htab.h"

#define FIRST_SLOTS 16

/*
 * A row is its key, then its value, each rounded up to 8 bytes. hashes[i] is 0 for an
 * empty slot. At most 3/4 of the slots are used, so a probe always ends.
 */
struct sl_htab {
	uint32_t *hashes;
	unsigned char *rows;
	size_t slots; /* power of two */
	size_t count;
	size_t key_size;
	size_t value_size;
	size_t value_offset;
	size_t row_size;
	uint64_t seed;
};

static uint32_t hash_key(const struct sl_htab *tab, const void *key)
{
	uint64_t hash = sl_hash_bytes(key, tab->key_size, tab->seed);
	uint32_t folded = (uint32_t)(hash ^ hash >> 32);

	return folded ? folded : 1;
}

static int allocate(struct sl_htab *tab, size_t slots)
{
	_cleanup_free_ uint32_t *hashes = calloc(slots, sizeof(*hashes));
	_cleanup_free_ unsigned char *rows = reallocarray(NULL, slots, tab->row_size);

	if (!hashes || !rows)
		return -ENOMEM;
	tab->hashes = TAKE_PTR(hashes);
	tab->rows = TAKE_PTR(rows);
	tab->slots = slots;
	return 0;
}

static unsigned char *row_at(const struct sl_htab *tab, size_t slot)
{
	return tab->rows + slot * tab->row_size;
}

/* The slot of `key`, or the empty one where it would go. */
static size_t find_slot(const struct sl_htab *tab, const void *key, uint32_t hash)
{
	size_t slot = hash & (tab->slots - 1);

	while (tab->hashes[slot]) {
		if (tab->hashes[slot] == hash && !memcmp(row_at(tab, slot), key, tab->key_size))
			break;
		slot = (slot + 1) & (tab->slots - 1);
	}
	return slot;
}

int sl_htab_new(struct sl_htab **out, size_t key_size, size_t value_size)
{
	struct sl_htab *tab;
	int ret;

	if (key_size == 0 || key_size > 1 << 20 || value_size > 1 << 20)
		return -EINVAL;
	tab = calloc(1, sizeof(*tab));
	if (!tab)
		return -ENOMEM;
	tab->key_size = key_size;
	tab->value_size = value_size;
	tab->value_offset = (key_size + 7) & ~(size_t)7;
	tab->row_size = tab->value_offset + ((value_size + 7) & ~(size_t)7);
	tab->seed = sl_hash_seed();
	ret = allocate(tab, FIRST_SLOTS);
	if (ret) {
		free(tab);
		return ret;
	}
	*out = tab;
	return 0;
}

void sl_htab_free(struct sl_htab **tab)
{
	if (!tab || !*tab)
		return;
	free((*tab)->hashes);
	free((*tab)->rows);
	free(*tab);
	*tab = NULL;
}

size_t sl_htab_count(const struct sl_htab *tab)
{
	return tab->count;
}

void *sl_htab_get(const struct sl_htab *tab, const void *key)
{
	size_t slot = find_slot(tab, key, hash_key(tab, key));

	return tab->hashes[slot] ? row_at(tab, slot) + tab->value_offset : NULL;
}

static int grow(struct sl_htab *tab)
{
	struct sl_htab old = *tab;
	int ret;

	if (tab->slots > (SIZE_MAX >> 2) || tab->slots > UINT32_MAX / 2)
		return -ENOMEM;
	ret = allocate(tab, tab->slots * 2);
	if (ret)
		return ret;
	for (size_t i = 0; i < old.slots; i++) {
		size_t slot;

		if (!old.hashes[i])
			continue;
		slot = find_slot(tab, row_at(&old, i), old.hashes[i]);
		tab->hashes[slot] = old.hashes[i];
		memcpy(row_at(tab, slot), row_at(&old, i), tab->row_size);
	}
	free(old.hashes);
	free(old.rows);
	return 0;
}

void *sl_htab_add(struct sl_htab *tab, const void *key, bool *added)
{
	uint32_t hash = hash_key(tab, key);
	size_t slot = find_slot(tab, key, hash);
	bool missing = !tab->hashes[slot];

	if (missing && tab->count + 1 > tab->slots / 4 * 3) {
		if (grow(tab))
			return NULL;
		slot = find_slot(tab, key, hash);
	}
	if (missing) {
		tab->hashes[slot] = hash;
		tab->count++;
		memset(row_at(tab, slot), 0, tab->row_size);
		memcpy(row_at(tab, slot), key, tab->key_size);
	}
	if (added)
		*added = missing;
	return row_at(tab, slot) + tab->value_offset;
}

bool sl_htab_del(struct sl_htab *tab, const void *key)
{
	size_t mask = tab->slots - 1;
	size_t hole = find_slot(tab, key, hash_key(tab, key));

	if (!tab->hashes[hole])
		return false;
	/* Close the hole with later rows of the same run, so that no tombstones are needed. */
	for (size_t next = (hole + 1) & mask; tab->hashes[next]; next = (next + 1) & mask) {
		size_t home = tab->hashes[next] & mask;

		/* A row may move back to the hole only if that is not before its home. */
		if (((next - home) & mask) < ((next - hole) & mask))
			continue;
		tab->hashes[hole] = tab->hashes[next];
		memcpy(row_at(tab, hole), row_at(tab, next), tab->row_size);
		hole = next;
	}
	tab->hashes[hole] = 0;
	tab->count--;
	return true;
}

bool sl_htab_next(const struct sl_htab *tab, size_t *at, const void **key, void **value)
{
	for (; *at < tab->slots; (*at)++) {
		if (!tab->hashes[*at])
			continue;
		if (key)
			*key = row_at(tab, *at);
		if (value)
			*value = row_at(tab, *at) + tab->value_offset;
		(*at)++;
		return true;
	}
	return false;
}
