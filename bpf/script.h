/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scripts: the name that was passed to exec, interned as a label beside the interpreter, and
 * handed on by env to what it becomes.
 */
#ifndef SLUICE_BPF_SCRIPT_H
#define SLUICE_BPF_SCRIPT_H

#include "lineage.h"

/* Puts the script's name as passed to exec at the end of the buffer; its length. */
static __always_inline __u32 script_name(struct scratch *s, const char *filename)
{
	long len = bpf_probe_read_kernel_str(s->exe.path, SL_PATH_MAX, filename);
	__u32 skip = 0, n;

	if (len <= 1)
		return 0;
	if (s->exe.path[0] == '.' && s->exe.path[1] == '/')
		skip = 2;
	n = (__u32)len - 1 - skip;
	if (n >= SL_PATH_MAX - 2)
		return 0;
	bpf_probe_read_kernel(&s->buf[(PATH_END - n) & (SL_PATH_MAX - 1)], n & (SL_PATH_MAX - 1),
			      filename + skip);
	return n;
}

/*
 * Id of a script's name, made absolute with the working directory of `task`. A label:
 * interpreters open it again by name, so it has no identity of its own.
 */
SL_GLOBAL __u32 exe_of_script(__u64 filename_at, __u64 task_at)
{
	const char *filename = (void *)filename_at;
	struct task_struct *task = (void *)task_at;
	struct sl_config *cfg = config_get();
	struct path_walk w = {};
	struct scratch *s;
	__u32 slot, len, id = 0;

	slot = scratch_take();
	s = scratch_at(slot);
	if (!s || !cfg)
		return 0;
	len = script_name(s, filename);
	if (!len)
		goto out;
	w.slot = slot;
	w.off = PATH_END - len;
	w.root_at = w.off;
	if (s->buf[w.off & (SL_PATH_MAX - 1)] != '/') {
		struct fs_struct *fs = BPF_CORE_READ(task, fs);

		s->buf[(w.off - 1) & (SL_PATH_MAX - 1)] = '/';
		path_walk_start(&w, __builtin_preserve_access_index(&fs->pwd), task, w.off - 1);
		path_walk_up(&w);
	}
	path_store(&w, s);
	__builtin_memset(&s->exe.key, 0, sizeof(s->exe.key));
	s->exe.key.path_hash = path_hash(s, slot, cfg->hash_seed);
	s->exe.key.flags = SL_EXE_SCRIPT | (w.flags & SL_EXE_TRUNCATED);
	s->exe.size = 0;
	s->exe.seen_ns = bpf_ktime_get_boot_ns();
	id = exe_intern(slot);
out:
	scratch_give(slot);
	return id;
}

static __always_inline bool exe_is_env(const struct sl_exe *exe)
{
	const char path[] = SL_ENV_PATH;

	if (exe->key.flags & SL_EXE_NAMELESS)
		return false;
	for (unsigned int i = 0; i < sizeof(path); i++)
		if (exe->path[i] != path[i])
			return false;
	return true;
}

/*
 * The script on whose behalf env has executed what runs now; 0: none. The kernel has started
 * env for it, with arguments that the script's first line gives before the script's own
 * name, so the script has chosen what env becomes; its caller's arguments come after that.
 * argv says nothing of it. Env never forks: what a child executes is somebody else's choice.
 */
static __always_inline __u32 script_by_env(const struct sl_process *before)
{
	__u32 lineage = before->lineage;
	struct sl_lineage *node = bpf_map_lookup_elem(&lineages, &lineage);
	struct sl_exe *exe, *script;

	if (!(before->flags & SL_PROC_EXECED) || !node || !node->key.script ||
	    (node->key.flags & SL_LINEAGE_ELSEWHERE))
		return 0;
	exe = bpf_map_lookup_elem(&exes, &node->key.exe);
	script = bpf_map_lookup_elem(&exes, &node->key.script);
	if (!exe || !script || !exe_is_env(exe))
		return 0;
	exe_touch(script);
	return script->id;
}

#endif
