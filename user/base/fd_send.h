/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A message with a descriptor over a unix socket (SCM_RIGHTS, unix(7)). */
#ifndef SLUICE_USER_FD_SEND_H
#define SLUICE_USER_FD_SEND_H

#include <stddef.h>

/*
 * Sends one message, and `fd` with it unless that is negative; `fd` stays the caller's.
 * 0 or -errno.
 */
int sl_fd_send(int sock, const void *data, size_t size, int fd);

#endif
