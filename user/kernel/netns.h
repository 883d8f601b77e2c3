/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network namespaces: the one of a relay sandbox, which has loopback and nothing else, and
 * work inside of one while this process stays where it is.
 *
 *	sl_netns_new(&ns, &err);		or sl_netns_of(pid, &ns, &err)
 *	sl_netns_run(ns, fn, arg);
 *
 * In a relay's namespace every address is a local one, by two routes ("local default" by
 * lo, IPv4 and IPv6): what is sent anywhere arrives there, from 127.0.0.1 or ::1 unless the
 * socket has an address, and user/kernel/steer.h says who takes it.
 *
 * A namespace ends with its last process, socket and descriptor. All need CAP_SYS_ADMIN over
 * the namespace.
 */
#ifndef SLUICE_USER_NETNS_H
#define SLUICE_USER_NETNS_H

#include <sys/types.h>

#include <linux/types.h>

#include "base/err.h"

/* Makes a relay's namespace. The caller owns *ns and is not moved into it: setns(2). */
int sl_netns_new(int *ns, struct sl_err *err);

/* Opens the namespace of a process. -ENOENT, -ESRCH: it is gone. The caller owns *ns. */
int sl_netns_of(pid_t pid, int *ns, struct sl_err *err);

/*
 * Makes one that is there, a container's, a relay's: loopback up, and the two routes. Again is
 * no error. -EEXIST: it has other interfaces, whose routes these would shadow.
 */
int sl_netns_relay(int ns, struct sl_err *err);

/*
 * Calls `fn` inside the namespace, on a thread of its own with all signals blocked, and
 * returns what it returns (0 or -errno); -errno when it could not be called. Sockets that it
 * makes stay of that namespace, whoever uses them.
 */
int sl_netns_run(int ns, int (*fn)(void *arg), void *arg);

/* The cookie of the namespace, as in struct sl_sock. 0 or -errno. */
int sl_netns_cookie(int ns, __u64 *out);

#endif
