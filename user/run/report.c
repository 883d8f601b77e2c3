// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/report.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "kernel/live.h"

static void warn(const struct sl_array *faults, uint64_t dropped)
{
	for (size_t i = 0; i < faults->count; i++) {
		const struct sl_live_fault *fault = sl_array_at(faults, i);

		sl_log_warning("%s %llu: %s%s%s", fault->counter, (unsigned long long)fault->value,
			       fault->meaning, fault->advice ? "; " : "",
			       fault->advice ? fault->advice : "");
	}
	if (dropped)
		sl_log_warning("%llu events were dropped: no memory to take them in",
			       (unsigned long long)dropped);
}

int sl_run_report_print(const struct sl_run_report *report, FILE *file)
{
	_cleanup_array_ struct sl_array faults = SL_ARRAY(struct sl_live_fault);
	struct sl_counters counted = { 0 };
	int rc = sl_counters_read(report->set, report->sandbox, &counted), printed;

	rc = rc ? rc : sl_live_faults(report->set, true, &faults);
	printed = sl_summary_print(report->summary, counted.event_lost[SL_EVENT_CLOSE], file);
	if (!printed)
		printed = sl_denied_print(report->denied, rc ? NULL : &counted, file);
	warn(&faults, report->dropped);
	if (rc)
		sl_log_warning("whether events were lost is not known: reading the counters: %s",
			       strerror(-rc));
	return printed;
}
