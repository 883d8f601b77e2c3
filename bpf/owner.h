/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a socket call, taken from `current`: only in programs that run in the
 * caller's own context.
 */
#ifndef SLUICE_BPF_OWNER_H
#define SLUICE_BPF_OWNER_H

#include <bpf/bpf_core_read.h>

#include "ring.h"

/* Fills *owner from the calling task; false when it is no member of a sandbox. */
static __always_inline bool owner_now(struct sl_owner *owner)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sl_owner *state = bpf_task_storage_get(&tasks, task->group_leader, NULL, 0);

	if (!state)
		return false;
	*owner = *state;
	owner->tid = task->pid;
	owner->uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(owner->comm, sizeof(owner->comm));
	return true;
}

static __always_inline bool owner_equal(const struct sl_owner *a, const struct sl_owner *b)
{
	return a->tgid == b->tgid && a->start_ns == b->start_ns && a->lineage == b->lineage;
}

/*
 * Notes that the calling process uses the socket. Another process than the owner, or the
 * owner after an exec, becomes `user`.
 */
static __always_inline void sock_note_user(struct sl_sock *rec)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sl_owner *state = bpf_task_storage_get(&tasks, task->group_leader, NULL, 0);

	if (!state || owner_equal(&rec->owner, state))
		return;
	if ((rec->flags & SL_SOCK_INHERITED) && owner_equal(&rec->user, state))
		return;
	owner_now(&rec->user);
	rec->flags |= SL_SOCK_INHERITED;
}

#endif
