/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names that addresses were looked up by: told to the hooks by who serves the sandbox's
 * DNS, and kept in the records of sockets and in decisions as numbers.
 */
#ifndef SLUICE_NAME_H
#define SLUICE_NAME_H

#include <sluice/abi.h>

#define SL_NAME_MAX 256 /* with the NUL (RFC 1035, 2.3.4) */

enum sl_name_flag {
	SL_NAME_DENIED = 1 << 0, /* nobody was asked for it: no rule names it */
};

/*
 * Value of hash `names`, by id. Ids go up as long as the set lives. The text is what a
 * workload has asked for: whoever prints it escapes it.
 */
struct sl_name {
	__u32 sandbox;
	__u32 flags; /* enum sl_name_flag */
	__u64 since_ns;
	char text[SL_NAME_MAX]; /* lower case, without the last dot */
};

/*
 * Key of LRU hash `named`; the value is the id of the name by which this process has looked
 * up the address last. tgid and start_ns 0: for all others of the sandbox.
 */
struct sl_named {
	__be32 addr_be[4]; /* IPv4 as ::ffff:a.b.c.d */
	__u64 start_ns;
	__u32 tgid;
	__u32 sandbox;
};

#endif
