/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SHA-256 of a file that somebody may be writing to, such that the bytes can't change
 * afterwards without the file's ctime changing: then (inode, ctime, size) stands for it.
 *
 * - Who has it open for writing, or mapped, could go on without the ctime moving (a page that
 *   was written to once takes no more faults): -ETXTBSY. Whoever opens it later moves it.
 * - A ctime of the clock's present tick would be given to a later write as well: waited for.
 *
 * File systems without leases (NFS, FUSE) can't tell their writers: there only the ctime does.
 */
#ifndef SLUICE_USER_GUARD_FILE_DIGEST_H
#define SLUICE_USER_GUARD_FILE_DIGEST_H

#include <stdint.h>
#include <sys/stat.h>

#include "policy/policy.h"

/* Larger files are not hashed: one of them would hold up all others. */
#define SL_FILE_DIGEST_MAX (1ULL << 30)

/*
 * Of a regular file by an O_PATH descriptor; `st` is what fstat(2) said of it before.
 * -ESTALE: it is not (any more) what `st` says. -EFBIG, -ETXTBSY, -ENOMEM, -ELIBBAD, or -errno.
 */
int sl_file_digest(int path_fd, const struct stat *st, uint8_t sha256[SL_SHA256_LEN]);

#endif
