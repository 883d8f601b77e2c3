/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `sluice run` tells at the end: the tables of connections, denials and what could not be
 * reached, and what is wrong with them. A lost event means a socket that is in no table; the kernel
 * has counted it, so the number that is missing is exact. Every counter of faults that isn't zero is
 * told with its meaning and a next step.
 */
#ifndef SLUICE_USER_RUN_REPORT_H
#define SLUICE_USER_RUN_REPORT_H

#include "base/object.h"
#include "kernel/set.h"
#include "run/denied.h"
#include "run/summary.h"
#include "run/unreached.h"

/* All borrowed. */
struct sl_run_report {
	struct sl_set *set;
	unsigned int sandbox;
	bool shared; /* the set is the agent's */
	struct sl_summary *summary;
	struct sl_denied *denied;
	struct sl_unreached *unreached;
	uint64_t dropped; /* events that user space had no memory for */
	int status;       /* the command's exit status */
};

/*
 * Before the world ends, to output->file: the tables, or with output->json one document,
 * {"status", "summary", "decisions", "unreachable", "bad_requests", "faults", "dropped"}. 0, or
 * -errno of the first thing that could not be written.
 */
int sl_run_report_print(const struct sl_run_report *report, const struct sl_output *output);

#endif
