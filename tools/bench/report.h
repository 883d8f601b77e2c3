/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The result of one benchmark: rows (what was measured), checks (budgets, and what must
 * be right), notes (how to read it). One document makes both the JSON and the tables.
 *
 * Order of use, within what sl_report_run() runs: row and values; checks. Out of memory is
 * kept and returned at the end, so callers need not look at each call.
 */
#ifndef SLUICE_BENCH_REPORT_H
#define SLUICE_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

struct sl_report;

/* What a benchmark measures, put into `report`. Returns 0 or -errno. */
typedef int sl_bench_fn(const void *options, struct sl_report *report, struct sl_err *err);

/*
 * Runs `bench` and prints its result, as the command `name`; writes DIR/NAME.json as well, if
 * asked. `options` begin with struct sl_bench_common. Returns the exit status: 0, or 1 when
 * something that must hold did not; or -errno.
 */
int sl_report_run(struct sl_cli *cli, const char *name, const void *options, sl_bench_fn *bench);

/* Settings of the run, in the head of the document. */
void sl_report_setting(struct sl_report *report, const char *key, int64_t value);
void sl_report_setting_text(struct sl_report *report, const char *key, const char *value);

/*
 * Starts a row of `table`; values go to the row started last. All rows of a table have
 * the same values in the same order, which are its columns.
 */
void sl_report_row(struct sl_report *report, const char *table, const char *name);
void sl_report_int(struct sl_report *report, const char *key, int64_t value);
void sl_report_float(struct sl_report *report, const char *key, double value);
/* Kept in JSON, not in the table. */
void sl_report_samples(struct sl_report *report, const char *key, const double *v, size_t count);

/* A budget: met when value <= limit, or value >= limit. Never a failure. */
void sl_report_at_most(struct sl_report *report, const char *name, double value, double limit);
void sl_report_at_least(struct sl_report *report, const char *name, double value, double limit);

/* What must hold: value == expected, else the benchmark fails. */
void sl_report_equal(struct sl_report *report, const char *name, int64_t value, int64_t expected);

void sl_report_note(struct sl_report *report, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
