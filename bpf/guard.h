/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a policy grants a lineage, computed when the lineage comes into being, at exec: for
 * the policy in force and for the one that is being loaded, so that a reload during execs
 * denies nobody wrongly. See sluice/guard.h.
 */
#ifndef SLUICE_BPF_GUARD_H
#define SLUICE_BPF_GUARD_H

#include "lineage.h"

_Static_assert(sizeof(struct sl_guard_path) - sizeof(__u32) == 256, "all that an LPM key has");

/* Work space of one computation, in the scratch slot. */
struct guard_work {
	struct sl_guard_path path;
	struct sl_guard_lineage row;
};
_Static_assert(sizeof(struct guard_work) <= SL_PATH_MAX, "fits the scratch buffer");

static __always_inline struct guard_work *guard_work(__u32 slot)
{
	struct scratch *s = scratch_at(slot);

	return s ? (struct guard_work *)s->buf : NULL;
}

static __always_inline void bits_or(struct sl_bits *bits, const struct sl_bits *more)
{
	for (int i = 0; i < SL_POLICY_WORDS; i++)
		bits->word[i] |= more->word[i];
}

/* What the policy grants the path of an executable; NULL for nothing. */
static __always_inline struct sl_grant *guard_grant(struct guard_work *work, __u32 policy,
						    enum sl_guard_table table, __u32 exe_id)
{
	struct sl_exe *exe = bpf_map_lookup_elem(&exes, &exe_id);

	if (!exe)
		return NULL;
	work->path.prefix_bits = 8 * (sizeof(work->path) - sizeof(__u32));
	__builtin_memcpy(work->path.policy, &policy, sizeof(policy));
	work->path.table = table;
	bpf_probe_read_kernel(work->path.path, sizeof(work->path.path), exe->path);
	return bpf_map_lookup_elem(&guard_paths, &work->path);
}

/* Whether the image has a name that the policy may match. */
static __always_inline bool guard_identity(__u32 exe_id, __u32 lineage_flags)
{
	struct sl_exe *exe = bpf_map_lookup_elem(&exes, &exe_id);

	return exe && !(exe->key.flags & SL_EXE_NAMELESS) &&
	       !(lineage_flags & SL_LINEAGE_ELSEWHERE);
}

/* What the script earns; NULL: nothing, or no rule asks. */
static __always_inline struct sl_grant *guard_script(struct guard_work *work, __u32 id,
						     const struct sl_guard_policy *policy,
						     const struct sl_lineage *node)
{
	if (!policy->has_scripts || !node->key.script)
		return NULL;
	return guard_grant(work, id, SL_GUARD_TABLE_SCRIPT, node->key.script);
}

/* Adds what an image earns, as far as its script does where a rule asks for one. */
static __always_inline void guard_add(struct sl_bits *to, const struct sl_bits *bits,
				      const struct sl_guard_policy *policy,
				      const struct sl_bits *script)
{
	for (int i = 0; i < SL_POLICY_WORDS; i++)
		to->word[i] |= bits->word[i] &
			       (~policy->script_bits.word[i] | (script ? script->word[i] : 0));
}

/* Adds what the image itself earns. */
static __always_inline void guard_image(struct guard_work *work, __u32 id,
					const struct sl_guard_policy *policy, __u32 exe_id,
					const struct sl_grant *script)
{
	struct sl_grant *grant = guard_grant(work, id, SL_GUARD_TABLE_EXE, exe_id);

	if (!grant)
		return;
	guard_add(&work->row.match, &grant->own, policy, script ? &script->own : NULL);
	guard_add(&work->row.inherited, &grant->inherited, policy,
		  script ? &script->inherited : NULL);
}

/* Adds what user space found the file to earn while its exec was held. */
static __always_inline void guard_file(struct guard_work *work, __u32 id,
				       const struct sl_guard_policy *policy, __u32 exe_id,
				       const struct sl_grant *script)
{
	struct sl_exe *exe = bpf_map_lookup_elem(&exes, &exe_id);
	struct sl_guard_file key = { .policy = id };
	struct sl_guard_grant *grant;

	if (!exe)
		return;
	key.ino = exe->key.ino;
	key.ctime_ns = exe->key.ctime_ns;
	key.path_hash = exe->key.path_hash;
	key.dev = exe->key.dev;
	grant = bpf_map_lookup_elem(&guard_files, &key);
	if (!grant)
		return;
	guard_add(&work->row.match, &grant->granted.own, policy, script ? &script->own : NULL);
	guard_add(&work->row.inherited, &grant->granted.inherited, policy,
		  script ? &script->inherited : NULL);
	guard_add(&work->row.missed, &grant->missed.own, policy, script ? &script->own : NULL);
}

/*
 * Computes the row of `lineage` for one policy, unless it is there: it is a pure function
 * of the two. Without its parent's row it can't be: then user space, which is loading the
 * policy, does it.
 */
static __noinline int guard_compute(__u32 policy_id, __u32 lineage, __u32 slot)
{
	struct sl_guard_lineage_key key = { policy_id, lineage }, up_key = { policy_id, 0 };
	struct sl_guard_policy *policy = bpf_map_lookup_elem(&guard_policies, &policy_id);
	struct sl_lineage *node = bpf_map_lookup_elem(&lineages, &lineage), *parent;
	struct guard_work *work = guard_work(slot);
	struct sl_guard_lineage *up;
	struct sl_grant *script;
	long err;

	if (!policy || !node || !work || bpf_map_lookup_elem(&guard_lineages, &key))
		return 0;
	__builtin_memset(&work->row, 0, sizeof(work->row));
	up_key.lineage = node->key.parent;
	parent = bpf_map_lookup_elem(&lineages, &up_key.lineage);
	if (parent && !(parent->key.flags & SL_LINEAGE_OUTSIDE)) {
		up = bpf_map_lookup_elem(&guard_lineages, &up_key);
		if (!up)
			return 0;
		bits_or(&work->row.match, &up->inherited);
		bits_or(&work->row.inherited, &up->inherited);
	}
	if (!guard_identity(node->key.exe, node->key.flags)) {
		work->row.flags = SL_GUARD_NO_IDENTITY;
	} else {
		script = guard_script(work, policy_id, policy, node);
		guard_image(work, policy_id, policy, node->key.exe, script);
		guard_file(work, policy_id, policy, node->key.exe, script);
	}
	err = bpf_map_update_elem(&guard_lineages, &key, &work->row, BPF_NOEXIST);
	if (err && err != -17) /* EEXIST: user space, or another exec, was first */
		count_map_error(policy->sandbox, SL_COUNTER_GUARD_FULL, err);
	return 0;
}

/* Before a member's new lineage is published: its bits, for every policy that counts. */
static __always_inline void guard_lineage(__u32 sandbox, __u32 lineage)
{
	struct sl_guard *guard = bpf_map_lookup_elem(&guards, &sandbox);
	__u32 slot;

	if (!guard || !(guard->policy | guard->pending))
		return;
	slot = scratch_take();
	if (slot == SCRATCH_NONE)
		return;
	if (guard->policy)
		guard_compute(guard->policy, lineage, slot);
	if (guard->pending)
		guard_compute(guard->pending, lineage, slot);
	scratch_give(slot);
}

/* SL_LINEAGE_ELSEWHERE when `task` has other mounts than the policy's paths mean. */
static __always_inline __u32 guard_elsewhere(__u32 sandbox, struct task_struct *task)
{
	struct sl_guard *guard = bpf_map_lookup_elem(&guards, &sandbox);

	if (!guard || !guard->mnt_ns ||
	    BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum) == guard->mnt_ns)
		return 0;
	return SL_LINEAGE_ELSEWHERE;
}

#endif
