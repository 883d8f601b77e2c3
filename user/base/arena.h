/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that is released all at once: for things that live and die together, like what a
 * file was parsed into. Not locked.
 */
#ifndef SLUICE_USER_ARENA_H
#define SLUICE_USER_ARENA_H

#include <stddef.h>

struct sl_arena;

int sl_arena_new(struct sl_arena **out);
void sl_arena_free(struct sl_arena **arena);

/* `size` bytes, not zeroed, aligned for any object; never NULL for size 0. NULL: no memory. */
void *sl_arena_alloc(struct sl_arena *arena, size_t size);

/* A copy of `len` bytes and a terminator. */
char *sl_arena_text(struct sl_arena *arena, const char *text, size_t len);

/* A copy of `size` bytes. */
void *sl_arena_copy(struct sl_arena *arena, const void *data, size_t size);

#endif
