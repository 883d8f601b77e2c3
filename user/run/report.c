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

/* Their clients' affair, which got a sentence each: one line. */
static void tell_bad_requests(const struct sl_counters *counted)
{
	unsigned long long n = counted->n[SL_COUNTER_PROXY_BAD_REQUEST];

	if (n)
		sl_log_notice("%llu request%s to the proxy in the sandbox %s malformed, or not "
			      "finished in time; the answer to each says why",
			      n, n == 1 ? "" : "s", n == 1 ? "was" : "were");
}

static const struct sl_field fault_fields[] = {
	SL_FIELD_TEXT(struct sl_live_fault, counter, NULL),
	SL_FIELD_UINT(struct sl_live_fault, value, NULL),
	SL_FIELD_TEXT(struct sl_live_fault, meaning, NULL),
	SL_FIELD_TEXT(struct sl_live_fault, advice, NULL, .flags = SL_FIELD_NULL),
	{ 0 },
};

static int fill_document(struct json_object *document, const struct sl_run_report *report,
			 const struct sl_counters *counted, const struct sl_array *faults)
{
	const struct sl_records records = { faults->data, faults->count, faults->item };
	struct json_object *part = NULL;
	uint64_t missing = counted ? counted->event_lost[SL_EVENT_CLOSE] : 0;
	int rc = sl_json_add(document, "status", json_object_new_int(report->status));

	rc = rc ? rc : sl_summary_json(&part, report->summary, missing);
	rc = rc ? rc : sl_json_add(document, "summary", part);
	rc = rc ? rc : sl_denied_json(&part, report->denied, counted);
	rc = rc ? rc : sl_json_add(document, "decisions", part);
	rc = rc ? rc : sl_unreached_json(&part, report->unreached, counted);
	rc = rc ? rc : sl_json_add(document, "unreachable", part);
	/* Without the counters it is not known whether there were any. */
	if (!rc && !counted)
		return json_object_object_add(document, "faults", NULL) ? -ENOMEM : 0;
	rc = rc ? rc
		: sl_json_add(document, "bad_requests",
			      json_object_new_uint64(counted->n[SL_COUNTER_PROXY_BAD_REQUEST]));
	rc = rc ? rc : sl_records_json(&part, fault_fields, &records);
	rc = rc ? rc : sl_json_add(document, "faults", part);
	return rc ? rc : sl_json_add(document, "dropped", json_object_new_uint64(report->dropped));
}

static int print_json(const struct sl_run_report *report, const struct sl_output *output,
		      const struct sl_counters *counted, const struct sl_array *faults)
{
	struct json_object *document = json_object_new_object();
	int rc = document ? fill_document(document, report, counted, faults) : -ENOMEM;

	rc = rc ? rc : sl_json_print(output->file, document, output->pretty);
	json_object_put(document);
	return rc;
}

int sl_run_report_print(const struct sl_run_report *report, const struct sl_output *output)
{
	_cleanup_array_ struct sl_array faults = SL_ARRAY(struct sl_live_fault);
	struct sl_counters counted = { 0 };
	int rc = sl_counters_read(report->set, report->sandbox, &counted), printed;

	rc = rc ? rc
		: sl_live_faults(report->set, report->shared ? report->sandbox : 0,
				 report->shared ? SL_LIVE_AGENT : SL_LIVE_RUN, &faults);
	if (output->json)
		return print_json(report, output, rc ? NULL : &counted, &faults);
	printed =
		sl_summary_print(report->summary, counted.event_lost[SL_EVENT_CLOSE], output->file);
	if (!printed)
		printed = sl_denied_print(report->denied, rc ? NULL : &counted, output->file);
	if (!printed)
		printed = sl_unreached_print(report->unreached, rc ? NULL : &counted, output->file);
	tell_bad_requests(&counted);
	warn(&faults, report->dropped);
	if (rc)
		sl_log_warning("whether events were lost is not known: reading the counters: %s",
			       strerror(-rc));
	return printed;
}
