/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the pinned iterators write when they are read as files. */
#ifndef SLUICE_ITER_H
#define SLUICE_ITER_H

#include <sluice/abi.h>
#include <sluice/sock.h>

/*
 * iters/socks, one for each descriptor of a recorded socket: a struct sl_sock, followed
 * by this, with what the socket itself says now and who holds it.
 */
struct sl_iter_sock {
	__u64 bytes_sent;
	__u64 bytes_acked;
	__u64 bytes_received;
	struct sl_process_key holder;
	__u32 holder_ns_pid;
	__u32 holder_uid;
	__u32 holder_sandbox; /* this and the next are 0 for a holder that is no member */
	__u32 holder_lineage;
	__u32 holder_exe;
	__u32 holder_script;
	__u32 fd;
	__u32 state; /* TCP_* */
	__u32 holder_tid;
	__u32 maybe_adopted; /* its record may be one in its storage: see kernel/adopt.h */
	char holder_comm[SL_COMM_LEN];
};

/* iters/dump_members, one for each member process: the ids that it refers to. */
struct sl_iter_member {
	__u32 lineage;
	__u32 exe;
	__u32 script;
	__u32 sandbox;
};

/* iters/dump_files, one for each regular file that a task has open; made for one task. */
struct sl_iter_file {
	__u64 ino;
	__u64 ctime_ns;
	__u64 size;
	__u32 dev; /* these as in struct sl_exe_key */
	__u32 generation;
	__u32 fd;
	__u32 pad;
};

#endif
