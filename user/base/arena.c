/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* Small at first: an agent has several of these for each sandbox, most of them nearly empty. */
#define BLOCK_MIN (1U << 10)
#define BLOCK_MAX (64U << 10)

struct block {
	struct block *next;
	size_t size, used;
	_Alignas(max_align_t) char data[];
};

struct sl_arena {
	struct block *blocks; /* the first one is filled */
	size_t room;          /* of the next one */
};

int sl_arena_new(struct sl_arena **out)
{
	struct sl_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return -ENOMEM;
	arena->room = BLOCK_MIN;
	*out = arena;
	return 0;
}

void sl_arena_free(struct sl_arena **arena)
{
	if (!arena || !*arena)
		return;
	for (struct block *block = (*arena)->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	free(*arena);
	*arena = NULL;
}

/* A large object gets a block of its own, behind the one that is being filled. */
static struct block *add_block(struct sl_arena *arena, size_t size)
{
	size_t room = size > arena->room / 4 ? size : arena->room;
	struct block *block;

	if (room > SIZE_MAX - sizeof(*block))
		return NULL;
	block = malloc(sizeof(*block) + room);
	if (!block)
		return NULL;
	block->size = room;
	block->used = 0;
	if (arena->room < BLOCK_MAX)
		arena->room *= 2;
	if (room == size && arena->blocks) {
		block->next = arena->blocks->next;
		arena->blocks->next = block;
	} else {
		block->next = arena->blocks;
		arena->blocks = block;
	}
	return block;
}

static void *take(struct sl_arena *arena, size_t size, size_t align)
{
	struct block *block = arena->blocks;
	size_t at = block ? (block->used + align - 1) & ~(align - 1) : 0;

	if (!block || at > block->size || size > block->size - at) {
		block = add_block(arena, size);
		if (!block)
			return NULL;
		at = 0;
	}
	block->used = at + size;
	return block->data + at;
}

void *sl_arena_alloc(struct sl_arena *arena, size_t size)
{
	return take(arena, size, _Alignof(max_align_t));
}

char *sl_arena_text(struct sl_arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? take(arena, len + 1, 1) : NULL;

	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

void *sl_arena_copy(struct sl_arena *arena, const void *data, size_t size)
{
	void *copy = sl_arena_alloc(arena, size);

	if (copy && size)
		memcpy(copy, data, size);
	return copy;
}
