/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One io_uring with one operation at a time: submit, wait, give its result. Every
 * operation returns its result or -errno; -ENOSYS when the kernel has no io_uring.
 */
#ifndef SLUICE_LOAD_URING_H
#define SLUICE_LOAD_URING_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct sl_uring;

/* mode: NULL or "inline", "async" (always through a worker), "sqpoll". -EINVAL otherwise. */
int sl_uring_new(struct sl_uring **out, const char *mode);
void sl_uring_free(struct sl_uring **ring);

/* A new descriptor, close-on-exec. -EINVAL before Linux 5.19. */
int sl_uring_socket(struct sl_uring *ring, int family, int type, int protocol);
int sl_uring_connect(struct sl_uring *ring, int fd, const struct sockaddr *sa, socklen_t len);
ssize_t sl_uring_send(struct sl_uring *ring, int fd, const void *buf, size_t len);
ssize_t sl_uring_sendmsg(struct sl_uring *ring, int fd, const struct msghdr *msg);
/* Waits for the kernel to let go of the buffer too. -EOPNOTSUPP without SEND_ZC. */
ssize_t sl_uring_send_zc(struct sl_uring *ring, int fd, const void *buf, size_t len);
ssize_t sl_uring_recv(struct sl_uring *ring, int fd, void *buf, size_t len);

#endif
