/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lineages: the chain of images that led to a process, as one interned integer, so it
 * costs a copy at fork and survives the death of every ancestor.
 */
#ifndef SLUICE_BPF_LINEAGE_H
#define SLUICE_BPF_LINEAGE_H

#include "exe.h"

static __always_inline __u32 lineage_next_id(void)
{
	__u32 zero = 0;
	struct sl_ids *last = bpf_map_lookup_elem(&ids, &zero);

	return last ? __sync_fetch_and_add(&last->lineage, 1) + 1 : 0;
}

/* Keeps the row of a lineage that a process is about to refer to. */
static __always_inline void lineage_touch(struct sl_lineage *node)
{
	__u32 now = round_now();

	if (node->round != now)
		node->round = now;
}

/*
 * The lineage with this key, whose row is then kept; 0 when there is none. The key is
 * compared for the same reason as an executable's.
 */
static __always_inline __u32 lineage_take(const struct sl_lineage_key *key)
{
	__u32 *found = bpf_map_lookup_elem(&lineage_index, key), id = found ? *found : 0;
	struct sl_lineage *node = bpf_map_lookup_elem(&lineages, &id);

	if (!node || node->key.parent != key->parent || node->key.exe != key->exe ||
	    node->key.script != key->script || node->key.flags != key->flags)
		return 0;
	lineage_touch(node);
	return id;
}

static __always_inline __u32 lineage_insert(struct sl_lineage *node)
{
	long err;

	node->id = lineage_next_id();
	node->round = round_now();
	err = bpf_map_update_elem(&lineages, &node->id, node, BPF_NOEXIST);
	if (!err) {
		err = bpf_map_update_elem(&lineage_index, &node->key, &node->id, BPF_NOEXIST);
		if (!err)
			return node->id;
		bpf_map_delete_elem(&lineages, &node->id);
	}
	if (err == -17) { /* EEXIST */
		count(0, SL_COUNTER_LINEAGE_RACE);
		return lineage_take(&node->key);
	}
	count_map_error(0, SL_COUNTER_LINEAGES_FULL, err);
	return 0;
}

/*
 * The lineage that `parent` becomes by executing `exe`. At SL_LINEAGE_DEPTH the leaf is
 * replaced instead of extended, so a program that executes itself for ever can't fill
 * the map.
 */
SL_GLOBAL __u32 lineage_extend(__u32 parent, __u32 exe, __u32 script, __u32 flags)
{
	struct sl_lineage *up = bpf_map_lookup_elem(&lineages, &parent);
	struct sl_lineage node = {};
	__u32 id;

	node.depth = 1;
	if (up && up->depth >= SL_LINEAGE_DEPTH) {
		parent = up->key.parent;
		node.depth = up->depth;
		flags |= SL_LINEAGE_CUT;
	} else if (up) {
		node.depth = up->depth + 1;
	}
	node.key.parent = parent;
	node.key.exe = exe;
	node.key.script = script;
	node.key.flags = flags;
	id = lineage_take(&node.key);
	return id ? id : lineage_insert(&node);
}

#endif
