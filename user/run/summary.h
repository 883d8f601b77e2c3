/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table at the end of `sluice run`: connections by binary, protocol and remote end,
 * inbound ones by their local end and remote address, added up. Bounded: what is beyond
 * SL_SUMMARY_ROWS kinds is added up in one row.
 */
#ifndef SLUICE_USER_RUN_SUMMARY_H
#define SLUICE_USER_RUN_SUMMARY_H

#include "event/view_event.h"

#define SL_SUMMARY_ROWS 1024
#define SL_SUMMARY_SHOWN 40

struct sl_summary;

int sl_summary_new(struct sl_summary **out);
void sl_summary_free(struct sl_summary **summary);

/* Takes a close event; others are ignored. An sl_event_fn whose arg is the summary. */
void sl_summary_add(const struct sl_view_event *event, void *arg);

/*
 * The whole as {"sockets", "unused", "missing", "beyond", "connections": […]}, into *out,
 * which the caller puts. `missing` as below.
 */
int sl_summary_json(struct json_object **out, struct sl_summary *summary, uint64_t missing);

/*
 * Prints the table, the most connections first, under a line that has the number of all
 * sockets: `missing` is how many closed without an event that told. 0 or -errno.
 */
int sl_summary_print(struct sl_summary *summary, uint64_t missing, FILE *file);

#endif
