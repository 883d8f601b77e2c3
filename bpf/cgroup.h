/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sandbox that a cgroup belongs to. */
#ifndef SLUICE_BPF_CGROUP_H
#define SLUICE_BPF_CGROUP_H

#include <bpf/bpf_core_read.h>

#include "maps.h"

/* cgroup levels that are searched for a sandbox, deepest first. */
#define CGROUP_LEVELS 64

struct cgroup_search {
	struct cgroup *cgroup;
	int level;
	__u32 sandbox;
};

static long cgroup_search_step(__u32 i, void *data)
{
	struct cgroup_search *c = data;
	struct cgroup *ancestor;
	__u64 id;
	__u32 *sandbox;

	if (c->level < 0)
		return 1;
	ancestor = NULL;
	bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
			      (void *)c->cgroup + bpf_core_field_offset(struct cgroup, ancestors) +
				      c->level * sizeof(void *));
	id = BPF_CORE_READ(ancestor, kn, id);
	sandbox = bpf_map_lookup_elem(&cgroups, &id);
	if (sandbox) {
		c->sandbox = *sandbox;
		return 1;
	}
	c->level--;
	return 0;
}

/* As cgroup_sandbox(), of a cgroup that the verifier knows as such: it takes no number of it. */
static __always_inline __u32 cgroup_sandbox_typed(struct cgroup *cgroup)
{
	struct cgroup_search c = { .cgroup = cgroup, .level = BPF_CORE_READ(cgroup, level) };

	bpf_loop(CGROUP_LEVELS, cgroup_search_step, &c, 0);
	return c.sandbox;
}

SL_GLOBAL __u32 cgroup_search(__u64 address)
{
	return cgroup_sandbox_typed((void *)address);
}

/* Sandbox that a cgroup2 cgroup is, or is below of; 0 for none. It was read from memory. */
static __always_inline __u32 cgroup_sandbox(struct cgroup *cgroup)
{
	return cgroup_search((__u64)cgroup);
}

static __always_inline __u32 task_cgroup_sandbox(struct task_struct *task)
{
	return cgroup_sandbox(BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

#endif
