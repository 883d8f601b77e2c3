/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The seccomp agent of OCI runtimes: who listens on a profile's `listenerPath`. For each
 * container it is the runtime that sluiced knows: it attaches the container's cgroup, under the
 * policy that is named, with the listener that came, and detaches it when the cgroup is empty.
 *
 *	sl_oci_serve(&options, &err);		returns on an error only
 *
 * Rules
 * 1. A container's first program is held by the profile (execve) until it is attached. What
 *    can't be attached gets its listener closed: then that execve fails, and nothing runs.
 * 2. A cgroup is attached when it has the container's process in it and no other: one that is
 *    shared with the host's would be mediated with it.
 * 3. One message, connection or container that is bad fails alone, with a line in the log.
 *    Only root is listened to.
 * 4. When this process ends, containers go on under their policies (SL_END_GO_ON), and none
 *    starts. The next one takes them up, and detaches those that have ended meanwhile.
 * 5. A process that a runtime adds to a container (exec) is started when its listener is the
 *    agent's, too, and only in the cgroup of a container that was attached.
 */
#ifndef SLUICE_USER_OCI_SERVE_H
#define SLUICE_USER_OCI_SERVE_H

#include "base/err.h"

struct sl_oci_options {
	const char *listen;     /* path of the socket; one that is there and dead is replaced */
	const char *policy_dir; /* see sl_oci_policy_read() */
	const char *state_dir;  /* see oci/keep.h */
	const char *agent;      /* of sluiced; NULL: the usual one */
};

int sl_oci_serve(const struct sl_oci_options *options, struct sl_err *err);

#endif
