/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User-side copies of the kernel's executables, by id: filled on demand, only the bytes
 * of the path that are in use. A cache: dropping it loses nothing. Not locked.
 */
#ifndef SLUICE_USER_EXE_TABLE_H
#define SLUICE_USER_EXE_TABLE_H

#include "identity/ops.h"

/* Rows kept; the one that was not used for longest makes room. */
#define SL_EXE_TABLE_MAX 8192

/*
 * How many gets a borrowed row outlives at least: a whole lineage chain, image and
 * script of each, and as much again.
 */
#define SL_EXE_TABLE_BORROW (4 * SL_LINEAGE_DEPTH)

struct sl_exe_row {
	struct sl_exe_key key;
	unsigned long long size;
	unsigned long long seen_ns;
	unsigned int id;
	unsigned int path_len;
	unsigned int root_off; /* at most path_len */
	char path[];           /* global, terminated, as the workload chose it: escape it */
};

struct sl_exe_table;

/* `max_rows` 0 for SL_EXE_TABLE_MAX; raised to SL_EXE_TABLE_BORROW. `ops` is copied. */
int sl_exe_table_new(struct sl_exe_table **out, const struct sl_identity_ops *ops,
		     unsigned int max_rows);
void sl_exe_table_free(struct sl_exe_table **table);

/*
 * The row of `id`, borrowed for the next SL_EXE_TABLE_BORROW gets. -ENOENT for id 0 and
 * for an id the kernel does not know, -ENOMEM, or what the kernel's look-up returned.
 */
int sl_exe_table_get(struct sl_exe_table *table, unsigned int id, const struct sl_exe_row **out);

unsigned int sl_exe_table_count(const struct sl_exe_table *table);

/* `path` of JSON: as the root directory of the process that ran it shows it. */
static inline const char *sl_exe_row_path(const struct sl_exe_row *row)
{
	return row->path + row->root_off;
}

/* From the top of the mount tree: equal to the above outside chroots and containers. */
static inline const char *sl_exe_row_global_path(const struct sl_exe_row *row)
{
	return row->path;
}

#endif
