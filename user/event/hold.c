/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event/hold.h"

int sl_hold_push(struct sl_hold *hold, const struct sl_event *event, uint64_t deadline_ms)
{
	struct sl_hold_slot *slot;

	if (event->size < sizeof(*event) || event->size > sizeof(slot->event))
		return -EINVAL;
	if (hold->count == SL_HOLD_MAX)
		return -ENOBUFS;
	if (!hold->slots)
		hold->slots = calloc(SL_HOLD_MAX, sizeof(*hold->slots));
	if (!hold->slots)
		return -ENOMEM;
	slot = &hold->slots[(hold->first + hold->count) % SL_HOLD_MAX];
	memcpy(&slot->event, event, event->size);
	slot->deadline_ms = deadline_ms;
	hold->count++;
	return 0;
}

const struct sl_hold_slot *sl_hold_head(const struct sl_hold *hold)
{
	return hold->count ? &hold->slots[hold->first] : NULL;
}

void sl_hold_pop(struct sl_hold *hold)
{
	if (!hold->count)
		return;
	hold->first = (hold->first + 1) % SL_HOLD_MAX;
	hold->count--;
}

void sl_hold_clear(struct sl_hold *hold)
{
	free(hold->slots);
	*hold = (struct sl_hold){ 0 };
}
