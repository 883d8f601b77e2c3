/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steering of a relay sandbox (bpf/steer.bpf.c): in its network namespace (kernel/netns.h),
 * new connections and datagrams to port 53 of any address go to the DNS listeners, those to
 * other addresses than loopback to the relay's. What nobody takes is refused.
 *
 *	sl_steer_attach(&steer, set, sandbox, ns, &err);
 *	sl_steer_socket(ns, SL_STEER_TCP_V4, &fd, &err);	for each, before members run
 *	sl_steer_listener(steer, SL_STEER_TCP_V4, fd, &err);
 *	sl_steer_free(&steer);
 *
 * Link and map are pinned in the sandbox's directory: they outlive the process, end with
 * sl_sandbox_detach(), and a later process takes over by sl_steer_open() and listeners of
 * its own. A listener that is closed is none any more: the pins hold no socket.
 *
 * What arrives has the address it was sent to: getsockname() of what a TCP listener accepts,
 * IP_ORIGDSTADDR or IPV6_ORIGDSTADDR beside a datagram (of the relay), IP_PKTINFO or
 * IPV6_PKTINFO (of the DNS). A datagram socket that is bound to such an address (SO_REUSEADDR,
 * and IPV6_FREEBIND for IPv6) and connected to the client has all later datagrams of the flow,
 * past the listener.
 *
 * A member has what is its own nevertheless: connections between members on loopback, and
 * what is connected already. A member's connected datagram socket comes before the listener,
 * as the relay's own do: among members there is no boundary.
 */
#ifndef SLUICE_USER_STEER_H
#define SLUICE_USER_STEER_H

#include <sluice/steer.h>

#include "kernel/set.h"

struct sl_steer;

/*
 * Loads and attaches; no listener is there yet, so all is refused. -EEXIST: the sandbox has
 * one. `ns` stays the caller's. Nothing is left on failure.
 */
int sl_steer_attach(struct sl_steer **out, const struct sl_set *set, unsigned int sandbox, int ns,
		    struct sl_err *err);

/* The one that is there. -ENOENT: the sandbox has none. */
int sl_steer_open(struct sl_steer **out, const struct sl_set *set, unsigned int sandbox,
		  struct sl_err *err);

/*
 * Makes a listener's socket in the namespace: bound (TCP, UDP: a free port of loopback; DNS:
 * port 53 of every address), listening, non-blocking, with the options named above. -EADDRINUSE:
 * somebody there serves port 53. -EADDRNOTAVAIL, -EAFNOSUPPORT: no IPv6. The caller owns *fd.
 */
int sl_steer_socket(int ns, enum sl_steer_which which, int *fd, struct sl_err *err);

/* In place of the one before. `fd` stays the caller's, and has to stay open. */
int sl_steer_listener(struct sl_steer *steer, enum sl_steer_which which, int fd,
		      struct sl_err *err);

/* Takes a listener away: what it took is refused from now on. No error when there is none. */
int sl_steer_clear(struct sl_steer *steer, enum sl_steer_which which);

/* Ends the steering before the sandbox does; all is decided by the members' own sockets. */
void sl_steer_detach(const struct sl_set *set, unsigned int sandbox);

/* Closes descriptors; what is attached stays. */
void sl_steer_free(struct sl_steer **steer);

#endif
