/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

double sl_median(double *v, size_t count)
{
	if (!count)
		return 0;
	qsort(v, count, sizeof(*v), compare_double);
	return count % 2 ? v[count / 2] : (v[count / 2 - 1] + v[count / 2]) / 2;
}

double sl_mad(double *v, size_t count)
{
	double median = sl_median(v, count);

	for (size_t i = 0; i < count; i++)
		v[i] = fabs(v[i] - median);
	return sl_median(v, count);
}

double sl_paired_ratio(const double *a, const double *b, double *scratch, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (b[i] > 0)
			scratch[used++] = a[i] / b[i];
	}
	return sl_median(scratch, used);
}

void sl_sort_u32(uint32_t *v, size_t count)
{
	if (count)
		qsort(v, count, sizeof(*v), compare_u32);
}

uint32_t sl_rank(const uint32_t *sorted, size_t count, double p)
{
	size_t index = (size_t)ceil(p * (double)count);

	if (!count)
		return 0;
	if (index)
		index--;
	return sorted[index < count ? index : count - 1];
}
