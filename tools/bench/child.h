/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Helper processes: forked, put into a cgroup, pinned, killed with their parent. What
 * they tell goes through memory from sl_shared_new().
 */
#ifndef SLUICE_BENCH_CHILD_H
#define SLUICE_BENCH_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct sl_child {
	pid_t pid; /* 0: none */
};

/* How a child starts. */
struct sl_child_spec {
	const char *cgroup;    /* NULL: where the parent is */
	int cpu;               /* -1: any */
	int (*run)(void *arg); /* its exit status, 0 to 255 */
	void *arg;
};

/* Exit status of a child that could not enter its cgroup. */
#define SL_CHILD_LOST 125

int sl_child_start(struct sl_child *child, const struct sl_child_spec *spec, struct sl_err *err);

/* Waits, at most `timeout_ms`; *status as of wait(2). -ETIMEDOUT: it still runs. */
int sl_child_wait(struct sl_child *child, int timeout_ms, int *status);

/* Kills it, if it runs, and reaps it. */
void sl_child_stop(struct sl_child *child);

/* Zeroed memory that children share. sl_shared_free() takes NULL. -ENOMEM. */
int sl_shared_new(void **out, size_t size);
void sl_shared_free(void *memory, size_t size);

#endif
