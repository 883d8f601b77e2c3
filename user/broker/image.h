/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an execve() of another task would run: the file it names, as that task sees it, and
 * when that is a script the interpreters behind it. A candidate only: the kernel resolves
 * the path anew when the call goes on, so whoever prepares something for these files keys
 * it by what they are, and a swapped path then misses.
 *
 * Resolution follows the task's root, working directory and descriptors; ".." and absolute
 * links stay inside its root. /proc/self and /proc/thread-self are the task's, not this
 * process'. Formats registered with binfmt_misc are not followed: what the kernel then
 * runs was not prepared, and misses.
 */
#ifndef SLUICE_USER_BROKER_IMAGE_H
#define SLUICE_USER_BROKER_IMAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "broker/task.h"

/* exec_binprm() (fs/exec.c) follows five interpreters, then it fails with ELOOP. */
#define SL_IMAGES_MAX 6

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* 6.14 */
#endif

struct sl_images {
	unsigned int count;
	int fds[SL_IMAGES_MAX]; /* O_PATH; [0]: the file named, the last: the one that runs */
};

/*
 * `flags` are execveat(2)'s; `dirfd` AT_FDCWD for execve(2). Errors are those that the
 * kernel would give (-ENOENT, -EACCES, -ELOOP, -ENOEXEC, …), or -EMFILE, -ENFILE, -ENOMEM
 * of this process. The caller frees *out.
 */
int sl_images_resolve(struct sl_images *out, pid_t tid, int dirfd, const char *path, int flags);

void sl_images_free(struct sl_images *images);

#endif
