/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executables that the kernel can't match by path alone (wildcards within a path, pinned
 * digests): what a held exec is about to run is matched and hashed here, and the guard is
 * told by the file's identity. A file that is replaced or changed after that has another
 * identity, so it misses.
 *
 * Safe from several threads; a file is hashed once for as long as it does not change.
 */
#ifndef SLUICE_USER_GUARD_FILES_H
#define SLUICE_USER_GUARD_FILES_H

#include "guard/guard.h"

struct sl_files;

int sl_files_new(struct sl_files **out, struct sl_set *set, const struct sl_compiled *compiled,
		 __u32 policy_id);
void sl_files_free(struct sl_files **files);

/* Files larger than this are not hashed: what is pinned to a digest then does not match. */
#define SL_FILES_HASH_MAX (1ULL << 30)

/*
 * Prepares the guard for the file of an O_PATH descriptor. 0 also when the policy says
 * nothing of it; -errno when it could not be looked at, and then it stays unmatched.
 */
int sl_files_prepare(struct sl_files *files, int path_fd);

/* The digest by which an executable was judged. -ENOENT: none was made. */
int sl_files_digest(struct sl_files *files, const struct sl_exe *exe,
		    uint8_t sha256[SL_SHA256_LEN]);

#endif
