/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executables that the kernel can't match by path alone (wildcards within a path, pinned
 * digests, trust on first use). What a held exec is about to run is matched and hashed here,
 * and the guard is told by the file's identity: a file that is replaced or changed after that
 * has another identity, so it misses. Scripts, which have a name only, are told by their name. Where
 * other calls are held instead, the same is done for the images that led to the caller, as
 * the kernel has recorded them.
 *
 * Safe from several threads; a file is hashed once for as long as it does not change.
 */
#ifndef SLUICE_USER_GUARD_FILES_H
#define SLUICE_USER_GUARD_FILES_H

#include <sys/types.h>

#include "guard/file_digest.h"
#include "guard/guard.h"

struct sl_files;

int sl_files_new(struct sl_files **out, struct sl_set *set, const struct sl_compiled *compiled,
		 unsigned int sandbox, __u32 policy_id);
void sl_files_free(struct sl_files **files);

/*
 * Prepares the guard for the file of an O_PATH descriptor. 0 also when the policy says
 * nothing of it; -errno when it could not be looked at, and then it stays unmatched.
 */
int sl_files_prepare(struct sl_files *files, int path_fd);

/* Names of scripts that match by a wildcard within, and are told to the kernel, a policy. */
#define SL_FILES_SCRIPTS_MAX 16384u

/*
 * Prepares the guard for a script by the name that the kernel will record (sl_call_script()).
 * What it grants depends on the name alone. 0 also when the policy says nothing of it;
 * -ENAMETOOLONG, -ENOSPC (the limit above): it stays unmatched.
 */
int sl_files_script(struct sl_files *files, const char *name);

/*
 * Prepares the guard for what a task with this lineage does; `pid` runs its leaf. An image
 * that is pinned is recognised only when it was last changed SL_FILES_SETTLED_NS before it
 * was first executed: else its bytes may have been others by then, with the same ctime.
 * 0 also when nothing had to be done; -errno when something could not be looked at, and
 * then that stays unmatched and is looked at again the next time.
 */
int sl_files_lineage(struct sl_files *files, __u32 lineage, pid_t pid);

/* The clock that stamps inodes goes in steps of a tick, 10 ms at most. */
#define SL_FILES_SETTLED_NS 20000000ULL

#endif
