/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Per-CPU work space too large for the 512-byte stack. Programs can be preempted by
 * another one on the same CPU (iterators are), and need not end in the reverse order,
 * so each takes a slot of its own and gives it back.
 */
#ifndef SLUICE_BPF_SCRATCH_H
#define SLUICE_BPF_SCRATCH_H

#include "counter.h"

#define SCRATCH_SLOTS 4
#define SCRATCH_NONE SCRATCH_SLOTS

/* Images before the sandbox's entry that are looked up. */
#define SCRATCH_ANCESTORS 16

struct scratch {
	__u32 busy;
	__u32 ancestors[SCRATCH_ANCESTORS]; /* executable ids, nearest first */
	__u32 pad;
	/*
	 * A path is written from the end of the first half downwards. The second half
	 * stays zero, so SL_PATH_MAX bytes from any start are the path and its padding.
	 */
	char buf[2 * SL_PATH_MAX];
	struct sl_exe exe;
};

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch_map SEC(".maps");

static __always_inline struct scratch *scratch_at(__u32 slot)
{
	return bpf_map_lookup_elem(&scratch_map, &slot);
}

/* A slot number, SCRATCH_NONE when all are in use (counted). */
static __always_inline __u32 scratch_take(void)
{
	struct scratch *s;

	for (__u32 slot = 0; slot < SCRATCH_SLOTS; slot++) {
		s = scratch_at(slot);
		if (s && !__sync_lock_test_and_set(&s->busy, 1))
			return slot;
	}
	count(0, SL_COUNTER_SCRATCH_BUSY);
	return SCRATCH_NONE;
}

static __always_inline void scratch_give(__u32 slot)
{
	struct scratch *s = scratch_at(slot);

	if (s)
		__sync_lock_test_and_set(&s->busy, 0);
}

#endif
