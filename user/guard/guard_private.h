/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SLUICE_USER_GUARD_PRIVATE_H
#define SLUICE_USER_GUARD_PRIVATE_H

#include "guard/guard.h"

/*
 * Adds or replaces a row, as `flags` (BPF_ANY, …) say. The kernel's allocator for maps that
 * are not preallocated keeps few spares in stock and refills them in the background: -ENOMEM
 * is tried again for a while.
 */
int sl_guard_put(struct sl_set *set, enum sl_map map, const void *key, const void *value,
		 __u64 flags);

/* One store of all that a guard is. */
int sl_guard_write(struct sl_set *set, unsigned int sandbox, const struct sl_guard *guard);

/* What the kernel finds that a path is granted by itself; nothing if it finds none. */
void sl_guard_granted(struct sl_set *set, __u32 policy, enum sl_path_table table, const char *path,
		      struct sl_grant *out);

/*
 * Adds to what an exact path is granted. 1: it was, 0: it had all of it; -ENAMETOOLONG: longer
 * than the kernel matches. Not for one path from two threads at once.
 */
int sl_guard_grant(struct sl_set *set, __u32 policy, enum sl_path_table table, const char *path,
		   const struct sl_grant *more);

/*
 * Rows of the lineages that members of the policy's sandbox and its sockets have: those made
 * meanwhile are the exec hook's, as are those that a member comes to have. `again`: of those
 * that have one, which keep what they have and get what they missed.
 */
int sl_guard_lineages(struct sl_set *set, __u32 policy_id, bool again);

/* Whether a policy says anything of a file at this path that user space has to find out. */
bool sl_guard_file_concerns(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
			    const char *path);

/*
 * What a policy makes of a file, by its digest (NULL: not known); under first use, what is
 * seen first is remembered. -E2BIG, -EEXIST as of sl_trust_first().
 */
int sl_guard_file_judge(struct sl_set *set, unsigned int sandbox,
			const struct sl_compiled *compiled, const char *path, const uint8_t *sha256,
			struct sl_guard_grant *out);

/*
 * Judges by a new policy the files that were found under the one before, and scripts by
 * their names, so that who runs them already is not denied for want of an exec. Others have
 * to be executed anew.
 */
int sl_guard_carry(struct sl_set *set, unsigned int sandbox, __u32 before, __u32 policy_id,
		   const struct sl_compiled *compiled);

/* The digest of an executable's bytes as they were at each exec of it. 0 or -errno: none. */
typedef int (*sl_guard_digest_fn)(const struct sl_exe *exe, uint8_t sha256[SL_SHA256_LEN],
				  void *arg);

/*
 * The row of one lineage and of those it came from, by all that user space can match:
 * wildcards, and digests of the images that are pinned. Replaces what the exec hook has
 * made by paths alone; both are functions of policy and lineage, so it does no harm twice.
 * Not under `integrity: first-use`, where what a row was once granted it keeps.
 */
int sl_guard_lineage(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		     __u32 lineage, sl_guard_digest_fn digest, void *arg);

/* Deletes every row of a policy. */
int sl_guard_delete(struct sl_set *set, __u32 policy_id);

/* Notes which entry a class stands for. Without room it has no name: nothing else is lost. */
void sl_guard_rule_put(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		       __u32 class_id);

void sl_guard_dest_fill(struct sl_guard_dest *out, const struct sl_compiled *compiled,
			__u32 class_id);

#endif
