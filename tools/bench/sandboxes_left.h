/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All that a sandbox may leave behind, counted. */
#ifndef SLUICE_BENCH_SANDBOXES_LEFT_H
#define SLUICE_BENCH_SANDBOXES_LEFT_H

#include "daemon.h"
#include "report.h"

/* X(NAME, "name", map): rows of maps. */
#define SL_LEFT_MAPS(X)                                                  \
	X(CGROUPS, "rows: cgroups", SL_MAP_CGROUPS)                      \
	X(PROCS, "rows: procs", SL_MAP_PROCS)                            \
	X(OWNERS, "rows: owners", SL_MAP_OWNERS)                         \
	X(EXES, "rows: exes", SL_MAP_EXES)                               \
	X(LINEAGES, "rows: lineages", SL_MAP_LINEAGES)                   \
	X(SOCKS_OVER, "rows: socks_over", SL_MAP_SOCKS_OVER)             \
	X(SOCK_MORE, "rows: sock_more", SL_MAP_SOCK_MORE)                \
	X(PEERS, "rows: peers", SL_MAP_PEERS)                            \
	X(TUPLES, "rows: tuples", SL_MAP_TUPLES)                         \
	X(PACKETS, "rows: packets", SL_MAP_PACKETS)                      \
	X(GUARD_POLICIES, "rows: guard_policies", SL_MAP_GUARD_POLICIES) \
	X(GUARD_PATHS, "rows: guard_paths", SL_MAP_GUARD_PATHS)          \
	X(GUARD_FILES, "rows: guard_files", SL_MAP_GUARD_FILES)          \
	X(GUARD_TRUST, "rows: guard_trust", SL_MAP_GUARD_TRUST)          \
	X(GUARD_LINEAGES, "rows: guard_lineages", SL_MAP_GUARD_LINEAGES) \
	X(GUARD_PORTS, "rows: guard_ports", SL_MAP_GUARD_PORTS)          \
	X(GUARD_DESTS, "rows: guard_dests", SL_MAP_GUARD_DESTS)          \
	X(GUARD_LEASES, "rows: guard_leases", SL_MAP_GUARD_LEASES)       \
	X(GUARD_RULES, "rows: guard_rules", SL_MAP_GUARD_RULES)          \
	X(DECISIONS, "rows: decisions", SL_MAP_DECISIONS)

enum sl_left_count {
#define X(name, text, map) SL_LEFT_##name,
	SL_LEFT_MAPS(X)
#undef X
		SL_LEFT_GUARDS, /* rows of the array that say something */
	SL_LEFT_SANDBOXES,
	SL_LEFT_CLOSED, /* remembered closed sockets */
	SL_LEFT_PINS,   /* of the set, all of them */
	SL_LEFT_CGROUP, /* directories and files of the world's cgroup */
	SL_LEFT_STATE,  /* files of the agent's state */
	SL_LEFT_WORKER_FDS,
	SL_LEFT_KEEPER_FDS,
	SL_LEFT_MAX
};

struct sl_left {
	long long n[SL_LEFT_MAX];
	uint64_t worker_bytes, keeper_bytes; /* of memory */
};

/*
 * Counts. With `base`, once as much is there as was then, or when it has not become so for
 * some seconds: connections and listeners end a moment after their sandbox.
 */
int sl_left_read(struct sl_left *out, const struct sl_daemon *daemon, const struct sl_world *world,
		 const struct sl_left *base, struct sl_err *err);

/* A check of each: as many as before. */
void sl_left_report(struct sl_report *report, const struct sl_left *base,
		    const struct sl_left *end);

#endif
