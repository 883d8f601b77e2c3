/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluice-bench: what recording and enforcing cost, and whether it is right under load. One command a
 * benchmark; each makes its own world (world.h), measures in rounds in which the modes
 * take turns, and reports (report.h). A budget missed is reported, not an error: only
 * wrong answers make the exit status 1.
 */
#ifndef SLUICE_BENCH_H
#define SLUICE_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cli/command.h"

/* Values that every benchmark takes; the first member of its options. */
struct sl_bench_common {
	const char *json_dir;
	bool quick;
};

#define SL_BENCH_OPTIONS(values)                                        \
	SL_OPTION(TEXT, values, common.json_dir, "json-dir", 0, "DIR",  \
		  "write the result to DIR/NAME.json"),                 \
		SL_OPTION(FLAG, values, common.quick, "quick", 0, NULL, \
			  "a few seconds, to see that it works")

/* Largest struct of options of a benchmark, for who runs them all. */
#define SL_BENCH_OPTIONS_MAX 256

enum sl_pin { SL_PIN_ONE, SL_PIN_TWO, SL_PIN_NONE };
extern const char *const sl_pin_names[];

/* CPUs that `pin` allows: who is measured, and who works for it. -1: any. */
int sl_pin_worker(enum sl_pin pin);
int sl_pin_helper(enum sl_pin pin);

extern const struct sl_command sl_bench_resolve;
extern const struct sl_command sl_bench_connect;
extern const struct sl_command sl_bench_udp;
extern const struct sl_command sl_bench_exec;
extern const struct sl_command sl_bench_churn;
extern const struct sl_command sl_bench_policy;
extern const struct sl_command sl_bench_storm;
extern const struct sl_command sl_bench_attach;
extern const struct sl_command sl_bench_busy;
extern const struct sl_command sl_bench_kill;
extern const struct sl_command sl_bench_sandboxes;
extern const struct sl_command sl_bench_run;
extern const struct sl_command sl_bench_relay;
extern const struct sl_command sl_bench_dns;
extern const struct sl_command sl_bench_relay_soak;

static inline uint64_t sl_bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

#endif
