/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SLUICE_USER_GUARD_PRIVATE_H
#define SLUICE_USER_GUARD_PRIVATE_H

#include "guard/guard.h"

/*
 * Adds or replaces a row. The kernel's allocator for maps that are not preallocated keeps
 * few spares in stock and refills them in the background: -ENOMEM is tried again for a
 * while.
 */
int sl_guard_put(struct sl_set *set, enum sl_map map, const void *key, const void *value);

/* What the kernel finds that a path is granted by itself; nothing if it finds none. */
void sl_guard_granted(struct sl_set *set, __u32 policy, enum sl_path_table table, const char *path,
		      struct sl_grant *out);

/* Rows of all lineages that are there: those made meanwhile are the exec hook's. */
int sl_guard_lineages(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled);

/* Deletes every row of a policy. */
int sl_guard_delete(struct sl_set *set, __u32 policy_id);

void sl_guard_dest_fill(struct sl_guard_dest *out, const struct sl_compiled *compiled,
			__u32 class_id);

#endif
