/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Landlock as containment needs it, by raw system calls: Debian 12's header stops at the
 * first version of its struct (Documentation/userspace-api/landlock.rst).
 *
 * Each function puts the calling thread and its descendants, for good, into a domain. A
 * process in a domain can't trace processes outside of it, nor take their descriptors or
 * memory; those inside it may do so among themselves. no_new_privs has to be set.
 */
#ifndef SLUICE_USER_BROKER_LANDLOCK_H
#define SLUICE_USER_BROKER_LANDLOCK_H

#include "base/err.h"

/* Version of Landlock's ABI, 0 when the kernel has none or it is off. */
int sl_landlock_abi(void);

#define SL_LANDLOCK_REFER 2  /* from here on renames between directories can be allowed */
#define SL_LANDLOCK_SCOPES 6 /* from here on a domain may consist of scopes alone */

/* Restricts nothing else but signals to processes outside: a domain has to have something. */
int sl_landlock_scope(struct sl_err *err);

/*
 * Keeps all below `paths` from being changed, and processes outside from being signalled where
 * the kernel can (SL_LANDLOCK_SCOPES), and leaves everything else as it is; paths
 * that aren't there are skipped, none at all will do. What it costs: mount(), in user
 * namespaces too; new entries in the directories on the way to a path (/, /sys, /sys/fs).
 */
int sl_landlock_read_only(const char *const paths[], unsigned int count, struct sl_err *err);

#endif
