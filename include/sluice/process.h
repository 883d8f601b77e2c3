/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes: the key that names one, and the record the kernel side keeps of it. */
#ifndef SLUICE_PROCESS_H
#define SLUICE_PROCESS_H

#include <sluice/abi.h>

/*
 * A process is (tgid, start time), never a bare pid: pids are reused. The start
 * time is task_struct.start_boottime of the thread-group leader, which de_thread()
 * hands on when a thread execs, so the key survives a multi-threaded exec.
 */
struct sl_process_key {
	__u64 start_ns;
	__u32 tgid; /* in the initial pid namespace */
	__u32 pad;
};

/* How a process became a member of its sandbox. */
enum sl_process_flag {
	SL_PROC_SEEDED = 1 << 0, /* was in the cgroup when the sandbox was attached */
	SL_PROC_MOVED = 1 << 1,  /* was moved into the cgroup */
	SL_PROC_BORN = 1 << 2,   /* was created in the cgroup by a non-member */
	SL_PROC_CHILD = 1 << 3,  /* was forked by a member */
	SL_PROC_EXECED = 1 << 4, /* has executed an image as a member */
	SL_PROC_EXITED = 1 << 5, /* its last thread has exited */
	SL_PROC_SETUID = 1 << 6, /* its image gained privilege (bprm->secureexec) */
};

/* Value of map `procs`; the body of exec, fork and exit events. */
struct sl_process {
	struct sl_process_key key;
	struct sl_process_key parent; /* real_parent's process when it was recorded */
	__u64 exec_ns;                /* last exec seen, 0 before the first */
	__u32 sandbox;                /* sandbox id */
	__u32 lineage;                /* lineage id, whose leaf is the running image */
	__u32 exe;                    /* executable id of the running image */
	__u32 script;                 /* executable id of the script it runs, 0 when none */
	__u32 ns_pid;                 /* pid in its own, innermost pid namespace */
	__u32 uid;
	__u32 gid;
	__u32 flags; /* enum sl_process_flag */
	char comm[SL_COMM_LEN];
};

/*
 * The owner of a socket as of one moment, copied into the socket's record, so that
 * nothing about it needs to be looked up after the process has gone.
 */
struct sl_owner {
	__u64 start_ns; /* with tgid: the process key */
	__u32 tgid;
	__u32 tid;    /* the thread, or io_uring worker, that made the call */
	__u32 ns_pid; /* tgid in the innermost pid namespace */
	__u32 sandbox;
	__u32 lineage;
	__u32 exe;
	__u32 script;
	__u32 uid;
	char comm[SL_COMM_LEN]; /* of the thread: an extra, never an identity */
};

#endif
