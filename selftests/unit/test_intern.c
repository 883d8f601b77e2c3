/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/intern.h"

Test(intern, strings_are_numbered_in_order_and_stay)
{
	struct sl_intern *table = NULL;
	const char *first;
	size_t len;

	cr_assert_eq(sl_intern_new(&table), 0);
	cr_expect_eq(sl_intern_find(table, "a", 1), SL_INTERN_NONE);
	for (uint32_t i = 0; i < 10000; i++) {
		char text[16];
		bool added = false;
		int n = snprintf(text, sizeof(text), "%u", i);

		cr_assert_eq(sl_intern_add(table, text, (size_t)n, &added), i);
		cr_assert(added);
		if (i == 0)
			first = sl_intern_at(table, 0, NULL);
	}
	cr_expect_eq(sl_intern_at(table, 0, &len), first);
	cr_expect_str_eq(first, "0");
	cr_expect_eq(len, 1);
	for (uint32_t i = 0; i < 10000; i++) {
		char text[16];
		bool added = true;
		int n = snprintf(text, sizeof(text), "%u", i);

		cr_assert_eq(sl_intern_add(table, text, (size_t)n, &added), i);
		cr_assert_not(added);
		cr_assert_eq(sl_intern_find(table, text, (size_t)n), i);
	}
	cr_expect_eq(sl_intern_count(table), 10000);
	cr_expect_null(sl_intern_at(table, 10000, &len));
	sl_intern_free(&table);
	cr_expect_null(table);
	sl_intern_free(&table);
}

Test(intern, bytes_are_compared_whole)
{
	struct sl_intern *table = NULL;

	cr_assert_eq(sl_intern_new(&table), 0);
	cr_expect_eq(sl_intern_add(table, "", 0, NULL), 0);
	cr_expect_eq(sl_intern_add(table, "a\0b", 3, NULL), 1);
	cr_expect_eq(sl_intern_add(table, "a\0c", 3, NULL), 2);
	cr_expect_eq(sl_intern_add(table, "a", 1, NULL), 3);
	cr_expect_eq(sl_intern_add(table, "a\0", 2, NULL), 4);
	cr_expect_eq(sl_intern_find(table, "a\0c", 3), 2);
	cr_expect_eq(sl_intern_find(table, "", 0), 0);
	sl_intern_free(&table);
}

Test(intern, arena_gives_aligned_memory_that_does_not_overlap)
{
	struct sl_arena *arena = NULL;
	unsigned char *blocks[300];

	cr_assert_eq(sl_arena_new(&arena), 0);
	for (size_t i = 0; i < 300; i++) {
		size_t size = i % 50 == 49 ? 100000 : i;

		cr_assert_not_null(sl_arena_text(arena, "x", 1));
		blocks[i] = sl_arena_alloc(arena, size);
		cr_assert_not_null(blocks[i]);
		cr_assert_eq((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
		memset(blocks[i], (int)i & 255, size);
	}
	for (size_t i = 0; i < 300; i++) {
		size_t size = i % 50 == 49 ? 100000 : i;

		for (size_t j = 0; j < size; j++)
			cr_assert_eq(blocks[i][j], i & 255);
	}
	cr_expect_null(sl_arena_alloc(arena, SIZE_MAX - 8));
	sl_arena_free(&arena);
	cr_expect_null(arena);
	sl_arena_free(&arena);
}
