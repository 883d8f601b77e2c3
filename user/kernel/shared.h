/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set that several commands share: made by the first attach, destroyed by the last
 * detach, pinned in between. A lock on the directory that holds the set orders them; it
 * is held during these calls only and ends with the process that holds it.
 *
 * An agent keeps its set without sandboxes too, so that an attach does not have to wait for
 * the programs to be loaded: while it holds a lock on a directory beside the set
 * (sl_shared_mark()), nobody's detach destroys it.
 */
#ifndef SLUICE_USER_SHARED_H
#define SLUICE_USER_SHARED_H

#include <limits.h>

#include "kernel/set.h"

/*
 * Attaches the cgroup at `path` (absolute) to the set at `dir`, made with `options` (may
 * be NULL) unless it is there. A set that is there must have at least the sizes that are
 * asked for: -EEXIST with err. Nothing is left of a set that was made for nothing.
 * Other errors as of sl_sandbox_attach() and sl_feature_require(); -EBUSY when another
 * process holds the lock for too long.
 */
int sl_shared_attach(const char *dir, const char *path, const char *name,
		     const struct sl_set_options *options, unsigned int *id, struct sl_err *err);

/*
 * Detaches a sandbox; the set goes with its last one. -ENOENT when there is none. `forget`
 * (may be NULL) is called once it is detached, before its id can be used again.
 */
int sl_shared_detach(const char *dir, unsigned int id,
		     int (*forget)(struct sl_set *set, unsigned int id), struct sl_err *err);

/* Where an agent marks the set at `dir` as its own. -ENAMETOOLONG. */
int sl_shared_mark(char out[PATH_MAX], const char *dir);

/* Makes the set unless it is there, or completes what somebody who was killed has left. */
int sl_shared_make(const char *dir, const struct sl_set_options *options, struct sl_err *err);

/* Removes the set if no sandbox and no agent's mark is left. -ENOENT: there is none. */
int sl_shared_drop(const char *dir, struct sl_err *err);

/* Whether a set has what is asked for: its sizes can't be changed any more. -EEXIST. */
int sl_shared_check(const struct sl_set *set, const struct sl_set_options *options,
		    struct sl_err *err);

/* Opens the set and keeps all other commands from changing it until *lock is closed. */
int sl_shared_lock(struct sl_set **out, int *lock, const char *dir, struct sl_err *err);

#endif
