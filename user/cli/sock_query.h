/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The subcommands of `sock`, and the search that `sock resolve` does. */
#ifndef SLUICE_USER_SOCK_QUERY_H
#define SLUICE_USER_SOCK_QUERY_H

#include "cli/query.h"

extern const struct sl_command sl_cmd_sock_resolve;

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

#endif
