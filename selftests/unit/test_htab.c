/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/htab.h"

#define KEYS 5000

/* A model that can't be wrong: one flag a key. */
Test(htab, agrees_with_a_model_under_random_work)
{
	static uint32_t model[KEYS];
	struct sl_htab *tab = NULL;
	size_t count = 0, walked = 0, at = 0;
	const void *key;
	void *value;

	srand(1);
	cr_assert_eq(sl_htab_new(&tab, sizeof(uint32_t), sizeof(uint32_t)), 0);
	for (uint32_t step = 1; step < 200000; step++) {
		uint32_t k = (uint32_t)rand() % KEYS;
		bool added = false;
		uint32_t *row;

		if (rand() % 2) {
			row = sl_htab_add(tab, &k, &added);
			cr_assert_eq(added, model[k] == 0);
			cr_assert_eq(*row, model[k]);
			*row = model[k] = step;
			count += added;
		} else {
			cr_assert_eq(sl_htab_del(tab, &k), model[k] != 0);
			count -= model[k] != 0;
			model[k] = 0;
		}
		cr_assert_eq(sl_htab_count(tab), count);
	}
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t *row = sl_htab_get(tab, &k);

		cr_assert_eq(row != NULL, model[k] != 0, "key %u", k);
		if (row)
			cr_assert_eq(*row, model[k]);
	}
	while (sl_htab_next(tab, &at, &key, &value)) {
		uint32_t k;

		memcpy(&k, key, sizeof(k));
		cr_assert_eq(*(uint32_t *)value, model[k]);
		walked++;
	}
	cr_expect_eq(walked, count);
	sl_htab_free(&tab);
	cr_expect_null(tab);
	sl_htab_free(&tab);
}

Test(htab, odd_key_sizes_and_binary_keys)
{
	for (size_t size = 1; size < 40; size++) {
		struct sl_htab *tab = NULL;
		unsigned char key[40] = { 0 };

		cr_assert_eq(sl_htab_new(&tab, size, 1), 0);
		for (unsigned int i = 0; i < 200; i++) {
			key[size - 1] = (unsigned char)i;
			*(char *)sl_htab_add(tab, key, NULL) = (char)i;
		}
		cr_expect_eq(sl_htab_count(tab), 200);
		for (unsigned int i = 0; i < 200; i++) {
			key[size - 1] = (unsigned char)i;
			cr_assert_eq(*(char *)sl_htab_get(tab, key), (char)i);
		}
		key[size - 1] = 200;
		cr_expect_null(sl_htab_get(tab, key));
		sl_htab_free(&tab);
	}
}

Test(htab, new_values_are_zero_also_after_delete)
{
	struct sl_htab *tab = NULL;
	uint64_t key = 1, zero[4] = { 0 };
	void *row;

	cr_assert_eq(sl_htab_new(&tab, sizeof(key), sizeof(zero)), 0);
	row = sl_htab_add(tab, &key, NULL);
	memset(row, 0xff, sizeof(zero));
	cr_expect(sl_htab_del(tab, &key));
	cr_expect_eq(memcmp(sl_htab_add(tab, &key, NULL), zero, sizeof(zero)), 0);
	sl_htab_free(&tab);
}

Test(htab, sets_and_bad_sizes)
{
	struct sl_htab *tab = NULL;
	uint32_t key = 3;

	cr_expect_eq(sl_htab_new(&tab, 0, 4), -EINVAL);
	cr_expect_null(tab);
	cr_assert_eq(sl_htab_new(&tab, sizeof(key), 0), 0);
	cr_expect_not(sl_htab_del(tab, &key));
	cr_expect_not_null(sl_htab_add(tab, &key, NULL));
	cr_expect_not_null(sl_htab_get(tab, &key));
	sl_htab_free(&tab);
}

Test(array, grows_zeroed_and_bounded)
{
	struct sl_array array = SL_ARRAY(uint32_t);

	cr_expect_null(sl_array_at(&array, 0));
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t *item = sl_array_add(&array);

		cr_assert_eq(*item, 0);
		*item = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(*(uint32_t *)sl_array_at(&array, i), i);
	cr_expect_null(sl_array_at(&array, 1000));
	sl_array_free(&array);
	cr_expect_eq(array.count, 0);
	cr_expect_not_null(sl_array_add(&array));
	sl_array_free(&array);
	sl_array_free(NULL);
}

Test(array, impossible_growth_fails_and_changes_nothing)
{
	struct sl_array array = { .item = SIZE_MAX / 2 + 1 };

	cr_expect_null(sl_array_add(&array));
	cr_expect_eq(array.count, 0);
	sl_array_free(&array);
}
