/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that does one operation over and over when it is told to, and says how long it
 * took. It stays in its cgroup and on its CPU, and may have a seccomp filter.
 *
 *	sl_worker_start(&worker, &spec, &err);
 *	sl_worker_renew(&worker, &err);		after a sandbox was attached
 *	sl_worker_turn(&worker, &ns, &err);	as often as needed
 *	sl_worker_clear(&worker);
 *
 * A policy matches only what was executed in the sandbox. So a worker is a fork at first
 * and executes this program anew to be renewed; it stays the same process.
 */
#ifndef SLUICE_BENCH_WORKER_H
#define SLUICE_BENCH_WORKER_H

#include "broker/listener.h"
#include "child.h"

#define SL_OP_ARG_MAX 64

/* What is measured. Both functions run in the worker and return 0 or -errno. */
struct sl_op {
	const char *name;
	int (*run)(void *arg);   /* once */
	int (*begin)(void *arg); /* before each turn, unmeasured; NULL: nothing to prepare */
};

/* All there are; a worker finds its own by the name. */
extern const struct sl_op sl_op_connect, sl_op_refused, sl_op_exec, sl_op_udp;

struct sl_worker_spec {
	const char *name; /* for messages; outlives the worker */
	const char *cgroup;
	int cpu; /* -1: any */
	const struct sl_op *op;
	const void *arg; /* copied; no pointers in it */
	size_t arg_size; /* SL_OP_ARG_MAX at most */
	unsigned int per_turn;
	const struct sl_filter *filter; /* NULL: none */
	unsigned long filter_flags;
};

struct sl_worker {
	const char *name;
	struct sl_child child;
	int go[2], done[2]; /* pipes */
	int listener;       /* of its filter, -1: none; owned, the caller may take it */
};

#define SL_WORKER_NONE                                               \
	{                                                            \
		.go = { -1, -1 }, .done = { -1, -1 }, .listener = -1 \
	}

int sl_worker_start(struct sl_worker *worker, const struct sl_worker_spec *spec,
		    struct sl_err *err);

/* Returns when the worker runs as a new image. Who answers for its filter must be there. */
int sl_worker_renew(struct sl_worker *worker, struct sl_err *err);

/* *ns: mean time of one operation. -EINTR: a signal came, the turn goes on unread. */
int sl_worker_turn(struct sl_worker *worker, double *ns, struct sl_err *err);

/* Ends it; of SL_WORKER_NONE too. */
void sl_worker_clear(struct sl_worker *worker);

/* The main function of a renewed worker, known by its argv[0]. */
#define SL_WORKER_ARGV0 "sluice-bench-worker"
int sl_worker_main(int argc, char **argv);

#endif
