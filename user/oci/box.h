/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One container: its session with sluiced, from its first program to its last. */
#ifndef SLUICE_USER_OCI_BOX_H
#define SLUICE_USER_OCI_BOX_H

#include <poll.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <sluice/libsluice.h>

#include "oci/serve.h"
#include "oci/state.h"

struct sl_oci_box {
	TAILQ_ENTRY(sl_oci_box) entry;
	struct pollfd *poll; /* of the handle, then of `events`; NULL: not waited for yet */
	struct sl_runtime *rt;
	int events; /* cgroup.events: POLLPRI when it has changed */
	char id[SL_OCI_ID];
};

/* Attaches it; `listener` stays the caller's. */
int sl_oci_box_new(struct sl_oci_box **out, const struct sl_oci_process *process, int listener,
		   const struct sl_oci_options *options, struct sl_err *err);
void sl_oci_box_free(struct sl_oci_box **box);

/* What is due; false: the container is gone, and detached. */
bool sl_oci_box_run(struct sl_oci_box *box, short events);

#endif
