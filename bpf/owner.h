/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a socket call, taken from `current`: only in programs that run in the
 * caller's own context.
 */
#ifndef SLUICE_BPF_OWNER_H
#define SLUICE_BPF_OWNER_H

#include <bpf/bpf_core_read.h>

#include "ring.h"
#include "task.h"

/* What is kept of the calling process; NULL when it is no member of a sandbox. */
static __always_inline struct sl_owner *owner_state(struct task_struct *task)
{
	return task_state(task->group_leader);
}

/* `state` is the caller's; the rest is its thread's. */
static __always_inline void owner_fill(struct sl_owner *owner, const struct sl_owner *state,
				       struct task_struct *task)
{
	__builtin_memcpy(owner, state, offsetof(struct sl_owner, comm));
	owner->tid = task->pid;
	owner->uid = bpf_get_current_uid_gid();
	__builtin_memcpy(owner->comm, task->comm, sizeof(owner->comm));
}

/* Fills *owner from the calling task; false when it is no member of a sandbox. */
static __always_inline bool owner_now(struct sl_owner *owner)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sl_owner *state = owner_state(task);

	if (state)
		owner_fill(owner, state, task);
	return state != NULL;
}

static __always_inline bool owner_equal(const struct sl_owner *a, const struct sl_owner *b)
{
	return a->tgid == b->tgid && a->start_ns == b->start_ns && a->lineage == b->lineage;
}

#endif
