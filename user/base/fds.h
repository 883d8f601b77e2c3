/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors beside the bytes of a unix socket (SCM_RIGHTS, unix(7)).
 *
 * What is received is close-on-exec, and all of it or nothing: too many, or too few because
 * this process has no descriptor free, is an error, and none stays open.
 */
#ifndef SLUICE_USER_FDS_H
#define SLUICE_USER_FDS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define SL_FDS_MAX 4 /* with one message */

/* Set count to 0 before the first use; -1 in fd[] is one that was taken out. */
struct sl_fds {
	int fd[SL_FDS_MAX];
	unsigned int count;
};

/* Never waits. Bytes sent, or -errno; `fds` (may be NULL) stay the caller's. */
ssize_t sl_fds_send(int sock, const void *data, size_t size, const struct sl_fds *fds);

/*
 * Sends one message of a socket that keeps them apart, waiting for room, and `fd` with it
 * unless that is negative; `fd` stays the caller's. 0 or -errno.
 */
int sl_fd_send(int sock, const void *data, size_t size, int fd);

/*
 * Never waits. Bytes received, 0 at the end, or -errno; fills *fds. -EPROTO: descriptors
 * were cut off. Only SCM_RIGHTS is looked at.
 */
ssize_t sl_fds_receive(int sock, void *data, size_t size, struct sl_fds *fds);

void sl_fds_close(struct sl_fds *fds);

/* Takes one out; -EBADF when there is no such index, or it was taken before. */
int sl_fds_take(struct sl_fds *fds, unsigned int index);

/* Copies, close-on-exec; closes nothing of *from. -EMFILE, and *to is empty. */
int sl_fds_copy(struct sl_fds *to, const struct sl_fds *from);

/*
 * Removes the socket of somebody who is gone, from where another is to listen. -EEXIST with err:
 * there is something else, which is nobody's to remove. That there is nothing is no error.
 */
int sl_socket_unlink(const char *path, struct sl_err *err);

#endif
