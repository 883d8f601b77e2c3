/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User-side copies of the kernel's lineages, and the chain of images of one of them.
 * A cache: dropping it loses nothing. Not locked.
 */
#ifndef SLUICE_USER_LINEAGE_TABLE_H
#define SLUICE_USER_LINEAGE_TABLE_H

#include <stdbool.h>

#include "identity/exe_table.h"

/* Rows kept; the oldest makes room. */
#define SL_LINEAGE_TABLE_MAX 16384

/* One image of a chain. A row is NULL when the kernel has none (any more) of that id. */
struct sl_image {
	const struct sl_exe_row *exe;
	const struct sl_exe_row *script;
	unsigned int exe_id;
	unsigned int script_id; /* 0: not run as a script */
	bool outside;           /* ran before the sandbox's entry: shown, never matched */
};

/*
 * Nearest image first: images[0] is the running image itself, images[1] what started
 * it, so `lineage` of JSON begins at images[1].
 */
struct sl_chain {
	unsigned int count;
	bool cut; /* a link is missing: dropped by the kernel, unknown, or inconsistent */
	struct sl_image images[SL_LINEAGE_DEPTH];
};

struct sl_lineage_table;

/* `exes` is borrowed and must outlive the table. `max_rows` 0 for SL_LINEAGE_TABLE_MAX. */
int sl_lineage_table_new(struct sl_lineage_table **out, const struct sl_identity_ops *ops,
			 struct sl_exe_table *exes, unsigned int max_rows);
void sl_lineage_table_free(struct sl_lineage_table **table);

/*
 * The chain of lineage `id`. Its rows are borrowed from the table of executables, for
 * the next SL_EXE_TABLE_BORROW / 2 gets there. -ENOENT when the lineage itself is not
 * known, -ENOMEM, or what the kernel's look-up returned; an ancestor that can't be read
 * only sets `cut`.
 */
int sl_lineage_table_chain(struct sl_lineage_table *table, unsigned int id, struct sl_chain *out);

unsigned int sl_lineage_table_count(const struct sl_lineage_table *table);

#endif
