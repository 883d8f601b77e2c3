/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a set's counters say went wrong during a run. */
#ifndef SLUICE_BENCH_FAULTS_H
#define SLUICE_BENCH_FAULTS_H

#include <sluice/counter.h>

#include "report.h"

/* Adds `from` to `sum`: for a run that loads several sets. */
void sl_faults_add(struct sl_counters *sum, const struct sl_counters *from);

/*
 * A row for each fault that was counted, and a check that there was none. Lost events are
 * shown but no error: a benchmark may outrun its consumer, and the maps stay right.
 */
void sl_faults_report(struct sl_report *report, const struct sl_counters *counters);

#endif
