/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a run was denied: a line as it happens, and a table at the end. Equal denials (same
 * binary, destination, reason) are one row: told when they begin, then whenever their
 * number has grown tenfold. Bounded: SL_DENIED_ROWS kinds, SL_DENIED_LINES of them told.
 */
#ifndef SLUICE_USER_RUN_DENIED_H
#define SLUICE_USER_RUN_DENIED_H

#include <sluice/counter.h>

#include "event/view_event.h"
#include "run/advice.h"

#define SL_DENIED_ROWS 1024
#define SL_DENIED_LINES 64
#define SL_DENIED_SHOWN 40

struct sl_denied;

/* Fills rule, pinned and found for one; what it points to lives until the next call. */
typedef void (*sl_advise_fn)(struct sl_advice *advice, const struct sl_view_event *event,
			     void *arg);

/* `advise` may be NULL. */
int sl_denied_new(struct sl_denied **out, sl_advise_fn advise, void *arg);
void sl_denied_free(struct sl_denied **denied);

/* Takes a decision event, and logs it; others are ignored. */
void sl_denied_add(struct sl_denied *denied, const struct sl_view_event *event);

/*
 * The whole as {"denied", "audited", "denials": […]}, into *out, which the caller puts:
 * what was refused, what would have been, and rows of kinds, the most frequent first.
 */
int sl_denied_json(struct json_object **out, struct sl_denied *denied,
		   const struct sl_counters *counted);

/*
 * Prints the table, the most frequent first; nothing without denials. `counted` is what the
 * kernel has counted, to tell how many are missing; may be NULL. 0 or -errno.
 */
int sl_denied_print(struct sl_denied *denied, const struct sl_counters *counted, FILE *file);

#endif
