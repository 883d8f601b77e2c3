/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that the relay of a run could not make: the table at its end. Equal ones (same
 * binary, destination, cause) are one row. Bounded: SL_UNREACHED_ROWS kinds.
 */
#ifndef SLUICE_USER_RUN_UNREACHED_H
#define SLUICE_USER_RUN_UNREACHED_H

#include <sluice/counter.h>

#include "event/view_event.h"

#define SL_UNREACHED_ROWS 256
#define SL_UNREACHED_SHOWN 20

struct sl_unreached;

int sl_unreached_new(struct sl_unreached **out);
void sl_unreached_free(struct sl_unreached **unreached);

/* Takes an event of the kind; others are ignored. */
void sl_unreached_add(struct sl_unreached *unreached, const struct sl_view_event *event);

/*
 * The whole as {"connections", "untold", "causes": […]}, into *out, which the caller puts: how
 * many, of how many no row tells, and rows, the most frequent first. `counted` is what the kernel
 * has counted; may be NULL.
 */
int sl_unreached_json(struct json_object **out, struct sl_unreached *unreached,
		      const struct sl_counters *counted);

/* Prints the table; nothing where there are none. 0 or -errno. */
int sl_unreached_print(struct sl_unreached *unreached, const struct sl_counters *counted,
		       FILE *file);

#endif
