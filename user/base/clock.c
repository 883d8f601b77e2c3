// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/clock.h"

#include <time.h>

uint64_t sl_boottime_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

int64_t sl_monotonic_ms(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int sl_sooner_ms(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}
