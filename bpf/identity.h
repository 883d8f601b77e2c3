/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who a task is: membership in a sandbox, process key, running image, lineage.
 *
 * State lives with the thread-group leader (task.h), in the form a socket hook copies
 * (struct sl_owner). io_uring workers and threads thus have no state of their own
 * and need none. `procs` mirrors it: it is what user space lists, and what a
 * multi-threaded exec, which changes the leader and so loses the storage, is rebuilt from.
 */
#ifndef SLUICE_BPF_IDENTITY_H
#define SLUICE_BPF_IDENTITY_H

#include "cgroup.h"
#include "lineage.h"
#include "task.h"

/* Hierarchy id of cgroup2: its root is registered first (cgroup_init()). */
#define CGROUP2_HIERARCHY 0

/* The pid a process has in its own, innermost pid namespace. */
static __always_inline __u32 process_ns_pid(struct task_struct *leader)
{
	struct pid *pid = BPF_CORE_READ(leader, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level), nr = 0;
	void *upid = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
		     level * bpf_core_type_size(struct upid);

	bpf_core_read(&nr, sizeof(nr), &((struct upid *)upid)->nr);
	return nr;
}

static __always_inline bool sandbox_exists(__u32 sandbox)
{
	return bpf_map_lookup_elem(&sandboxes, &sandbox) != NULL;
}

static __always_inline void process_event(enum sl_event_kind kind, struct sl_process *process,
					  __s32 exit_code, __u32 old_pid)
{
	struct sl_event_process *event;

	event = event_begin(process->sandbox, kind, sizeof(*event), bpf_ktime_get_boot_ns());
	if (!event)
		return;
	event->process = *process;
	event->exit_code = exit_code;
	event->old_pid = old_pid;
	event_end(process->sandbox, event);
}

/* Copies what belongs to the process; tid and comm are the caller's at each use. */
static __always_inline void owner_from_process(struct sl_owner *owner, struct sl_process *process)
{
	owner->start_ns = process->key.start_ns;
	owner->tgid = process->key.tgid;
	owner->ns_pid = process->ns_pid;
	owner->sandbox = process->sandbox;
	owner->lineage = process->lineage;
	owner->exe = process->exe;
	owner->script = process->script;
}

/*
 * Keeps what a process hands to its child. A sweep that finds neither of the two, since
 * one has gone and the other was not there yet, finds this.
 */
static __always_inline void owner_touch(const struct sl_owner *from)
{
	struct sl_lineage *node = bpf_map_lookup_elem(&lineages, &from->lineage);
	struct sl_exe *exe;

	if (node) { /* which refers to the executable and the script */
		lineage_touch(node);
		return;
	}
	exe = bpf_map_lookup_elem(&exes, &from->exe);
	if (exe)
		exe_touch(exe);
	exe = bpf_map_lookup_elem(&exes, &from->script);
	if (exe)
		exe_touch(exe);
}

/*
 * Publishes a process: row, then state. 0 when there is no room (counted). A function of
 * its own for its stack: with what a caller calls next, 512 bytes must do.
 */
static __noinline int process_store(struct task_struct *leader, struct sl_process *process)
{
	struct sl_owner owner = {}, *state;
	long err;

	err = bpf_map_update_elem(&procs, &process->key, process, BPF_ANY);
	if (err)
		count_map_error(process->sandbox, SL_COUNTER_PROCS_FULL, err);
	owner_from_process(&owner, process);
	state = task_state_make(leader, &owner);
	if (!state) {
		count(process->sandbox, SL_COUNTER_TASK_NOMEM);
		return 0;
	}
	owner_from_process(state, process);
	return 1;
}

static __always_inline void process_fill_credentials(struct sl_process *process,
						     struct task_struct *task)
{
	process->uid = BPF_CORE_READ(task, cred, uid.val);
	process->gid = BPF_CORE_READ(task, cred, gid.val);
	BPF_CORE_READ_STR_INTO(&process->comm, task, comm);
}

/* --- entry into a sandbox --- */

struct ancestry {
	struct task_struct *task; /* next to look at */
	__u32 slot;
	__u32 n;
};

static long ancestry_up(__u32 i, void *data)
{
	struct ancestry *a = data;
	struct scratch *s = scratch_at(a->slot);
	struct task_struct *task = a->task;
	struct file *file = BPF_CORE_READ(task, mm, exe_file);

	/* Kernel threads have no image and no interesting parent. */
	if (!s || !file)
		return 1;
	s->ancestors[i & (SCRATCH_ANCESTORS - 1)] = exe_of_file((__u64)file, (__u64)task);
	a->n = i + 1;
	if (BPF_CORE_READ(task, tgid) == 1)
		return 1;
	a->task = BPF_CORE_READ(task, real_parent, group_leader);
	return 0;
}

struct ancestry_down {
	__u32 slot;
	__u32 n;
	__u32 lineage;
	__u32 leaf_flags;
};

static long ancestry_down(__u32 i, void *data)
{
	struct ancestry_down *d = data;
	struct scratch *s = scratch_at(d->slot);
	__u32 at = d->n - 1 - i;

	if (!s || i >= d->n)
		return 1;
	d->lineage = lineage_extend(d->lineage, s->ancestors[at & (SCRATCH_ANCESTORS - 1)], 0,
				    SL_LINEAGE_OUTSIDE);
	return 0;
}

/*
 * Lineage of a task that comes in from outside: its image and its parents' images, all
 * marked as from outside, since none was executed by a member.
 */
SL_GLOBAL __u32 lineage_outside(__u64 leader_at, __u32 *exe)
{
	struct ancestry a = { .task = (void *)leader_at };
	struct ancestry_down d = {};
	struct scratch *s;

	if (!exe)
		return 0;
	a.slot = scratch_take();
	s = scratch_at(a.slot);
	if (!s)
		return 0;
	bpf_loop(SCRATCH_ANCESTORS, ancestry_up, &a, 0);
	*exe = a.n ? s->ancestors[0] : 0;
	d.slot = a.slot;
	d.n = a.n;
	bpf_loop(SCRATCH_ANCESTORS, ancestry_down, &d, 0);
	scratch_give(a.slot);
	return d.lineage;
}

/*
 * Makes `leader` a member of `sandbox`. `how` is its SL_PROC_ flag. Does nothing when it
 * is a member already: the first sandbox wins, and membership never ends.
 */
static __noinline int process_enter(struct task_struct *leader, __u32 sandbox, __u32 how)
{
	struct sl_process process = {};
	struct task_struct *parent;

	if (task_state(leader))
		return 0;
	process.key = process_key(leader);
	parent = BPF_CORE_READ(leader, real_parent, group_leader);
	process.parent = process_key(parent);
	process.sandbox = sandbox;
	process.ns_pid = process_ns_pid(leader);
	process.flags = how;
	process_fill_credentials(&process, leader);
	process.lineage = lineage_outside(plain(leader), &process.exe);
	if (!process_store(leader, &process))
		return 0;
	count(sandbox, SL_COUNTER_PROC_ENTERED);
	process_event(SL_EVENT_ENTER, &process, 0, 0);
	return 1;
}

#endif
