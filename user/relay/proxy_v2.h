/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The head of the PROXY protocol, version 2 (HAProxy's doc/proxy-protocol.txt), as the first
 * bytes to a proxy that acts on who is calling: the client's address, the original
 * destination, and values of type, length and bytes:
 *
 *	0x02 AUTHORITY	the name the client asked for
 *	0x05 UNIQUE_ID	"SANDBOX:PID:START:LINEAGE", numbers but the first (128 bytes at most)
 *	0xE0 … 0xE4	sandbox, pid (4 bytes), start (8 bytes, CLOCK_BOOTTIME nanoseconds),
 *			path of the executable, lineage (paths of what members executed
 *			before it, nearest first, one a line); numbers in network order
 *
 * Debian 12's HAProxy (2.6) reads the first two (fc_pp_authority, fc_pp_unique_id), those from
 * 2.9 on all of them (fc_pp_tlv). So what it may decide by is in the second as well.
 */
#ifndef SLUICE_USER_RELAY_PROXY_V2_H
#define SLUICE_USER_RELAY_PROXY_V2_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum sl_proxy_v2_type {
	SL_PROXY_V2_AUTHORITY = 0x02,
	SL_PROXY_V2_UNIQUE_ID = 0x05,
	SL_PROXY_V2_SANDBOX = 0xe0,
	SL_PROXY_V2_PID = 0xe1,
	SL_PROXY_V2_START = 0xe2,
	SL_PROXY_V2_EXE = 0xe3,
	SL_PROXY_V2_LINEAGE = 0xe4,
};

/* A text that is longer is left out: a path that was cut is another path. */
#define SL_PROXY_V2_AUTHORITY_MAX 255
#define SL_PROXY_V2_UNIQUE_ID_MAX 128
#define SL_PROXY_V2_SANDBOX_MAX 255
#define SL_PROXY_V2_EXE_MAX 2048
#define SL_PROXY_V2_LINEAGE_MAX 4096

/* What the longest head takes: 16 bytes, two IPv6 ends, and all values with their 3 bytes. */
#define SL_PROXY_V2_MAX                                                            \
	(16 + 36 + 7 * 3 + SL_PROXY_V2_AUTHORITY_MAX + SL_PROXY_V2_UNIQUE_ID_MAX + \
	 SL_PROXY_V2_SANDBOX_MAX + 4 + 8 + SL_PROXY_V2_EXE_MAX + SL_PROXY_V2_LINEAGE_MAX)

/* NULL and 0: not told. */
struct sl_proxy_v2 {
	struct sockaddr_storage source, destination; /* of one family, or the head is without */
	const char *authority;
	const char *sandbox;
	uint32_t pid; /* 0: neither start nor the unique id is told */
	uint64_t start_ns;
	uint32_t lineage_id;
	const char *exe, *lineage;
};

/* Bytes written; -ENOSPC: `size` is less than it takes. */
int sl_proxy_v2_encode(void *dst, size_t size, const struct sl_proxy_v2 *head);

#endif
