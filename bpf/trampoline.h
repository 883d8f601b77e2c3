/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tp_btf links can't be updated in place (bpf_link_update: EINVAL), so what is attached
 * is a trampoline that tail-calls the real program through a one-element PROG_ARRAY of
 * its own. An upgrade swaps the element; no event falls between.
 */
#ifndef SLUICE_BPF_TRAMPOLINE_H
#define SLUICE_BPF_TRAMPOLINE_H

#include <bpf/bpf_tracing.h>

#include "counter.h"

#define TRAMPOLINE(tracepoint)                             \
	struct {                                           \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);     \
		__uint(max_entries, 1);                    \
		__type(key, __u32);                        \
		__type(value, __u32);                      \
	} jump_##tracepoint SEC(".maps");                  \
                                                           \
	SEC("tp_btf/" #tracepoint)                         \
	int enter_##tracepoint(void *ctx)                  \
	{                                                  \
		bpf_tail_call(ctx, &jump_##tracepoint, 0); \
		count(0, SL_COUNTER_PROG_MISSING);         \
		return 0;                                  \
	}

#endif
