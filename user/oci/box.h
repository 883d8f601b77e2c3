/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One container: its session with sluiced, from its first program to its last.
 *
 *	sl_oci_box_new()	attaches it, or
 *	sl_oci_box_take_up()	goes on with one that a `serve` before this one has attached
 *	sl_oci_box_add()	one more process, from outside (exec)
 *	sl_oci_box_poll(), poll, sl_oci_box_run() until that is false
 *	sl_oci_box_free()	leaves what is attached as it is
 */
#ifndef SLUICE_USER_OCI_BOX_H
#define SLUICE_USER_OCI_BOX_H

#include <poll.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <sluice/libsluice.h>

#include "oci/keep.h"
#include "oci/serve.h"
#include "oci/state.h"

#define SL_OCI_BOX_FDS 2 /* that a container is polled by */

struct sl_oci_box {
	TAILQ_ENTRY(sl_oci_box) entry;
	const struct sl_oci_options *options;
	const struct sl_oci_keep *keep;
	struct pollfd *poll; /* SL_OCI_BOX_FDS of them; NULL: not waited for yet */
	struct sl_runtime *rt;
	int events;       /* cgroup.events: POLLPRI when it has changed; -1: it is gone */
	bool attaching;   /* the agent has not answered: it is asked on */
	bool empty;       /* nothing runs in it any more: to be detached */
	int64_t retry_at; /* sl_monotonic_ms() of the next try; -1: none is due */
	struct sl_oci_kept kept;
};

/*
 * `listener` stays the caller's. 0 also while the agent does not answer: what is held waits
 * until it does.
 */
int sl_oci_box_new(struct sl_oci_box **out, const struct sl_oci_process *process, int listener,
		   const struct sl_oci_options *options, const struct sl_oci_keep *keep,
		   struct sl_err *err);

/* Without waiting for the agent, should that not be there. -ENOMEM. */
int sl_oci_box_take_up(struct sl_oci_box **out, const struct sl_oci_kept *kept,
		       const struct sl_oci_options *options, const struct sl_oci_keep *keep);

void sl_oci_box_free(struct sl_oci_box **box);

/* Whether the process is in this container, by its cgroup. */
bool sl_oci_box_has(const struct sl_oci_box *box, const struct sl_oci_process *process);

/* Its calls are answered as the others' are. `listener` stays the caller's. */
int sl_oci_box_add(struct sl_oci_box *box, const struct sl_oci_process *process, int listener,
		   struct sl_err *err);

/* What to wait for, SL_OCI_BOX_FDS of them; returns for how long, -1: for ever. */
int sl_oci_box_poll(struct sl_oci_box *box, struct pollfd *fds);

/* What is due; `look`: its cgroup has changed. False: the container is gone, and detached. */
bool sl_oci_box_run(struct sl_oci_box *box, bool look);

#endif
