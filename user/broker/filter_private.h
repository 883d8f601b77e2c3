/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the filter share. */
#ifndef SLUICE_USER_BROKER_FILTER_PRIVATE_H
#define SLUICE_USER_BROKER_FILTER_PRIVATE_H

#include <stddef.h>

#include "broker/filter.h"

struct sl_filter_arch {
	uint32_t audit;      /* AUDIT_ARCH_* */
	uint32_t nr_limit;   /* numbers from here on are another ABI's; 0: no limit */
	int nr[SL_CALL_MAX]; /* by enum sl_filter_call, -1: no such call */
};

/* Those of this machine, its own first; returns how many. */
size_t sl_filter_arches(const struct sl_filter_arch **out);

#endif
