// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/inflight.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define SLOTS_MAX 4096

static size_t size_of(unsigned int count)
{
	return offsetof(struct sl_inflight, slots) + count * sizeof(struct sl_inflight_slot);
}

int sl_inflight_new(struct sl_inflight **out, unsigned int count)
{
	struct sl_inflight *table;

	if (!count || count > SLOTS_MAX)
		return -EINVAL;
	table = mmap(NULL, size_of(count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (table == MAP_FAILED)
		return -ENOMEM;
	table->count = count;
	*out = table;
	return 0;
}

void sl_inflight_free(struct sl_inflight **table)
{
	if (*table)
		munmap(*table, size_of((*table)->count));
	*table = NULL;
}

int sl_inflight_receive(struct sl_inflight_slot *slot, int listener, uint64_t tag)
{
	int ret;

	/* An old id must not be taken for one of this listener: invariant 2. */
	slot->notif.notif.id = 0;
	slot->tag = tag;
	atomic_store(&slot->busy, true);
	ret = sl_notify_receive(listener, &slot->notif);
	if (ret)
		atomic_store(&slot->busy, false);
	return ret;
}

void sl_inflight_done(struct sl_inflight_slot *slot)
{
	atomic_store(&slot->busy, false);
}

bool sl_inflight_left(struct sl_inflight_slot *slot)
{
	if (!atomic_load(&slot->busy))
		return false;
	if (slot->notif.notif.id)
		return true;
	atomic_store(&slot->busy, false);
	return false;
}
