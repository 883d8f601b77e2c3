/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records in the storage of sockets that were not seen being made, where iterators can't get
 * at it (feature socket-of-file): bpf(2) takes a descriptor for the key of such a map, so the
 * holder's is copied (pidfd_getfd(2), 5.6) for as long as that takes. It needs the holder's
 * pid to be one here: this process in the first pid namespace.
 */
#ifndef SLUICE_USER_ADOPT_H
#define SLUICE_USER_ADOPT_H

#include "kernel/set.h"

/* Whether the set's iterators can't: then these do. */
bool sl_adopt_by_fd(const struct sl_set *set);

/*
 * Gives each socket that a member holds, and that has none, a record. -EOPNOTSUPP: there are
 * such, and pids are others here. -EAGAIN: they were exchanged all the time. 0 or -errno.
 */
int sl_adopt_seed(struct sl_set *set);

/* Removes records whose sandbox is gone. 0 or -errno. */
int sl_adopt_unseed(struct sl_set *set);

/*
 * Completes what iterator dump_socks_found gave: *sock is the record in the socket's storage,
 * if there is one. -ENOENT when there is no record at all, or the descriptor is another's now.
 */
int sl_adopt_complete(const struct sl_set *set, struct sl_sock *sock, struct sl_iter_sock *now);

#endif
