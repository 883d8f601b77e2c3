/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The guard with policies of several sizes in its maps: what the size costs a connection. */
#ifndef SLUICE_BENCH_POLICY_GUARD_H
#define SLUICE_BENCH_POLICY_GUARD_H

#include "report.h"

/* `rounds` of each size, connections in each. Needs root. */
int sl_policy_guard_run(struct sl_report *report, unsigned int rounds, unsigned int per_turn,
			struct sl_err *err);

#endif
