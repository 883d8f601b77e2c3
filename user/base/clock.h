/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two clocks in use: one that records carry, one to wait by. */
#ifndef SLUICE_USER_CLOCK_H
#define SLUICE_USER_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME in nanoseconds, as the kernel side stamps its records. */
uint64_t sl_boottime_ns(void);

/* CLOCK_MONOTONIC in milliseconds, for deadlines. */
int64_t sl_monotonic_ms(void);

/* The sooner of two timeouts in milliseconds, of which -1 is "never". */
int sl_sooner_ms(int a, int b);

#endif
