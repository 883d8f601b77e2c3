/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a benchmark runs: a network namespace with nothing but loopback, two cgroups
 * (`plain` is never a sandbox, `box` is one while the set is loaded), and a set of
 * programs of its own.
 *
 *	sluice-bench-<pid>/{plain,box}          below the cgroup2 mount
 *	/sys/fs/bpf/sluice/bench-<pid>          the set
 *
 * Order of use: new; load and unload as often as needed; free. SIGINT and SIGTERM only
 * make sl_world_stopped() true, so free is always reached; what a killed benchmark left
 * behind is removed by the next one.
 */
#ifndef SLUICE_BENCH_WORLD_H
#define SLUICE_BENCH_WORLD_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "kernel/set.h"

/*
 * 192.0.2.1 (RFC 5737), on the loopback interface: a destination like any other to the
 * policy, for which addresses of 127.0.0.0/8 are reserved.
 */
#define SL_WORLD_ADDR 0xc0000201U /* host order */

struct sl_world {
	struct sl_set *set; /* NULL: not loaded */
	unsigned int sandbox;
	char cgroup[PATH_MAX];
	char plain[PATH_MAX];
	char box[PATH_MAX];
	char set_dir[PATH_MAX];
};

int sl_world_new(struct sl_world **out, struct sl_err *err);

/* Kills what is left in the cgroups, unloads, removes all. */
void sl_world_free(struct sl_world **world);
#define _cleanup_world_ __attribute__((cleanup(sl_world_free)))

/* Loads the set, recording `events`, and attaches it to `box`. */
int sl_world_load(struct sl_world *world, unsigned int events, struct sl_err *err);
int sl_world_unload(struct sl_world *world, struct sl_err *err);

/* SIGINT or SIGTERM came: finish early, report what there is. */
bool sl_world_stopped(void);

#endif
