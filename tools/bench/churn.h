/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the churn benchmark: who makes connections, and what is sampled. */
#ifndef SLUICE_BENCH_CHURN_H
#define SLUICE_BENCH_CHURN_H

#include <netinet/in.h>
#include <stdint.h>

#include "kernel/set.h"
#include "report.h"

/* Shared by all processes of the benchmark. */
struct churn {
	uint64_t target;
	struct sockaddr_in open;   /* a listener in the sandbox */
	struct sockaddr_in closed; /* bound but not listening: refuses */
	int ready;                 /* 1: `open` is set */
	int stop;
	/* Sums over all workers, atomic. */
	uint64_t connected, refused, failed;
	uint64_t processes;
};

/* Main functions (struct sl_child_spec.run), in the sandbox; `arg` is struct churn. */
int churn_server(void *arg);
int churn_worker(void *arg);

uint64_t churn_done(const struct churn *churn);

/* What may grow. X(NAME, "name", slack): growth up to `slack` is noise. */
#define CHURN_QUANTITIES(X)                \
	X(TUPLES, "tuples", 64)            \
	X(SOCKS, "socks_beyond_slots", 64) \
	X(PROCS, "procs", 64)              \
	X(EXES, "exes", 4)                 \
	X(LINEAGES, "lineages", 4)         \
	X(SOCKETS, "live_sockets", 4096)   \
	X(MAP_BYTES, "map_bytes", 262144)  \
	X(RSS_BYTES, "consumer_rss_bytes", 262144)

enum churn_quantity {
#define X(name, text, slack) CHURN_##name,
	CHURN_QUANTITIES(X)
#undef X
		CHURN_MAX
};

/* One sample of all quantities into v[CHURN_MAX]. 0 or -errno. */
int churn_sample(struct sl_set *set, pid_t consumer, double *v);

/* Rows and budgets of `count` samples, v[sample * CHURN_MAX + quantity]. */
int churn_report_samples(struct sl_report *report, const double *v, size_t count);

#endif
