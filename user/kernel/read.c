// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading a set: counters, processes, executables. Sockets: read_sock.c. */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "kernel/set_private.h"

/* --- counters --- */

static int counters_add(struct sl_set *set, __u32 id, struct sl_counters *sum)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ struct sl_counters *row = NULL;

	if (cpus < 0)
		return cpus;
	row = calloc(cpus, sizeof(*row));
	if (!row)
		return -ENOMEM;
	if (bpf_map_lookup_elem(set->maps[SL_MAP_COUNTERS], &id, row))
		return -errno;
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (size_t i = 0; i < ARRAY_SIZE(sum->n); i++)
			sum->n[i] += row[cpu].n[i];
		for (size_t i = 0; i < ARRAY_SIZE(sum->event_lost); i++)
			sum->event_lost[i] += row[cpu].event_lost[i];
		for (size_t i = 0; i < ARRAY_SIZE(sum->denied); i++)
			sum->denied[i] += row[cpu].denied[i];
	}
	return 0;
}

int sl_counters_read(struct sl_set *set, unsigned int id, struct sl_counters *out)
{
	struct sl_counters sum = {};
	int rc = counters_add(set, id, &sum);

	if (!rc)
		*out = sum;
	return rc;
}

int sl_counters_total(struct sl_set *set, struct sl_counters *out)
{
	struct sl_counters sum = {};
	int rc = 0;

	for (__u32 id = 0; !rc && id < set->max_sandboxes; id++)
		rc = counters_add(set, id, &sum);
	if (!rc)
		*out = sum;
	return rc;
}

/* --- single look-ups --- */

int sl_map_lookup(int fd, const void *key, void *value)
{
	return bpf_map_lookup_elem(fd, key, value) ? -errno : 0;
}

int sl_exe_by_id(const struct sl_set *set, unsigned int id, struct sl_exe *out)
{
	return sl_map_lookup(set->maps[SL_MAP_EXES], &id, out);
}

struct sl_guard_file sl_file_key(__u32 policy, const struct sl_exe *exe)
{
	return (struct sl_guard_file){
		.ino = exe->key.ino,
		.ctime_ns = exe->key.ctime_ns,
		.path_hash = exe->key.path_hash,
		.dev = exe->key.dev,
		.policy = policy,
	};
}

int sl_file_by_exe(const struct sl_set *set, __u32 policy, const struct sl_exe *exe,
		   struct sl_guard_grant *out)
{
	const struct sl_guard_file key = sl_file_key(policy, exe);

	return sl_map_lookup(set->maps[SL_MAP_GUARD_FILES], &key, out);
}

int sl_lineage_by_id(const struct sl_set *set, unsigned int id, struct sl_lineage *out)
{
	return sl_map_lookup(set->maps[SL_MAP_LINEAGES], &id, out);
}

int sl_proc_by_key(const struct sl_set *set, const struct sl_process_key *key,
		   struct sl_process *out)
{
	return sl_map_lookup(set->maps[SL_MAP_PROCS], key, out);
}

struct each_proc {
	int (*fn)(const struct sl_process *process, void *arg);
	void *arg;
};

static int proc_row(const void *key, void *value, void *arg)
{
	const struct each_proc *each = arg;

	(void)key;
	return each->fn(value, each->arg);
}

int sl_procs_each(struct sl_set *set, int (*fn)(const struct sl_process *process, void *arg),
		  void *arg)
{
	struct each_proc each = { fn, arg };

	return sl_map_each(set->maps[SL_MAP_PROCS], proc_row, &each);
}

static int compare_ids(const void *a, const void *b)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return x < y ? -1 : x > y;
}

static int add_id(const void *key, void *value, void *arg)
{
	__u32 *id = sl_array_add(arg);

	(void)value;
	if (!id)
		return -ENOMEM;
	*id = *(const __u32 *)key;
	return 0;
}

int sl_exes_each(struct sl_set *set, int (*fn)(const struct sl_exe *exe, void *arg), void *arg)
{
	_cleanup_free_ struct sl_exe *exe = malloc(sizeof(*exe));
	_cleanup_array_ struct sl_array ids = SL_ARRAY(__u32);
	const __u32 *id;
	int rc;

	if (!exe)
		return -ENOMEM;
	rc = sl_map_each(set->maps[SL_MAP_EXES], add_id, &ids);
	if (ids.count)
		qsort(ids.data, ids.count, ids.item, compare_ids);
	id = ids.data;
	for (size_t i = 0; !rc && i < ids.count; i++)
		if (!sl_exe_by_id(set, id[i], exe))
			rc = fn(exe, arg);
	return rc;
}
