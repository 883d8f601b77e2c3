/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the tables get rows they don't have: the kernel's maps, or a test's. */
#ifndef SLUICE_USER_IDENTITY_OPS_H
#define SLUICE_USER_IDENTITY_OPS_H

#include <sluice/exe.h>

#include "kernel/set.h"

/* Each returns 0, -ENOENT when there is no such row, or another -errno. */
struct sl_identity_ops {
	int (*exe_by_id)(void *ctx, unsigned int id, struct sl_exe *out);
	int (*lineage_by_id)(void *ctx, unsigned int id, struct sl_lineage *out);
	void *ctx;
};

/* Reads the maps of `set`, which must outlive every table made with the result. */
struct sl_identity_ops sl_identity_ops_of_set(struct sl_set *set);

#endif
