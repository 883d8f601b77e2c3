/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an OCI runtime says of a container: its state, to a hook on stdin, and the state of
 * the process that has a seccomp listener, to the agent of the profile's `listenerPath`
 * (opencontainers/runtime-spec, runtime.md and config-linux.md). It is somebody else's text:
 * members that are needed are checked, others are left alone, since the specification grows.
 */
#ifndef SLUICE_USER_OCI_STATE_H
#define SLUICE_USER_OCI_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define SL_OCI_STATE_MAX (1U << 20) /* bytes of a document: annotations may be many */
#define SL_OCI_ID 256               /* of a container, with terminator */
#define SL_OCI_POLICY 65            /* of a policy's name, with terminator */

#define SL_OCI_ANNOTATION "io.sluice.policy"

/* Names are letters, digits, '.', '_' and '-', the first a letter or digit: never a path. */
struct sl_oci_state {
	char id[SL_OCI_ID];         /* '+' as well */
	pid_t pid;                  /* of the container's first process, 0: none yet */
	bool running;               /* its first program was executed: what comes is added to it */
	char policy[SL_OCI_POLICY]; /* by annotation; "": none */
};

/* -EBADMSG: no such document, or a member that is not as it has to be. -ENOMEM. */
int sl_oci_state_parse(struct sl_oci_state *out, const char *text, size_t len, struct sl_err *err);

struct sl_oci_process {
	struct sl_oci_state container;
	pid_t pid;
	unsigned int listener; /* which of the descriptors that came along */
	/*
	 * The profile's `listenerMetadata`, if there is one, else the annotation: the profile is
	 * the node's, an annotation may be the user's.
	 */
	char policy[SL_OCI_POLICY];
};

/* The same, and -EBADMSG without a policy or for a listener beyond `fds`. */
int sl_oci_process_parse(struct sl_oci_process *out, const char *text, size_t len, unsigned int fds,
			 struct sl_err *err);

/*
 * The text of a policy of that name, DIR/NAME.yaml, a file of at most SL_OCI_STATE_MAX bytes
 * and no link; *text is freed by the caller. `path` is where it is. -ENOENT with what to do.
 */
int sl_oci_policy_read(char **text, char *path, size_t size, const char *dir, const char *name,
		       struct sl_err *err);

#endif
