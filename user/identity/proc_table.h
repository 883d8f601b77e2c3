/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes as the events of the ring tell of them, by (tgid, start time). A cache: it
 * can be rebuilt from the kernel's map with the resync functions. Not locked.
 *
 * A row lives while its process does; after its exit as long as somebody holds it (a
 * socket closes after its process' exit), then among the SL_PROC_TABLE_EXITED latest
 * that have exited. Its address does not change meanwhile.
 */
#ifndef SLUICE_USER_PROC_TABLE_H
#define SLUICE_USER_PROC_TABLE_H

#include <stdbool.h>

#include <sluice/event.h>

/* Rows in all. Further processes are refused (-ENOSPC) until some have gone. */
#define SL_PROC_TABLE_MAX 65536

/* Exited processes that nobody holds and that are still known. */
#define SL_PROC_TABLE_EXITED 1024

struct sl_proc {
	struct sl_process process; /* comm is terminated; a workload chose it: escape it */
	unsigned long long exit_ns;
	int exit_code; /* as wait(2) has it; valid with `exited` and not `exit_lost` */
	bool exited;
	bool exit_lost; /* found gone at a resync: no exit event was seen */
};

struct sl_proc_table;

/* A limit of 0 stands for the constants above. */
int sl_proc_table_new(struct sl_proc_table **out, unsigned int max_rows, unsigned int max_exited);

/* Frees all rows, held ones too. Takes NULL. */
void sl_proc_table_free(struct sl_proc_table **table);

/*
 * Takes an ENTER, FORK, EXEC or EXIT event, in any order: an exit that overtook the rest
 * stays an exit. -EINVAL for another kind or a short record, -ENOSPC, -ENOMEM.
 */
int sl_proc_table_event(struct sl_proc_table *table, const struct sl_event_process *event);

/* Borrowed until the next event; NULL when not known. */
const struct sl_proc *sl_proc_table_find(const struct sl_proc_table *table, unsigned int tgid,
					 unsigned long long start_ns);

/*
 * As find, and the row stays until it has been dropped as often as it was held.
 * drop() takes a pointer to NULL, and nulls what it is given.
 */
const struct sl_proc *sl_proc_table_hold(struct sl_proc_table *table, unsigned int tgid,
					 unsigned long long start_ns);
void sl_proc_table_drop(struct sl_proc_table *table, const struct sl_proc **proc);

/*
 * After events were lost, or at the start: begin(), seed() with each row of the
 * kernel's map, end(). What was not seeded and had no event since begin() is taken for
 * exited at `now_ns` (CLOCK_BOOTTIME). seed() returns as event(). Without end(), for
 * instance because the map could not be read to its end, nothing is taken for exited.
 */
void sl_proc_table_resync_begin(struct sl_proc_table *table);
int sl_proc_table_seed(struct sl_proc_table *table, const struct sl_process *process);
void sl_proc_table_resync_end(struct sl_proc_table *table, unsigned long long now_ns);

struct sl_proc_table_stats {
	unsigned int live;
	unsigned int exited; /* not held */
	unsigned int held_exited;
	unsigned long long refused; /* for want of room or memory */
};

void sl_proc_table_stats(const struct sl_proc_table *table, struct sl_proc_table_stats *out);

#endif
