/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a listener gets from the task that installs the filter to who answers it, before
 * the workload's first instruction.
 *
 *	parent				child, forked after sl_handoff_new()
 *	sl_handoff_new(&h)
 *	fork()
 *	sl_handoff_take(&h, &fd)	sl_handoff_give(&h, &filter)
 *	add fd to the broker, keeper	  waits
 *	sl_handoff_release(&h)		  returns 0: exec
 *	sl_handoff_end(&h)
 *
 * Rules
 * 1. The child execs only after give has returned 0. When the parent died or ended the
 *    hand-off without release, it returns -EPIPE: nothing runs without a handler, which
 *    would see ENOSYS from every held call.
 * 2. Between filter and exec the child makes no call that a filter of sluice holds. Where
 *    that holds sendmsg(), the child tells the listener's number and the parent fetches it
 *    (pidfd_getfd(2)). Another's filter that holds sendmsg(), in place of sluice's, can't
 *    be handed over: take times out and says so.
 * 3. A failure of the child arrives at the parent with its text.
 */
#ifndef SLUICE_USER_BROKER_LISTENER_H
#define SLUICE_USER_BROKER_LISTENER_H

#include "base/err.h"
#include "broker/filter.h"

struct sl_handoff {
	int parent; /* -1: not open */
	int child;
};

int sl_handoff_new(struct sl_handoff *h, struct sl_err *err);
void sl_handoff_end(struct sl_handoff *h);

/* In the child. Errors of sl_filter_install(), -EPIPE as of rule 1. Ends its *h. */
int sl_handoff_give(struct sl_handoff *h, const struct sl_filter *filter, unsigned long flags,
		    struct sl_err *err);

/* In the child, in place of give: why it can't get that far. Ends its *h. */
void sl_handoff_fail(struct sl_handoff *h, const struct sl_err *cause);

/*
 * In the parent: *listener is the caller's, close-on-exec, checked to be a listener; -1
 * when the filter has none. -ETIMEDOUT, -ECHILD (the child ended), -EBADMSG (something
 * else arrived), or what failed in the child. The caller then ends the child.
 */
int sl_handoff_take(struct sl_handoff *h, int timeout_ms, int *listener, struct sl_err *err);

/* Lets the child go on. */
int sl_handoff_release(struct sl_handoff *h, struct sl_err *err);

#endif
