/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The socket with two given ends, open or closed lately, and the one at the other end if that
 * is on this host too. Goes through all sockets of the host: a millisecond or a few.
 */
#ifndef SLUICE_USER_SOCK_FIND_H
#define SLUICE_USER_SOCK_FIND_H

#include <stdbool.h>

#include "kernel/set.h"

/* What is asked for: a socket by its two ends, as seen from `local`. */
struct sl_sock_ends {
	struct sl_endpoint local;
	struct sl_endpoint remote;
	__u64 netns_cookie; /* 0: any */
	bool udp;
};

/*
 * How well a record answers. 0: not at all; 1: an unconnected datagram socket of that
 * local end; 2: its remote end agrees too; 3: both ends are equal.
 */
unsigned int sl_sock_ends_match(const struct sl_sock_ends *ends, const struct sl_sock *sock);

/* The best answer so far, and how many are as good (SO_REUSEPORT). */
struct sl_sock_candidate {
	struct sl_sock sock;
	unsigned int score;
	unsigned int count;
};

struct sl_sock_found {
	struct sl_sock_candidate found;
	struct sl_sock_candidate other; /* count 1: there is one such */
	bool closed;
};

/* -ENOENT: none is known. */
int sl_sock_find(struct sl_set *set, const struct sl_sock_ends *ends, struct sl_sock_found *out);

#endif
