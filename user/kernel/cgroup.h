/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cgroup2: where it is mounted, who a cgroup is, and the life of one that is ours.
 * A cgroup is named by its absolute path in the file system; its id is the kernfs id
 * that BPF programs and links report.
 */
#ifndef SLUICE_USER_CGROUP_H
#define SLUICE_USER_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Mount point of cgroup2 (/proc/self/mountinfo), also of a hybrid set-up. -ENODEV: none. */
int sl_cgroup_mount(char *out, size_t size, struct sl_err *err);

/* How to mount it: where cgroups of version 1 are (`v1`), beside and not over them. */
const char *sl_cgroup_mount_step(bool v1);

/* Path of the cgroup2 cgroup this process is in, below the mount: absolute. */
int sl_cgroup_self(char *out, size_t size, struct sl_err *err);

/* The same of another process; 0: this one. */
int sl_cgroup_of(char *out, size_t size, pid_t pid, struct sl_err *err);

/*
 * Absolute path of a cgroup named by a user: absolute as it is, else below the mount.
 * -ENOTDIR, -ENOENT, and -EXDEV when it is not on cgroup2, each with its cause.
 */
int sl_cgroup_resolve(char *out, size_t size, const char *name, struct sl_err *err);

/* Opens a cgroup's directory; the caller closes *fd. Errors as of resolve. */
int sl_cgroup_open(int *fd, const char *path, struct sl_err *err);

/* The kernfs id of an open cgroup directory (name_to_handle_at(2)). */
int sl_cgroup_id(unsigned long long *id, int fd);

/*
 * Absolute path of an open cgroup directory as it is seen here, whatever mount, of whatever
 * namespaces, it was opened by. Needs CAP_DAC_READ_SEARCH. Errors as of resolve.
 */
int sl_cgroup_path(char *out, size_t size, int fd, struct sl_err *err);

/* The same of the cgroup with this id. */
int sl_cgroup_path_of(char *out, size_t size, unsigned long long id, struct sl_err *err);

/* The part of an absolute path below the mount, "/" for the root; points into `path`. */
const char *sl_cgroup_relative(const char *path, const char *mount);

/* Makes a cgroup; -EEXIST when it is there. */
int sl_cgroup_create(const char *path, struct sl_err *err);

/* Moves a process (0: the caller), all its threads, into the cgroup. */
int sl_cgroup_enter(const char *path, pid_t pid, struct sl_err *err);

/* True when a live process is in the cgroup or below it ("populated" of cgroup.events). */
int sl_cgroup_populated(const char *path, bool *populated);

/* Kills all in it and below (cgroup.kill, 5.14); returns at once. */
int sl_cgroup_kill(const char *path);

/*
 * Kills what is in the cgroup and removes it with all below it. Waits for the processes
 * to be gone, `timeout_ms` at most. A cgroup that is not there is no error.
 */
int sl_cgroup_destroy(const char *path, int timeout_ms);

#endif
