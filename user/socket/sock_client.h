/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is at the other end of a connection that a process outside of all sandboxes accepted. */
#ifndef SLUICE_USER_SOCK_CLIENT_H
#define SLUICE_USER_SOCK_CLIENT_H

#include "kernel/set.h"

/*
 * The record of the client's socket, by the two ends of `fd` as the kernel has them. As long
 * as `fd` is open, nobody else can have these ends. -ENOENT: no member's socket is known there.
 */
int sl_sock_client(struct sl_set *set, int fd, struct sl_sock *out);

#endif
