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

/*
 * Loops over words are not unrolled: 16 words at a time would be spilled to a stack that,
 * before 6.13, a program and all it calls share.
 */

/* Work space of one computation, in the scratch slot. */
struct guard_work {
	struct sl_guard_path path;
	struct sl_guard_lineage row;
	struct sl_grant earned; /* bits that need no script, or have the right one */
};
_Static_assert(sizeof(struct guard_work) <= SL_PATH_MAX, "fits the scratch buffer");

static __always_inline struct guard_work *guard_work(__u32 slot)
{
	struct scratch *s = scratch_at(slot);

	return s ? (struct guard_work *)s->buf : NULL;
}

SL_GLOBAL int bits_or(struct sl_bits *bits, const struct sl_bits *more)
{
	if (!bits || !more)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < SL_POLICY_WORDS; i++)
		bits->word[i] |= more->word[i];
	return 0;
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

/* What can be earned: where a rule asks for a script, as far as that does. */
static __always_inline void guard_earned(struct guard_work *work,
					 const struct sl_guard_policy *policy,
					 const struct sl_grant *script)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < SL_POLICY_WORDS; i++) {
		work->earned.own.word[i] = ~policy->script_bits.word[i];
		work->earned.inherited.word[i] = ~policy->script_bits.word[i];
	}
	if (!script)
		return;
	bits_or(&work->earned.own, &script->own);
	bits_or(&work->earned.inherited, &script->inherited);
}

SL_GLOBAL int guard_add(struct sl_bits *to, const struct sl_bits *bits,
			const struct sl_bits *earned)
{
	if (!to || !bits || !earned)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < SL_POLICY_WORDS; i++)
		to->word[i] |= bits->word[i] & earned->word[i];
	return 0;
}

/* Adds a grant to the row; if it is not to be had, as what would have been earned. */
static __always_inline void guard_earn(struct guard_work *work, const struct sl_grant *grant,
				       bool granted)
{
	if (!granted) {
		guard_add(&work->row.missed, &grant->own, &work->earned.own);
		return;
	}
	guard_add(&work->row.match, &grant->own, &work->earned.own);
	guard_add(&work->row.inherited, &grant->inherited, &work->earned.inherited);
}

/* What user space found of the file while its exec was held; NULL: it was not looked at. */
static __always_inline struct sl_guard_grant *guard_file(__u32 policy, __u32 exe_id)
{
	struct sl_exe *exe = bpf_map_lookup_elem(&exes, &exe_id);
	struct sl_guard_file key = { .policy = policy };

	if (!exe)
		return NULL;
	key.ino = exe->key.ino;
	key.ctime_ns = exe->key.ctime_ns;
	key.path_hash = exe->key.path_hash;
	key.dev = exe->key.dev;
	return bpf_map_lookup_elem(&guard_files, &key);
}

/* Adds what the leaf earns: by its path, and by what was found of its file. */
static __always_inline void guard_leaf(struct guard_work *work, __u32 id,
				       const struct sl_guard_policy *policy,
				       const struct sl_lineage *node)
{
	struct sl_grant *script = guard_script(work, id, policy, node);
	struct sl_grant *path = guard_grant(work, id, SL_GUARD_TABLE_EXE, node->key.exe);
	struct sl_guard_grant *file = guard_file(id, node->key.exe);
	bool trusted = file && (file->flags & SL_GUARD_FILE_TRUSTED);

	guard_earned(work, policy, script);
	if (path)
		guard_earn(work, path, trusted || !policy->first_use);
	if (!file)
		return;
	guard_earn(work, &file->granted, true);
	guard_earn(work, &file->missed, false);
	guard_earn(work, &file->trusted, trusted);
}

/* Takes strict bits from an image that the loader may have put code into. */
static __always_inline void guard_strict(struct guard_work *work,
					 const struct sl_guard_policy *policy, __u32 lineage_flags)
{
	__u64 strict;

	if (lineage_flags & SL_LINEAGE_CHECKED)
		return;
#pragma clang loop unroll(disable)
	for (int i = 0; i < SL_POLICY_WORDS; i++) {
		strict = policy->strict_bits.word[i];
		if (work->row.match.word[i] & strict)
			work->row.flags |= SL_GUARD_UNCHECKED;
		work->row.missed.word[i] |= work->row.match.word[i] & strict;
		work->row.match.word[i] &= ~strict;
		work->row.inherited.word[i] &= ~strict;
	}
}

static __always_inline bool bits_any(const struct sl_bits *bits)
{
	__u64 any = 0;

#pragma clang loop unroll(disable)
	for (int i = 0; i < SL_POLICY_WORDS; i++)
		any |= bits->word[i];
	return any != 0;
}

/*
 * Computes the row of `lineage` for one policy, unless it is there: it is a function of the
 * two and of what was found of the file. Under first use that may change, so a row that has
 * missed something is computed again. Without its parent's row it can't be: then user space,
 * which is loading the policy, does it.
 */
SL_GLOBAL int guard_compute(__u32 policy_id, __u32 lineage, __u32 slot)
{
	struct sl_guard_lineage_key key = { policy_id, lineage }, up_key = { policy_id, 0 };
	struct sl_guard_policy *policy = bpf_map_lookup_elem(&guard_policies, &policy_id);
	struct sl_lineage *node = bpf_map_lookup_elem(&lineages, &lineage), *parent;
	struct guard_work *work = guard_work(slot);
	struct sl_guard_lineage *up, *old = bpf_map_lookup_elem(&guard_lineages, &key);
	long err;

	if (!policy || !node || !work || (old && !(policy->first_use && bits_any(&old->missed))))
		return 0;
	__builtin_memset(&work->row, 0, sizeof(work->row));
	if (old) { /* who runs under it already keeps what it has */
		bits_or(&work->row.match, &old->match);
		bits_or(&work->row.inherited, &old->inherited);
	}
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
		guard_leaf(work, policy_id, policy, node);
	}
	guard_strict(work, policy, node->key.flags);
	err = bpf_map_update_elem(&guard_lineages, &key, &work->row, old ? BPF_EXIST : BPF_NOEXIST);
	if (err && err != -17 && err != -2) /* EEXIST, ENOENT: somebody else was first */
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

/* Whether a policy of the sandbox, one that is being loaded too, has strict bits. */
static __always_inline bool guard_is_strict(__u32 sandbox)
{
	struct sl_guard *guard = bpf_map_lookup_elem(&guards, &sandbox);

	return guard && (guard->flags & SL_GUARD_STRICT);
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
