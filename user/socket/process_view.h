/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process as users see it, made from the kernel's record of a process or from the
 * owner that a socket's record carries. Text is borrowed from the source (its lifetime
 * there); comm and paths were chosen by a workload: printing escapes them.
 */
#ifndef SLUICE_USER_PROCESS_VIEW_H
#define SLUICE_USER_PROCESS_VIEW_H

#include <sluice/process.h>

#include "socket/source.h"

struct sl_view_process {
	__u32 pid; /* in the initial pid namespace; with start_ns: who it is */
	__u32 ns_pid;
	__u64 start_ns;
	__u32 tid;
	__u32 uid;
	char comm[SL_COMM_LEN + 1];
	const struct sl_view_exe *exe; /* NULL: not known */
	const char *script;
	struct sl_strings lineage;
	__u32 lineage_outside;
	__u32 sandbox_id;
	const char *sandbox; /* its name, NULL: not known */
	bool lineage_cut;
	/* From a struct sl_process only: */
	bool full;
	__u32 gid;
	__u32 parent_pid;
	__u64 exec_ns;
	__u32 flags; /* enum sl_process_flag */
};

/* As part of a socket's record: its columns are the pid and the path of the image. */
extern const struct sl_field sl_view_process_fields[];

/* As a record of its own: the same members, with columns for a list of processes. */
extern const struct sl_field sl_view_process_list_fields[];

/* 0 or -ENOMEM; what can't be looked up is absent. */
int sl_view_process_fill(struct sl_view_process *view, const struct sl_process *process,
			 struct sl_view_source *source);
int sl_view_owner_fill(struct sl_view_process *view, const struct sl_owner *owner,
		       struct sl_view_source *source);

#endif
