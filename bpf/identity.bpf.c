// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Identity: who runs what, as tracepoints see it.
 *
 *	kernel_clone()        -> sched_process_fork   after the child is in its cgroup,
 *	                                              before it runs
 *	begin_new_exec() ..   -> sched_process_exec   in exec_binprm(), the new image is in
 *	                                              place, before its first instruction
 *	do_exit()             -> sched_process_exit   every thread; before its files close
 *	cgroup_migrate()      -> cgroup_attach_task   every thread, every hierarchy
 */
#include "kernel.h"
#include "environ.h"
#include "guard.h"
#include "identity.h"
#include "script.h"
#include "trampoline.h"

TRAMPOLINE(sched_process_fork)
TRAMPOLINE(sched_process_exec)
TRAMPOLINE(sched_process_exit)
TRAMPOLINE(cgroup_attach_task)

/*
 * Functions of their own for their stack: before 6.13 a program and what it calls share
 * 512 bytes, and process_enter() goes deep.
 */
static __noinline int fork_member(struct task_struct *parent, struct task_struct *child,
				  struct sl_owner *from)
{
	struct sl_process process = {};
	struct sl_process_key parent_key = { .start_ns = from->start_ns, .tgid = from->tgid };
	struct sl_process *up = bpf_map_lookup_elem(&procs, &parent_key);

	process.key = process_key(child);
	process.parent = parent_key;
	process.exec_ns = up ? up->exec_ns : 0;
	process.sandbox = from->sandbox;
	process.lineage = from->lineage;
	process.exe = from->exe;
	process.script = from->script;
	process.ns_pid = process_ns_pid(child);
	process.flags = SL_PROC_CHILD;
	process_fill_credentials(&process, child);
	owner_touch(from);
	if (!process_store(child, &process))
		return 0;
	count(process.sandbox, SL_COUNTER_PROC_FORKED);
	process_event(SL_EVENT_FORK, &process, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct sl_owner *from;
	__u32 sandbox;

	if (child->pid != child->tgid) /* a thread */
		return 0;
	from = task_state(parent->group_leader);
	if (from) {
		/* Not for a sandbox that is being detached: nothing would end it. */
		if (sandbox_exists(from->sandbox))
			fork_member(parent, child, from);
		return 0;
	}
	/* CLONE_INTO_CGROUP, or a parent that is about to be seeded. */
	sandbox = task_cgroup_sandbox(child);
	if (sandbox)
		process_enter(child, sandbox, SL_PROC_BORN);
	return 0;
}

static __noinline int exec_member(struct task_struct *task, struct linux_binprm *bprm,
				  struct sl_owner *state, __u32 old_pid)
{
	struct sl_process_key key = { .start_ns = state->start_ns, .tgid = state->tgid };
	struct sl_process *row = bpf_map_lookup_elem(&procs, &key);
	const char *filename = bprm->filename, *interp = bprm->interp;
	struct sl_process process = {};
	__u32 by_env, flags;

	if (row)
		process = *row;
	by_env = script_by_env(&process);
	process.key = key;
	process.sandbox = state->sandbox;
	process.ns_pid = state->ns_pid;
	process.exec_ns = bpf_ktime_get_boot_ns();
	process.flags |= SL_PROC_EXECED;
	if (BPF_CORE_READ_BITFIELD_PROBED(bprm, secureexec))
		process.flags |= SL_PROC_SETUID;
	process_fill_credentials(&process, task);
	process.exe = exe_of_file(plain(bprm->file), plain(task));
	/* binfmt_script and binfmt_misc replace interp and leave filename. */
	process.script = interp != filename ? exe_of_script(plain(filename), plain(task)) : by_env;
	flags = guard_elsewhere(process.sandbox, task);
	if (guard_is_strict(process.sandbox) && environ_clean(plain(task)))
		flags |= SL_LINEAGE_CHECKED;
	process.lineage = lineage_extend(state->lineage, process.exe, process.script, flags);
	guard_lineage(process.sandbox, process.lineage);
	process_store(task, &process);
	count(process.sandbox, SL_COUNTER_EXEC);
	process_event(SL_EVENT_EXEC, &process, 0, old_pid);
	return 0;
}

/*
 * Rebuilds a lost storage from the row in `procs`. 0 when there is no such row. A function
 * of its own for its stack.
 */
static __noinline int process_adopt(struct task_struct *leader)
{
	struct sl_process_key key = process_key(leader);
	struct sl_process *process = bpf_map_lookup_elem(&procs, &key);
	struct sl_owner owner = {};

	if (!process)
		return 0;
	if (task_state(leader))
		return 1;
	owner_from_process(&owner, process);
	if (!task_state_make(leader, &owner)) {
		count(process->sandbox, SL_COUNTER_TASK_NOMEM);
		return 1;
	}
	count(process->sandbox, SL_COUNTER_PROC_ADOPTED);
	return 1;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct sl_owner *state = task_state(task);
	__u32 sandbox;

	if (!state && !process_adopt(task)) {
		/* In a sandbox's cgroup and not known: entered while it was being attached. */
		sandbox = task_cgroup_sandbox(task);
		if (!sandbox)
			return 0;
		process_enter(task, sandbox, SL_PROC_BORN);
	}
	if (!state)
		state = task_state(task);
	if (state)
		exec_member(task, bprm, state, old_pid);
	return 0;
}

/* As wait(2) would report it. */
static __always_inline __s32 process_exit_code(struct task_struct *task)
{
	__s32 code = BPF_CORE_READ(task, signal, group_exit_code);

	return code ? code : BPF_CORE_READ(task, exit_code);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct sl_owner *state = task_state(leader);
	struct sl_process process = {};
	struct sl_process *row;

	if (!state)
		return 0;
	/* do_exit() has taken this thread off the count of the live ones. */
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	process.key = process_key(leader);
	process.sandbox = state->sandbox;
	process.lineage = state->lineage;
	process.exe = state->exe;
	/* Two last threads may both see zero: the one that removes the storage goes on. */
	if (task_state_delete(leader))
		return 0;
	row = bpf_map_lookup_elem(&procs, &process.key);
	if (row)
		process = *row;
	bpf_map_delete_elem(&procs, &process.key);
	process.flags |= SL_PROC_EXITED;
	count(process.sandbox, SL_COUNTER_PROC_EXITED);
	process_event(SL_EVENT_EXIT, &process, process_exit_code(task), 0);
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, struct cgroup *cgroup, const char *path, struct task_struct *task)
{
	struct sl_owner *state;
	__u32 sandbox;

	if (BPF_CORE_READ(cgroup, root, hierarchy_id) != CGROUP2_HIERARCHY)
		return 0;
	sandbox = cgroup_sandbox_typed(cgroup);
	if (sandbox) {
		process_enter(task->group_leader, sandbox, SL_PROC_MOVED);
		return 0;
	}
	if (task != task->group_leader)
		return 0;
	/* A member still, but where it goes no hook of its sandbox runs. */
	state = task_state(task);
	if (state)
		count(state->sandbox, SL_COUNTER_PROC_LEFT);
	return 0;
}
