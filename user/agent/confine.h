/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What neither the keeper nor a worker ever does is taken from both, by a seccomp filter: to
 * execute a program, to trace or write to another process, to change mounts or roots, to load code into the kernel, to stop the host. So a fault in what reads the words
 * of runtimes and workloads is no way to these, with whatever privilege there is.
 *
 * One for both, since a filter is inherited by fork(2): one of the keeper's own could refuse
 * nothing that its workers need. Called once, single-threaded, when all places are taken.
 */
#ifndef SLUICE_USER_AGENT_CONFINE_H
#define SLUICE_USER_AGENT_CONFINE_H

#include "base/err.h"

/* For ever; what is refused fails with EPERM. -errno of seccomp(2). */
int sl_confine(struct sl_err *err);

#endif
