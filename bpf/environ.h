/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment of an image that was just executed, as the kernel has put it on the new
 * stack: create_elf_tables() (fs/binfmt_elf.c) sets mm->env_start and env_end before
 * sched_process_exec runs, and the only thread there is has not run an instruction yet. So
 * what is read here is what the loader will read, whatever was asked for and whoever wrote to
 * the caller's memory meanwhile; only another process' write to this one could change it.
 */
#ifndef SLUICE_BPF_ENVIRON_H
#define SLUICE_BPF_ENVIRON_H

#include <bpf/bpf_core_read.h>

#include "scratch.h"

/* Variables, and pieces of SL_PATH_MAX bytes of long ones. What is beyond is not read. */
#define ENVIRON_STEPS 8192

struct environ_walk {
	__u64 at, end;
	__u32 slot;
	bool within; /* the next piece goes on with a variable */
	bool clean;  /* all was read, and nothing was found */
	bool found;
};

/*
 * Variables by which the loader, or the C library on its own, loads code from elsewhere or
 * changes how it works: all of ld.so(8)'s, and the two of glibc that have other names.
 */
static __always_inline bool environ_of_loader(const char *name)
{
	if (name[0] == 'L')
		return name[1] == 'D' && name[2] == '_';
	return name[0] == 'G' &&
	       (!bpf_strncmp(name, 11, "GCONV_PATH=") || !bpf_strncmp(name, 15, "GLIBC_TUNABLES="));
}

static long environ_step(__u32 i, void *data)
{
	struct environ_walk *w = data;
	struct scratch *s = scratch_at(w->slot);
	long len;

	if (w->at >= w->end) {
		w->clean = !w->found;
		return 1;
	}
	/* Not resident (swapped out since it was written): can't be told. */
	len = s ? bpf_probe_read_user_str(s->buf, SL_PATH_MAX, (const void *)w->at) : -1;
	if (len <= 0)
		return 1;
	if (!w->within && environ_of_loader(s->buf)) {
		w->found = true;
		return 1;
	}
	/* A full buffer ends in a terminator of the helper's own. */
	w->within = len == SL_PATH_MAX;
	w->at += w->within ? len - 1 : len;
	return 0;
}

/* Whether the new image of the calling task was started without any of these variables. */
SL_GLOBAL int environ_clean(__u64 task_at)
{
	struct task_struct *task = (void *)task_at;
	struct environ_walk w = {};

	w.at = BPF_CORE_READ(task, mm, env_start);
	w.end = BPF_CORE_READ(task, mm, env_end);
	w.slot = scratch_take();
	if (w.slot == SCRATCH_NONE)
		return 0;
	bpf_loop(ENVIRON_STEPS, environ_step, &w, 0);
	scratch_give(w.slot);
	return w.clean;
}

#endif
