/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the kernel's record of an executable to the file itself. A descriptor made here
 * is O_PATH until the file is known to be regular and the recorded one: no FIFO, device
 * or terminal a workload put in its place is ever opened.
 */
#ifndef SLUICE_USER_EXE_FILE_H
#define SLUICE_USER_EXE_FILE_H

#include <stdbool.h>

#include <sluice/exe.h>

#include "identity/digest.h"

/* What is needed of a struct sl_exe (4 KiB) to find its file. */
struct sl_exe_ref {
	struct sl_exe_key key;
	unsigned long long size;
	unsigned int root_off;
	char *path; /* global; NULL when the path can't lead to the file. Owned. */
};

/*
 * Copies it, all offsets checked. SL_DIGEST_NONE, or why there is no file to find;
 * *ref can be cleared in either case. `nomem` is set when memory ran out.
 */
enum sl_digest_error sl_exe_ref_init(struct sl_exe_ref *ref, const struct sl_exe *exe, bool *nomem);
void sl_exe_ref_clear(struct sl_exe_ref *ref);

/*
 * Looks for the file at /proc/<pid>/exe (pid > 0), at its path below /proc/<pid>/root,
 * and at its global path. *fd is O_PATH and the caller's; untouched on failure.
 * With `cached`, path walks use what the dentry cache has and never block.
 */
enum sl_digest_error sl_exe_pin(const struct sl_exe_ref *ref, int pid, bool cached, int *fd);

/*
 * Whether what `fd` (O_PATH or not) refers to is regular and equals the record: inode,
 * ctime, size, and device unless stat's is synthetic (overlayfs, btrfs).
 */
enum sl_digest_error sl_exe_verify(const struct sl_exe_ref *ref, int fd);

/* Opens a pinned file for reading, whatever its name is by now. */
enum sl_digest_error sl_exe_open_pinned(int pin_fd, int *fd);

#endif
