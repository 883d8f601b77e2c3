// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "relay/timer.h"

void sl_timer_queue_init(struct sl_timer_queue *queue, unsigned int ms,
			 void (*due)(struct sl_timer *timer))
{
	TAILQ_INIT(&queue->all);
	queue->ms = ms;
	queue->due = due;
}

void sl_timer_off(struct sl_timer *timer)
{
	if (timer->queue)
		TAILQ_REMOVE(&timer->queue->all, timer, all);
	timer->queue = NULL;
}

void sl_timer_set(struct sl_timer *timer, struct sl_timer_queue *queue, int64_t now_ms)
{
	sl_timer_off(timer);
	if (!queue->ms)
		return;
	timer->queue = queue;
	timer->due_ms = now_ms + queue->ms;
	TAILQ_INSERT_TAIL(&queue->all, timer, all);
}

void sl_timer_queue_run(struct sl_timer_queue *queue, int64_t now_ms)
{
	struct sl_timer *timer;

	while ((timer = TAILQ_FIRST(&queue->all)) && timer->due_ms <= now_ms) {
		sl_timer_off(timer);
		queue->due(timer);
	}
}

int sl_timer_queue_next(const struct sl_timer_queue *queue, int64_t now_ms)
{
	const struct sl_timer *timer = TAILQ_FIRST(&queue->all);

	if (!timer)
		return -1;
	if (timer->due_ms <= now_ms)
		return 0;
	return (int)(timer->due_ms - now_ms);
}
