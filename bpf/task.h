/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is kept of a process, for the hooks: one struct sl_owner, with its thread-group
 * leader. It is in the leader's task storage where every hook may read that. On 6.1 only
 * tracing programs may; then it is in the hash `owners`, by process key, for all programs.
 * The loader tries, and sets owners_by_key before it loads: the verifier drops the other
 * branch, so a helper that is missing is never looked at.
 *
 * A row of the hash stays until the process exits or its sandbox ends, where a storage
 * also goes with its task. A multi-threaded exec keeps the key, and so the row.
 */
#ifndef SLUICE_BPF_TASK_H
#define SLUICE_BPF_TASK_H

#include <bpf/bpf_core_read.h>

#include "maps.h"

extern const volatile bool owners_by_key;

static __always_inline struct sl_process_key process_key(struct task_struct *leader)
{
	struct sl_process_key key = {
		.start_ns = BPF_CORE_READ(leader, start_boottime),
		.tgid = BPF_CORE_READ(leader, tgid),
	};

	return key;
}

/* NULL when the process is no member of a sandbox. */
static __always_inline struct sl_owner *task_state(struct task_struct *leader)
{
	struct sl_process_key key;

	if (!owners_by_key)
		return bpf_task_storage_get(&tasks, leader, NULL, 0);
	key = process_key(leader);
	return bpf_map_lookup_elem(&owners, &key);
}

/*
 * The state; made as *owner if there is none, so that no hook on another CPU finds one
 * that names no sandbox. NULL when there is no room.
 */
static __always_inline struct sl_owner *task_state_make(struct task_struct *leader,
							struct sl_owner *owner)
{
	struct sl_process_key key;

	if (!owners_by_key)
		return bpf_task_storage_get(&tasks, leader, owner, BPF_LOCAL_STORAGE_GET_F_CREATE);
	key = process_key(leader);
	/* Two at once: the second finds what the first has made. */
	bpf_map_update_elem(&owners, &key, owner, BPF_NOEXIST);
	return bpf_map_lookup_elem(&owners, &key);
}

/* 0 for the one caller that has removed it. */
static __always_inline long task_state_delete(struct task_struct *leader)
{
	struct sl_process_key key;

	if (!owners_by_key)
		return bpf_task_storage_delete(&tasks, leader);
	key = process_key(leader);
	return bpf_map_delete_elem(&owners, &key);
}

#endif
