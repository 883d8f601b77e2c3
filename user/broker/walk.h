/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening a path as another task would: below its root, from its directory. */
#ifndef SLUICE_USER_BROKER_WALK_H
#define SLUICE_USER_BROKER_WALK_H

#include <stdbool.h>

#include "broker/task.h"

struct sl_walk {
	pid_t tid; /* whose /proc/self it is */
	int root;  /* O_PATH, borrowed */
	int start; /* where a relative path begins */
};

/*
 * An O_PATH descriptor in *out, the caller's. `follow`: a link at the end is followed,
 * else -ELOOP as execveat(2) gives. The kernel does it in one call where it can; paths
 * with magic links of /proc, or that leave the start directory, are walked by hand.
 */
int sl_walk_open(const struct sl_walk *walk, const char *path, bool follow, int *out);

#endif
