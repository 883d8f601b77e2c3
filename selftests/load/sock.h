/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets as the options ask for them: created, bound, connected, listened on. */
#ifndef SLUICE_LOAD_SOCK_H
#define SLUICE_LOAD_SOCK_H

#include "load.h"

/* A socket that closes itself with its scope; SOCK_CLOEXEC. 0 or -errno. */
int sl_sock_new(int family, int type, int protocol, int *fd);

/* The destination in the form that the socket's family needs (--v6, --mapped). */
struct sl_addr sl_sock_dest(const struct sl_opts *o, const struct sl_addr *to);

/* The family of a socket for `to` under --v6, --mapped and --v4-on-v6. */
int sl_sock_family(const struct sl_opts *o, const struct sl_addr *to);

/*
 * A TCP or MPTCP socket for `to`, bound when --bind is given, with linger 0 for --rst.
 * 0, -errno, or -SL_ENOFEATURE (told).
 */
int sl_sock_tcp(const struct sl_opts *o, const struct sl_addr *to, int *out);

/* SO_REUSEADDR and bind to --bind; nothing when not given. */
int sl_sock_bind(const struct sl_opts *o, int family, int fd);

/*
 * Connects by --connect: plain, nonblock (connect, poll, SO_ERROR; blocking again
 * afterwards) or uring. `in_progress` (may be NULL) tells whether EINPROGRESS was seen.
 */
int sl_sock_connect(const struct sl_opts *o, int fd, const struct sl_addr *to, bool *in_progress);

/* Waits up to timeout_ms (-1: for ever) for a non-blocking connect; -ETIMEDOUT. */
int sl_sock_finish(int fd, int timeout_ms);

int sl_sock_linger0(int fd);

/*
 * A receive buffer so large that a test's datagrams are not dropped (needs
 * CAP_NET_ADMIN; without it as large as net.core.rmem_max lets).
 */
void sl_sock_buffer(int fd);

/* Datagrams that the socket had no room for. */
uint64_t sl_sock_drops(int fd);

/* Binds to --listen (TCP: listens too) and prints "what=listen port=...". 0 or negative. */
int sl_sock_listen(const struct sl_opts *o, int type, int *out);

/*
 * Waits for input on fd. With --until-eof also for the end of stdin, after which
 * *draining is set and only what comes within 50 ms still counts. 1 for input, 0 for
 * the end, -errno.
 */
int sl_sock_next(const struct sl_opts *o, int fd, bool *draining);

#endif
