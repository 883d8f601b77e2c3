/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sweeping: removes rows of `exes` and `lineages` that nothing refers to any more, so a set
 * that lives for long and runs ever new binaries does not fill up.
 *
 *	loop:	if (sl_sweep_due(set, &clock) && !sl_sweep(set, roots, &swept))
 *			sl_sweep_done(&clock);
 *
 * References are handed on in one direction: process -> child and socket -> tuple -> the
 * accepted socket's peer -> the ring of closed sockets. They are gathered in that order.
 *
 * Invariants
 * 1. A row that a program gave to a process after the sweep began is of the sweep's round
 *    (sl_exe.round), and stays: exec interns, fork hands on, both mark it.
 * 2. Nothing is removed from the maps of rows before it has gone from its index and every
 *    program that may have found it there has ended (a grace period of RCU, by membarrier).
 *    A row that was taken meanwhile goes back to the index.
 * 3. What a reader of events has not reported yet refers to rows, too: with one that has
 *    something in hand, or unread, nothing is removed. The caller's own are roots.
 * 4. A recorded socket that no descriptor leads to (waiting in an accept queue, in flight in
 *    a message) is not seen, but it is counted: with one of them nothing is removed.
 */
#ifndef SLUICE_USER_SWEEP_H
#define SLUICE_USER_SWEEP_H

#include "kernel/ring.h"
#include "kernel/set.h"

/* Ids that something refers to; 0 is none. -ENOMEM ends the sweep. */
typedef int (*sl_ref_fn)(unsigned int lineage, unsigned int exe, unsigned int script, void *arg);

/*
 * What the members of one sandbox and its sockets refer to, those that are closed too; the
 * same more than once. 0 or -errno, also of `fn`.
 */
int sl_sandbox_refs(struct sl_set *set, unsigned int sandbox, sl_ref_fn fn, void *arg);

/* What the caller itself still refers to: called after the round began, may be NULL. */
struct sl_sweep_roots {
	int (*each)(void *ctx, sl_ref_fn fn, void *arg);
	void *ctx;
	const struct sl_ring *ring; /* that the caller reads; NULL: none */
};

struct sl_swept {
	unsigned int exes; /* rows removed */
	unsigned int lineages;
};

/*
 * -EBUSY: another process sweeps this set. -EAGAIN: a reader is behind (invariant 3), there
 * are sockets that can't be seen now (invariant 4), or more were closed meanwhile than the
 * ring of closed ones holds.
 * -EOPNOTSUPP: no grace period can be had (membarrier(2), with nohz_full). -ENOMEM, or
 * what reading the set returned. *out is filled on success only.
 */
int sl_sweep(struct sl_set *set, const struct sl_sweep_roots *roots, struct sl_swept *out);

/* When to sweep: once an eighth of either map was given out as ids since the last time. */
struct sl_sweep_clock {
	unsigned int exe, lineage;         /* last ids at the last sweep */
	unsigned int now_exe, now_lineage; /* and when it was asked */
};

bool sl_sweep_due(const struct sl_set *set, struct sl_sweep_clock *clock);
void sl_sweep_done(struct sl_sweep_clock *clock);

#endif
