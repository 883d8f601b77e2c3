/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of executables and lineages, without a kernel: fake look-ups. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "identity/lineage_table.h"

#define FAKE_ROWS 64

/* The fake kernel: rows by id, and how often each map was asked. */
struct fake {
	struct sl_exe exes[FAKE_ROWS];
	struct sl_lineage lineages[2 * SL_LINEAGE_DEPTH];
	unsigned int exe_calls;
	unsigned int lineage_calls;
	int error;
};

static struct fake fake;
static struct sl_exe_table *exes;
static struct sl_lineage_table *lineages;

static int fake_exe(void *ctx, unsigned int id, struct sl_exe *out)
{
	struct fake *f = ctx;

	f->exe_calls++;
	if (f->error)
		return f->error;
	if (id >= FAKE_ROWS || !f->exes[id].id)
		return -ENOENT;
	*out = f->exes[id];
	return 0;
}

static int fake_lineage(void *ctx, unsigned int id, struct sl_lineage *out)
{
	struct fake *f = ctx;

	f->lineage_calls++;
	if (id >= 2 * SL_LINEAGE_DEPTH || !f->lineages[id].id)
		return -ENOENT;
	*out = f->lineages[id];
	return 0;
}

/* A world larger than any table: every id exists. */
static int endless_exe(void *ctx, unsigned int id, struct sl_exe *out)
{
	(void)ctx;
	*out = (struct sl_exe){ .id = id, .path_len = 2, .path = "/e" };
	return 0;
}

static int endless_lineage(void *ctx, unsigned int id, struct sl_lineage *out)
{
	(void)ctx;
	*out = (struct sl_lineage){ .id = id, .depth = 1, .key = { .exe = id } };
	return 0;
}

static const struct sl_identity_ops fake_ops = { fake_exe, fake_lineage, &fake };
static const struct sl_identity_ops endless_ops = { endless_exe, endless_lineage, NULL };

static void set_exe(unsigned int id, const char *path, unsigned int root_off)
{
	struct sl_exe *exe = &fake.exes[id];

	exe->id = id;
	exe->path_len = (unsigned short)strlen(path);
	exe->root_off = (unsigned short)root_off;
	strcpy(exe->path, path);
}

static void set_lineage(unsigned int id, unsigned int parent, unsigned int exe, unsigned int depth,
			unsigned int flags)
{
	fake.lineages[id] = (struct sl_lineage){
		.id = id,
		.depth = depth,
		.key = { .parent = parent, .exe = exe, .flags = flags },
	};
}

static void setup(void)
{
	memset(&fake, 0, sizeof(fake));
	cr_assert_eq(sl_exe_table_new(&exes, &fake_ops, 0), 0);
	cr_assert_eq(sl_lineage_table_new(&lineages, &fake_ops, exes, 0), 0);
}

static void teardown(void)
{
	sl_lineage_table_free(&lineages);
	sl_exe_table_free(&exes);
	cr_assert_null(exes);
	sl_exe_table_free(&exes);
	sl_lineage_table_free(&lineages);
}

TestSuite(exe_table, .init = setup, .fini = teardown);
TestSuite(lineage_table, .init = setup, .fini = teardown);

Test(exe_table, asks_the_kernel_once)
{
	const struct sl_exe_row *row, *again;

	set_exe(3, "/srv/box/usr/bin/node", strlen("/srv/box"));
	cr_assert_eq(sl_exe_table_get(exes, 3, &row), 0);
	cr_expect_str_eq(sl_exe_row_path(row), "/usr/bin/node");
	cr_expect_str_eq(sl_exe_row_global_path(row), "/srv/box/usr/bin/node");
	cr_assert_eq(sl_exe_table_get(exes, 3, &again), 0);
	cr_expect_eq(row, again);
	cr_expect_eq(fake.exe_calls, 1);
}

Test(exe_table, unknown_ids_and_errors_leave_out_alone)
{
	const struct sl_exe_row *row = (void *)&fake;

	cr_expect_eq(sl_exe_table_get(exes, 0, &row), -ENOENT);
	cr_expect_eq(fake.exe_calls, 0);
	cr_expect_eq(sl_exe_table_get(exes, 5, &row), -ENOENT);
	cr_expect_eq(sl_exe_table_get(exes, ~0U, &row), -ENOENT);
	fake.error = -EPERM;
	cr_expect_eq(sl_exe_table_get(exes, 6, &row), -EPERM);
	cr_expect_eq(row, (void *)&fake);
	cr_expect_eq(sl_exe_table_count(exes), 0);
	/* Not remembered: the row may appear later. */
	fake.error = 0;
	set_exe(5, "/bin/late", 0);
	cr_expect_eq(sl_exe_table_get(exes, 5, &row), 0);
}

Test(exe_table, hostile_lengths_and_offsets)
{
	const struct sl_exe_row *row;

	set_exe(1, "/bin/a", 7); /* beyond the end */
	set_exe(2, "/bin/a", 6); /* at the end: an empty path is no path */
	set_exe(3, "/bin/a", 65535);
	set_exe(4, "/bin/a", 0);
	fake.exes[4].path_len = 65535;
	set_exe(5, "", 0);
	set_exe(6, "/bin/a", 0);
	fake.exes[6].path_len = 3;
	for (unsigned int id = 1; id <= 4; id++) {
		cr_assert_eq(sl_exe_table_get(exes, id, &row), 0);
		cr_expect_str_eq(sl_exe_row_path(row), "/bin/a", "id %u", id);
		cr_expect_eq(row->path_len, 6);
	}
	cr_assert_eq(sl_exe_table_get(exes, 5, &row), 0);
	cr_expect_str_eq(sl_exe_row_path(row), "");
	cr_assert_eq(sl_exe_table_get(exes, 6, &row), 0);
	cr_expect_str_eq(sl_exe_row_path(row), "/bi");

	/* No terminator anywhere in the record. */
	fake.exes[7].id = 7;
	fake.exes[7].path_len = 65535;
	memset(fake.exes[7].path, 'x', SL_PATH_MAX);
	cr_assert_eq(sl_exe_table_get(exes, 7, &row), 0);
	cr_expect_eq(strlen(sl_exe_row_path(row)), SL_PATH_MAX - 1);

	/* A record that claims another id is filed under the one that was asked for. */
	set_exe(8, "/bin/a", 0);
	fake.exes[8].id = 9;
	cr_assert_eq(sl_exe_table_get(exes, 8, &row), 0);
	cr_expect_eq(row->id, 8);
}

Test(exe_table, bounded_and_borrowed_rows_stay)
{
	struct sl_exe_table *small;
	const struct sl_exe_row *first, *row;

	cr_assert_eq(sl_exe_table_new(&small, &endless_ops, 1), 0);
	for (unsigned int round = 0; round < 50; round++) {
		unsigned int base = 1 + round * 1000;

		cr_assert_eq(sl_exe_table_get(small, base, &first), 0);
		for (unsigned int i = 1; i < SL_EXE_TABLE_BORROW; i++)
			cr_assert_eq(sl_exe_table_get(small, base + i, &row), 0);
		cr_expect_eq(first->id, base);
		cr_expect_leq(sl_exe_table_count(small), SL_EXE_TABLE_BORROW);
	}
	sl_exe_table_free(&small);
}

Test(lineage_table, chain_nearest_first)
{
	struct sl_chain chain;

	set_exe(1, "/usr/bin/bash", 0);
	set_exe(2, "/usr/bin/node", 0);
	set_exe(3, "/usr/bin/curl", 0);
	set_exe(4, "tool.js", 0);
	set_lineage(1, 0, 1, 1, SL_LINEAGE_OUTSIDE);
	set_lineage(2, 1, 2, 2, 0);
	set_lineage(3, 2, 3, 3, 0);
	fake.lineages[2].key.script = 4;
	cr_assert_eq(sl_lineage_table_chain(lineages, 3, &chain), 0);
	cr_assert_eq(chain.count, 3);
	cr_expect_not(chain.cut);
	cr_expect_str_eq(sl_exe_row_path(chain.images[0].exe), "/usr/bin/curl");
	cr_expect_str_eq(sl_exe_row_path(chain.images[1].exe), "/usr/bin/node");
	cr_expect_str_eq(sl_exe_row_path(chain.images[1].script), "tool.js");
	cr_expect_str_eq(sl_exe_row_path(chain.images[2].exe), "/usr/bin/bash");
	cr_expect_null(chain.images[0].script);
	cr_expect_not(chain.images[1].outside);
	cr_expect(chain.images[2].outside);

	cr_assert_eq(sl_lineage_table_chain(lineages, 3, &chain), 0);
	cr_expect_eq(fake.lineage_calls, 3);
	cr_expect_eq(fake.exe_calls, 4);
}

Test(lineage_table, unknown_parts)
{
	struct sl_chain chain = { .count = 77 };

	cr_expect_eq(sl_lineage_table_chain(lineages, 0, &chain), -ENOENT);
	cr_expect_eq(sl_lineage_table_chain(lineages, 9, &chain), -ENOENT);
	cr_expect_eq(chain.count, 77);
	set_lineage(9, 8, 42, 2, 0); /* neither its image nor its parent is known */
	cr_assert_eq(sl_lineage_table_chain(lineages, 9, &chain), 0);
	cr_expect_eq(chain.count, 1);
	cr_expect(chain.cut);
	cr_expect_null(chain.images[0].exe);
	cr_expect_eq(chain.images[0].exe_id, 42);
	set_lineage(10, 0, 42, 1, SL_LINEAGE_CUT);
	cr_assert_eq(sl_lineage_table_chain(lineages, 10, &chain), 0);
	cr_expect(chain.cut);
}

Test(lineage_table, loops_end)
{
	struct sl_chain chain;

	set_lineage(1, 1, 1, 5, 0); /* its own parent */
	cr_assert_eq(sl_lineage_table_chain(lineages, 1, &chain), 0);
	cr_expect_eq(chain.count, 1);
	cr_expect(chain.cut);
	set_lineage(2, 3, 1, 9, 0); /* each other's parent */
	set_lineage(3, 2, 1, 8, 0);
	cr_assert_eq(sl_lineage_table_chain(lineages, 2, &chain), 0);
	cr_expect_eq(chain.count, 2);
	cr_expect(chain.cut);
	cr_assert_eq(sl_lineage_table_chain(lineages, 3, &chain), 0);
	cr_expect_eq(chain.count, 1);
}

Test(lineage_table, deeper_than_the_limit)
{
	const unsigned int last = 2 * SL_LINEAGE_DEPTH - 1;
	struct sl_chain chain;

	for (unsigned int id = 1; id <= last; id++)
		set_lineage(id, id - 1, 1, id, 0);
	cr_assert_eq(sl_lineage_table_chain(lineages, last, &chain), 0);
	cr_expect_eq(chain.count, SL_LINEAGE_DEPTH);
	cr_expect(chain.cut);
	cr_assert_eq(sl_lineage_table_chain(lineages, SL_LINEAGE_DEPTH, &chain), 0);
	cr_expect_eq(chain.count, SL_LINEAGE_DEPTH);
	cr_expect_not(chain.cut);
}

Test(lineage_table, bounded)
{
	struct sl_lineage_table *small;
	struct sl_exe_table *small_exes;
	struct sl_chain chain;

	cr_assert_eq(sl_exe_table_new(&small_exes, &endless_ops, 1), 0);
	cr_assert_eq(sl_lineage_table_new(&small, &endless_ops, small_exes, 1), 0);
	for (unsigned int id = 1; id < 5000; id++) {
		cr_assert_eq(sl_lineage_table_chain(small, id, &chain), 0);
		cr_assert_eq(chain.images[0].exe->id, id);
	}
	cr_expect_eq(sl_lineage_table_count(small), 1);
	cr_expect_leq(sl_exe_table_count(small_exes), SL_EXE_TABLE_BORROW);
	sl_lineage_table_free(&small);
	sl_exe_table_free(&small_exes);
}
