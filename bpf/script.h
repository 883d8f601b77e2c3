/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scripts: the name that was passed to exec, interned as a label beside the interpreter. */
#ifndef SLUICE_BPF_SCRIPT_H
#define SLUICE_BPF_SCRIPT_H

#include "exe.h"

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
static __noinline __u32 exe_of_script(const char *filename, struct task_struct *task)
{
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
	id = exe_intern(s, slot);
out:
	scratch_give(slot);
	return id;
}

#endif
