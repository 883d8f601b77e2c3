/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpffs: mounting it, directories of pins, removing them.
 *
 * Invariants
 * 1. SL_SET_ROOT goes with the last set in it, at any moment while nothing is in it. So
 *    whoever opens a directory in order to lock it looks, once it is locked, whether it
 *    still has its name (sl_bpffs_is()).
 */
#ifndef SLUICE_USER_BPFFS_H
#define SLUICE_USER_BPFFS_H

#include <stdbool.h>

#include "base/err.h"

/* Mounts bpffs at SL_BPFFS unless it is there already. */
int sl_bpffs_mount(struct sl_err *err);

/* Makes `path` and its missing parents below SL_BPFFS, root-only (0700). */
int sl_bpffs_mkdirs(const char *path, struct sl_err *err);

/* Whether the path still names what is open as `fd`. */
bool sl_bpffs_is(int fd, const char *path);

/*
 * Removes a directory of pins with all in it, in an order that never leaves a cgroup
 * program attached without the tracepoints it relies on. A missing one is no error.
 */
int sl_bpffs_remove(const char *path, struct sl_err *err);

#endif
