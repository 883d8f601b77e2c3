/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The task that waits in a held call: who it is and what its memory says. Everything read
 * here is of use only if the notification is still valid afterwards (sl_notify_valid()):
 * until then a number may have become another task's.
 *
 * Memory is read by process_vm_readv(2). /proc/TID/mem is no fallback: it asks for the same
 * privilege, and it ignores page protection, so it would read what the kernel's own copy of
 * the argument fails on.
 */
#ifndef SLUICE_USER_BROKER_TASK_H
#define SLUICE_USER_BROKER_TASK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * A process as user space can name it. /proc gives the start time in clock ticks only; the
 * key that BPF records has nanoseconds of the same clock: compare with sl_start_ticks().
 */
struct sl_task {
	pid_t tid; /* the task that made the call */
	pid_t tgid;
	uint64_t start_ticks; /* of the thread-group leader */
};

/* Nanoseconds of CLOCK_BOOTTIME in the unit of sl_task, rounded as the kernel does. */
uint64_t sl_start_ticks(uint64_t start_ns);

/* -ESRCH: gone. -EMFILE and the like: this process lacks something. */
int sl_task_find(struct sl_task *out, pid_t tid);

/*
 * Exactly `len` bytes at `addr`. -EFAULT: the kernel will not be able to read them either.
 * -ESRCH: gone. -EPERM: this process lacks CAP_SYS_PTRACE over the task.
 */
int sl_task_read(pid_t tid, uint64_t addr, void *out, size_t len);

/* A terminated string of at most `size` bytes. -ENAMETOOLONG; else as above. */
int sl_task_read_string(pid_t tid, uint64_t addr, char *out, size_t size);

/*
 * Whether this process may read tasks it does not own, tried on a child: to be asked once
 * at the start, so that a missing privilege is not found call by call. -EPERM with a hint.
 */
int sl_task_check_access(struct sl_err *err);

#endif
