/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands between the command of `sluice run --policy` and the system beside the guard:
 * containment, the seccomp filter, and the broker that answers what the filter holds.
 *
 *	sl_mediate_new(&m, &options, &err);
 *	fork;  child: sl_mediate_child(m, &err), exec
 *	       parent: sl_mediate_parent(m, files, &err)
 *	loop: poll sl_mediate_fd(m), then sl_mediate_take(m, …); sl_mediate_tick(m)
 *	sl_mediate_free(&m);
 *
 * The broker's threads hand decisions over as records of the ring, through a pipe, so that
 * one thread reports them all.
 */
#ifndef SLUICE_USER_RUN_MEDIATE_H
#define SLUICE_USER_RUN_MEDIATE_H

#include <sluice/event.h>

#include "broker/contain.h"
#include "guard/files.h"

struct sl_mediate;

struct sl_mediate_options {
	struct sl_contain_options contain;
	unsigned int hold;  /* enum sl_hold */
	bool prepare;       /* held calls have files to be looked at: listen() is one of them */
	bool io_uring;      /* allow it, though its sockets of other families are not mediated */
	struct sl_set *set; /* borrowed: who a task is, as the kernel recorded it */
	unsigned int sandbox;
};

int sl_mediate_new(struct sl_mediate **out, const struct sl_mediate_options *options,
		   struct sl_err *err);
void sl_mediate_free(struct sl_mediate **mediate);

/* What the command loses, a sentence each. */
unsigned int sl_mediate_lines(const struct sl_mediate *mediate, const char **lines,
			      unsigned int max);

/* In the child, right before exec. */
int sl_mediate_child(struct sl_mediate *mediate, struct sl_err *err);

/* Takes over the listener and lets the child go on. `files` is borrowed; NULL: none to look at. */
int sl_mediate_parent(struct sl_mediate *mediate, struct sl_files *files, struct sl_err *err);

/* Readable when there are decisions. */
int sl_mediate_fd(const struct sl_mediate *mediate);

/* Calls `fn` for each decision that is there. */
void sl_mediate_take(struct sl_mediate *mediate,
		     void (*fn)(const struct sl_event *event, void *arg), void *arg);

/* About once a second. */
void sl_mediate_tick(struct sl_mediate *mediate);

#endif
