/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SLUICE_BPF_COUNTER_H
#define SLUICE_BPF_COUNTER_H

#include "maps.h"

/*
 * A pointer as a number: a global function takes no other, and CO-RE reads no socket that a
 * look-up has returned.
 */
static __always_inline __u64 plain(const void *pointer)
{
	__u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &pointer);
	return number;
}

static __always_inline void counter_add(__u32 sandbox, enum sl_counter which, __u64 n)
{
	struct sl_counters *row = bpf_map_lookup_elem(&counters, &sandbox);

	/* Preemptible programs share the row; an atomic add keeps sums exact. */
	if (row && which < SL_COUNTER_MAX)
		__sync_fetch_and_add(&row->n[which], n);
}

static __always_inline void count(__u32 sandbox, enum sl_counter which)
{
	counter_add(sandbox, which, 1);
}

/*
 * Counts a failed bpf_map_update_elem() by its cause. A full hash says E2BIG; ENOMEM comes
 * from maps that are not preallocated; EBUSY, EDEADLK or ETIMEDOUT when a bucket's lock was
 * not to be had (kernel/bpf/hashtab.c, rqspinlock.c). EEXIST and ENOENT are the caller's.
 */
static __always_inline void count_map_error(__u32 sandbox, enum sl_counter full, long err)
{
	if (err == -7)
		count(sandbox, full);
	else if (err == -12)
		count(sandbox, SL_COUNTER_MAP_NOMEM);
	else
		count(sandbox, SL_COUNTER_MAP_BUSY);
}

#endif
