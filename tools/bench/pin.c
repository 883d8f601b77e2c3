/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <sched.h>

#include "bench.h"

const char *const sl_pin_names[] = { "one", "two", "none", NULL };

/* The n-th CPU this process may use; the last one when there are fewer. */
static int nth_cpu(int n)
{
	cpu_set_t cpus;
	int found = -1;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return -1;
	for (int i = 0; i < CPU_SETSIZE && n >= 0; i++) {
		if (CPU_ISSET(i, &cpus)) {
			found = i;
			n--;
		}
	}
	return found;
}

int sl_pin_worker(enum sl_pin pin)
{
	return pin == SL_PIN_NONE ? -1 : nth_cpu(0);
}

int sl_pin_helper(enum sl_pin pin)
{
	return pin == SL_PIN_NONE ? -1 : nth_cpu(pin == SL_PIN_TWO);
}
