/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A policy file for a sandbox that no process of sluice's stays with: read, checked, its
 * names looked up once, and loaded whole or not at all.
 *
 *	sl_apply_open(&apply, file, &err);	refuses what would need somebody to stay
 *	sl_apply_load(apply, set, sandbox, mode, &policy_id, &err);
 *	sl_apply_free(&apply);
 *
 * Policies that need held execs (wildcards within a path, pinned digests) are refused: they
 * would deny what they mean to allow, and nobody would be there to look at the files.
 */
#ifndef SLUICE_USER_GUARD_APPLY_H
#define SLUICE_USER_GUARD_APPLY_H

#include "guard/guard.h"

struct sl_apply;

int sl_apply_open(struct sl_apply **out, const char *file, struct sl_err *err);
void sl_apply_free(struct sl_apply **apply);

/*
 * `mode` SL_GUARD_MODE_MAX: as it was under the policy before, or as the file says if there
 * was none. Callers hold the sandbox against others (sl_shared_lock).
 */
int sl_apply_load(struct sl_apply *apply, struct sl_set *set, unsigned int sandbox,
		  enum sl_guard_mode mode, __u32 *policy_id, struct sl_err *err);

#endif
