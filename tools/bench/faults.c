/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "faults.h"

#include <stdbool.h>

static const struct {
	const char *name;
	enum sl_counter_class class;
} counter_info[SL_COUNTER_MAX] = {
#define X(id, cls, text, help) [SL_COUNTER_##id] = { text, SL_COUNTER_##cls },
	SL_COUNTERS(X)
#undef X
};

void sl_faults_add(struct sl_counters *sum, const struct sl_counters *from)
{
	for (unsigned int i = 0; i < SL_COUNTER_MAX; i++)
		sum->n[i] += from->n[i];
}

void sl_faults_report(struct sl_report *report, const struct sl_counters *counters)
{
	uint64_t faults = 0;

	for (unsigned int i = 0; i < SL_COUNTER_MAX; i++) {
		if (counter_info[i].class != SL_COUNTER_FAULT || !counters->n[i])
			continue;
		sl_report_row(report, "faults", counter_info[i].name);
		sl_report_int(report, "count", (int64_t)counters->n[i]);
		if (i != SL_COUNTER_EVENT_LOST)
			faults += counters->n[i];
	}
	sl_report_equal(report, "faults counted, lost events apart", (int64_t)faults, 0);
}
