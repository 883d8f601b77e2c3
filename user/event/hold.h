/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events that wait for the digest of an executable, and those behind them, so that order
 * is kept. Bounded in number (SL_HOLD_MAX) and, by who uses it, in time (SL_HOLD_MS).
 * Records are copied. Memory is taken at the first push.
 */
#ifndef SLUICE_USER_HOLD_H
#define SLUICE_USER_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/event.h>

#define SL_HOLD_MAX 4096
#define SL_HOLD_MS 3000

union sl_hold_event {
	struct sl_event head;
	struct sl_event_process process;
	struct sl_event_sock sock;
	struct sl_event_decision decision;
};

struct sl_hold_slot {
	union sl_hold_event event;
	uint64_t deadline_ms; /* CLOCK_MONOTONIC */
};

struct sl_hold {
	struct sl_hold_slot *slots; /* NULL before the first push */
	unsigned int first;
	unsigned int count;
};

/* -EINVAL for a record that fits no slot, -ENOBUFS when full, -ENOMEM. */
int sl_hold_push(struct sl_hold *hold, const struct sl_event *event, uint64_t deadline_ms);

/* The oldest, or NULL; valid until it is popped. */
const struct sl_hold_slot *sl_hold_head(const struct sl_hold *hold);
void sl_hold_pop(struct sl_hold *hold);

void sl_hold_clear(struct sl_hold *hold);

#endif
