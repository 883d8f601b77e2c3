/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "identity/ops.h"

static int set_exe_by_id(void *ctx, unsigned int id, struct sl_exe *out)
{
	return sl_exe_by_id(ctx, id, out);
}

static int set_lineage_by_id(void *ctx, unsigned int id, struct sl_lineage *out)
{
	return sl_lineage_by_id(ctx, id, out);
}

struct sl_identity_ops sl_identity_ops_of_set(struct sl_set *set)
{
	return (struct sl_identity_ops){
		.exe_by_id = set_exe_by_id,
		.lineage_by_id = set_lineage_by_id,
		.ctx = set,
	};
}
