/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the task of a held call to the kernel's record of its process. /proc tells a start
 * time in clock ticks, the record's key has nanoseconds: the first call of a process is
 * found by going through all records, later ones by its key. Safe from several threads.
 */
#ifndef SLUICE_USER_RUN_MEMBERS_H
#define SLUICE_USER_RUN_MEMBERS_H

#include "broker/call.h"
#include "kernel/set.h"

struct sl_members;

/* `set` is borrowed. -ENOMEM. */
int sl_members_new(struct sl_members **out, struct sl_set *set);
void sl_members_free(struct sl_members **members);

/* -ENOENT: the kernel has no record of it. -ESRCH: it has gone. */
int sl_members_find(struct sl_members *members, const struct sl_call *call, struct sl_process *out);

#endif
