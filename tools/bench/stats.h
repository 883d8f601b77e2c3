/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Robust statistics. Arrays are borrowed; an empty one gives 0. */
#ifndef SLUICE_BENCH_STATS_H
#define SLUICE_BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Median, and the median of absolute deviations from it (not scaled). Both reorder `v`; the
 * second also overwrites it. */
double sl_median(double *v, size_t count);
double sl_mad(double *v, size_t count);

/*
 * Median of a[i] / b[i]: what changes slowly (clock speed, other load) cancels out when
 * both were measured in the same round. `scratch` has room for `count`.
 */
double sl_paired_ratio(const double *a, const double *b, double *scratch, size_t count);

/* Sorts; then sl_rank() gives the value that the share `p` (0 to 1) does not exceed. */
void sl_sort_u32(uint32_t *v, size_t count);
uint32_t sl_rank(const uint32_t *sorted, size_t count, double p);

#endif
