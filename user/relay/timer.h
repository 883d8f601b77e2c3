/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time limits of one loop. All timers of a queue last equally long, so a queue is in order by
 * itself and setting a timer again, which happens whenever bytes move, costs a few stores.
 *
 * A timer that is zeroed is off; it is embedded in what it is about, and has to be off before
 * that is freed.
 */
#ifndef SLUICE_USER_RELAY_TIMER_H
#define SLUICE_USER_RELAY_TIMER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct sl_timer_queue;

struct sl_timer {
	TAILQ_ENTRY(sl_timer) all;
	struct sl_timer_queue *queue; /* NULL: off */
	int64_t due_ms;               /* sl_monotonic_ms() */
};

struct sl_timer_queue {
	TAILQ_HEAD(, sl_timer) all;
	unsigned int ms;                     /* 0: its timers are never set */
	void (*due)(struct sl_timer *timer); /* the timer is off by then */
};

void sl_timer_queue_init(struct sl_timer_queue *queue, unsigned int ms,
			 void (*due)(struct sl_timer *timer));

/* From `now_ms` on, whatever it was set to before. */
void sl_timer_set(struct sl_timer *timer, struct sl_timer_queue *queue, int64_t now_ms);
void sl_timer_off(struct sl_timer *timer);

/* Calls due() of those whose time has come. A timer that due() sets comes another time. */
void sl_timer_queue_run(struct sl_timer_queue *queue, int64_t now_ms);

/* Milliseconds until the first one, -1 for none. */
int sl_timer_queue_next(const struct sl_timer_queue *queue, int64_t now_ms);

#endif
