/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper: a small process that holds the listeners and the in-flight table, and starts
 * the worker that answers. When the worker is killed, at whatever instant, held calls stay
 * held; the next worker inherits the listeners and finds what was received and unanswered.
 *
 *	process		sl_keeper_run(&options)		returns when a worker exits with 0
 *	  worker	options.worker(link, ctx)	forked from it, again after each crash
 *			  sl_keeper_inherited() each	listeners of the predecessor
 *			  sl_keeper_hold(link, fd, tag)	before the task is released
 *			  sl_keeper_drop(link, tag)	when the listener has ended
 *
 * Rules
 * 1. The keeper does nothing with what it holds: no policy, no allocation after its start,
 *    nothing a workload could reach. So it has no reason to die but a signal.
 * 2. A worker dies with its keeper (PR_SET_PDEATHSIG). Then the listeners are closed and
 *    every held call, for ever, gets ENOSYS: nothing runs unmediated, and nothing works.
 *    Whoever owns the sandboxes' cgroups has to notice the keeper's end (the other end of
 *    a pipe it holds, or SIGCHLD) and kill or freeze them.
 * 3. Workers that crash at once are restarted with a growing pause, restart_min_ms up to
 *    restart_max_ms; one that lived longer than HEALTHY_MS starts over at the minimum.
 * 4. SIGTERM to the keeper is passed on to the worker, and ends both. SIGHUP is passed on.
 * 5. A worker that can't work and says so (SL_KEEPER_GIVE_UP) ends the keeper if there was none
 *    before it: what keeps it from starting will keep the next one as well.
 * 6. A worker that does not say for hung_ms that it is there (sl_keeper_beat()) is killed, and
 *    followed by the next as if it had crashed. Who finds that out late was late himself: the
 *    worker has that long once more.
 * 7. Listeners are known to the keeper by a tag that the worker chose, unique at a time.
 */
#ifndef SLUICE_USER_BROKER_KEEPER_H
#define SLUICE_USER_BROKER_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "broker/inflight.h"

#define SL_KEEPER_LISTENERS 4096 /* that it holds; more: -ENOSPC */

#define SL_KEEPER_GIVE_UP 3 /* exit status, see rule 5 */

struct sl_keeper_link;

struct sl_keeper_options {
	/* The worker's main: its return value is the exit status, 0 ends the keeper too. */
	int (*worker)(struct sl_keeper_link *link, void *ctx);
	void *ctx;
	/* Told in the keeper, may be NULL: a worker ended (waitpid status), next in pause_ms. */
	void (*crashed)(void *ctx, int status, unsigned int pause_ms);
	/* Told in the keeper, may be NULL: rule 6, it is being killed. */
	void (*hung)(void *ctx, unsigned int hung_ms);
	unsigned int hung_ms; /* 0: it need not say anything */
	/* Called in the keeper every alive_ms, may be NULL: the keeper is there. */
	void (*alive)(void *ctx);
	unsigned int alive_ms;
	unsigned int restart_min_ms; /* 0: at once */
	unsigned int restart_max_ms;
	unsigned int slots; /* of the in-flight table */
};

/*
 * Runs in a process of its own, single-threaded. 0 when a worker exited with 0 or SIGTERM
 * ended it. -errno when it could not start; -ECANCELED by rule 5, `err` is untouched then.
 */
int sl_keeper_run(const struct sl_keeper_options *options, struct sl_err *err);

/* In the worker, three times within hung_ms: it is there. */
void sl_keeper_beat(struct sl_keeper_link *link);

/* In the worker: the table, shared with those before and after. */
struct sl_inflight *sl_keeper_inflight(const struct sl_keeper_link *link);
/* How many workers there were before this one. */
unsigned int sl_keeper_generation(const struct sl_keeper_link *link);

/*
 * Listeners of the predecessor: start with *at = 0; false at the end. *fd is the caller's,
 * each is given once.
 */
bool sl_keeper_inherited(struct sl_keeper_link *link, size_t *at, int *fd, uint64_t *tag);

/*
 * One of them by its tag, before the walk; *fd is the caller's. -ENOENT: the keeper holds no
 * such one, or it was given already.
 */
int sl_keeper_take(struct sl_keeper_link *link, uint64_t tag, int *fd);

/*
 * Returns when the keeper has the listener, or what else is to outlive the worker: it does
 * nothing with it but hold it. -EEXIST, -ENOSPC, -EPIPE (no keeper). */
int sl_keeper_hold(struct sl_keeper_link *link, int listener, uint64_t tag);
int sl_keeper_drop(struct sl_keeper_link *link, uint64_t tag);

#endif
