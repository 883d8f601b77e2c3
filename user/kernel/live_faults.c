/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters of faults, and the limit that each one tells to raise. */
#include <errno.h>

#include "base/cleanup.h"
#include "kernel/live_private.h"

#define RAISE(option)                                                      \
	{                                                                  \
		"detach all sandboxes and attach with a larger --" option, \
			"run it with a larger --" option,                  \
			"run it with --agent none and a larger --" option  \
	}

static const struct {
	const char *name;
	enum sl_counter_class class;
	const char *meaning;
} counters[] = {
#define X(id, counter_class, text, help) { text, SL_COUNTER_##counter_class, help },
	SL_COUNTERS(X)
#undef X
};

static const char *const advice[SL_COUNTER_MAX][SL_LIVE_ADVICE_MAX] = {
	/* A run's ring is its own, in whatever set. */
	[SL_COUNTER_EVENT_LOST] = { "detach all sandboxes and attach with a larger --ring-bytes, or "
				    "give the consumer more CPU",
				    "run it with a larger --ring-bytes, or give it more CPU",
				    "run it with a larger --ring-bytes, or give it more CPU" },
	[SL_COUNTER_PROCS_FULL] = RAISE("max-procs"),
	[SL_COUNTER_EXES_FULL] = RAISE("max-exes"),
	[SL_COUNTER_LINEAGES_FULL] = RAISE("max-lineages"),
	[SL_COUNTER_TUPLES_FULL] = RAISE("max-socks"),
	[SL_COUNTER_SOCKS_FULL] = RAISE("max-socks"),
	[SL_COUNTER_EXE_COLLISION] = { "detach all sandboxes and attach again: hashes are seeded "
				       "anew",
				       "run it again: hashes are seeded anew",
				       "run it with --agent none: hashes are seeded anew" },
	[SL_COUNTER_TASK_NOMEM] = { "raise the memory limit of the sandboxes' cgroups",
				    "raise the memory limit of this cgroup",
				    "raise the memory limit of this cgroup" },
	[SL_COUNTER_SOCK_NOMEM] = { "raise the memory limit of the sandboxes' cgroups",
				    "raise the memory limit of this cgroup",
				    "raise the memory limit of this cgroup" },
	[SL_COUNTER_PROC_LEFT] = { "run them as a user who may not write cgroup.procs",
				   "run it as a user who may not write cgroup.procs (--user)",
				   "run it as a user who may not write cgroup.procs (--user)" },
};

int sl_live_faults(struct sl_set *set, unsigned int sandbox, enum sl_live_advice whom,
		   struct sl_array *faults)
{
	struct sl_counters sums;
	struct sl_live_fault *fault;
	int rc = sandbox ? sl_counters_read(set, sandbox, &sums) : sl_counters_total(set, &sums);

	for (size_t i = 0; !rc && i < ARRAY_SIZE(counters); i++) {
		if (counters[i].class != SL_COUNTER_FAULT || !sums.n[i])
			continue;
		fault = sl_array_add(faults);
		if (!fault)
			return -ENOMEM;
		*fault = (struct sl_live_fault){
			.counter = counters[i].name,
			.value = sums.n[i],
			.meaning = counters[i].meaning,
			.advice = advice[i][whom],
		};
	}
	return rc;
}
