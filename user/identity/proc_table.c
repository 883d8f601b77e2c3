/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "identity/proc_table.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/htab.h"

/* `proc` is first, so what callers hold can be turned back into its row. */
struct row {
	struct sl_proc proc;
	unsigned int holds;
	unsigned int round;    /* the resync in which it was last seen alive */
	TAILQ_ENTRY(row) link; /* in `live`, or in `exited` when not held */
};

_Static_assert(offsetof(struct row, proc) == 0, "see row_of()");

TAILQ_HEAD(rows, row);

struct sl_proc_table {
	unsigned int max_rows;
	unsigned int max_exited;
	unsigned int round;
	struct sl_proc_table_stats stats;
	struct sl_htab *by_key; /* struct sl_process_key -> struct row * */
	struct rows live;
	struct rows exited; /* oldest first */
};

int sl_proc_table_new(struct sl_proc_table **out, unsigned int max_rows, unsigned int max_exited)
{
	struct sl_proc_table *table = calloc(1, sizeof(*table));
	int ret;

	if (!table)
		return -ENOMEM;
	ret = sl_htab_new(&table->by_key, sizeof(struct sl_process_key), sizeof(struct row *));
	if (ret) {
		free(table);
		return ret;
	}
	table->max_rows = max_rows ? max_rows : SL_PROC_TABLE_MAX;
	table->max_exited = max_exited ? max_exited : SL_PROC_TABLE_EXITED;
	TAILQ_INIT(&table->live);
	TAILQ_INIT(&table->exited);
	*out = table;
	return 0;
}

void sl_proc_table_free(struct sl_proc_table **table)
{
	size_t at = 0;
	void *value;

	if (!*table)
		return;
	while (sl_htab_next((*table)->by_key, &at, NULL, &value))
		free(*(struct row **)value);
	sl_htab_free(&(*table)->by_key);
	free(*table);
	*table = NULL;
}

static struct row *row_of(const struct sl_proc *proc)
{
	return (struct row *)proc;
}

/* Padding of a key counts when keys are compared, and not every producer clears it. */
static struct sl_process_key key_of(unsigned int tgid, unsigned long long start_ns)
{
	return (struct sl_process_key){ .start_ns = start_ns, .tgid = tgid };
}

static struct row *find(const struct sl_proc_table *table, unsigned int tgid,
			unsigned long long start_ns)
{
	struct sl_process_key key = key_of(tgid, start_ns);
	struct row **slot = sl_htab_get(table->by_key, &key);

	return slot ? *slot : NULL;
}

static void forget_oldest_exited(struct sl_proc_table *table)
{
	struct row *row = TAILQ_FIRST(&table->exited);

	TAILQ_REMOVE(&table->exited, row, link);
	table->stats.exited--;
	sl_htab_del(table->by_key, &row->proc.process.key);
	free(row);
}

static void keep_exited(struct sl_proc_table *table, struct row *row)
{
	TAILQ_INSERT_TAIL(&table->exited, row, link);
	if (++table->stats.exited > table->max_exited)
		forget_oldest_exited(table);
}

/* A new, live row with nothing but its key. */
static int row_add(struct sl_proc_table *table, const struct sl_process_key *key, struct row **out)
{
	struct row *row, **slot;

	/* What is only remembered makes room for what lives. */
	if (sl_htab_count(table->by_key) >= table->max_rows && table->stats.exited)
		forget_oldest_exited(table);
	if (sl_htab_count(table->by_key) >= table->max_rows)
		return -ENOSPC;
	row = calloc(1, sizeof(*row));
	if (!row)
		return -ENOMEM;
	slot = sl_htab_add(table->by_key, key, NULL);
	if (!slot) {
		free(row);
		return -ENOMEM;
	}
	*slot = row;
	row->proc.process.key = *key;
	TAILQ_INSERT_TAIL(&table->live, row, link);
	table->stats.live++;
	*out = row;
	return 0;
}

static int row_get(struct sl_proc_table *table, const struct sl_process *process, struct row **out)
{
	struct sl_process_key key = key_of(process->key.tgid, process->key.start_ns);
	int ret = 0;

	*out = find(table, key.tgid, key.start_ns);
	if (!*out)
		ret = row_add(table, &key, out);
	if (ret)
		table->stats.refused++;
	return ret;
}

/* Records come in two ways, ring and map; the one with the later exec is the newer. */
static void row_update(struct row *row, const struct sl_process *process)
{
	struct sl_process *mine = &row->proc.process;
	struct sl_process_key key = mine->key;

	if (process->exec_ns < mine->exec_ns)
		return;
	*mine = *process;
	mine->key = key;
	mine->parent.pad = 0;
	mine->comm[SL_COMM_LEN - 1] = '\0';
}

static void row_exit(struct sl_proc_table *table, struct row *row, unsigned long long exit_ns)
{
	row->proc.exited = true;
	row->proc.exit_ns = exit_ns;
	row->proc.process.flags |= SL_PROC_EXITED;
	TAILQ_REMOVE(&table->live, row, link);
	table->stats.live--;
	if (row->holds)
		table->stats.held_exited++;
	else
		keep_exited(table, row);
}

int sl_proc_table_event(struct sl_proc_table *table, const struct sl_event_process *event)
{
	struct row *row;
	int ret;

	if (event->head.size < sizeof(*event))
		return -EINVAL;
	switch (event->head.kind) {
	case SL_EVENT_ENTER:
	case SL_EVENT_FORK:
	case SL_EVENT_EXEC:
	case SL_EVENT_EXIT:
		break;
	default:
		return -EINVAL;
	}
	ret = row_get(table, &event->process, &row);
	if (ret)
		return ret;
	row->round = table->round;
	row_update(row, &event->process);
	if (row->proc.exited)
		row->proc.process.flags |= SL_PROC_EXITED;
	if (event->head.kind != SL_EVENT_EXIT)
		return 0;
	/* Also when a resync found it gone first: now its end is known. */
	row->proc.exit_code = event->exit_code;
	row->proc.exit_lost = false;
	if (row->proc.exited)
		row->proc.exit_ns = event->head.time_ns;
	else
		row_exit(table, row, event->head.time_ns);
	return 0;
}

const struct sl_proc *sl_proc_table_find(const struct sl_proc_table *table, unsigned int tgid,
					 unsigned long long start_ns)
{
	struct row *row = find(table, tgid, start_ns);

	return row ? &row->proc : NULL;
}

const struct sl_proc *sl_proc_table_hold(struct sl_proc_table *table, unsigned int tgid,
					 unsigned long long start_ns)
{
	struct row *row = find(table, tgid, start_ns);

	if (!row)
		return NULL;
	if (row->proc.exited && !row->holds) {
		TAILQ_REMOVE(&table->exited, row, link);
		table->stats.exited--;
		table->stats.held_exited++;
	}
	row->holds++;
	return &row->proc;
}

void sl_proc_table_drop(struct sl_proc_table *table, const struct sl_proc **proc)
{
	struct row *row;

	if (!*proc)
		return;
	row = row_of(*proc);
	*proc = NULL;
	if (--row->holds || !row->proc.exited)
		return;
	table->stats.held_exited--;
	keep_exited(table, row);
}

void sl_proc_table_resync_begin(struct sl_proc_table *table)
{
	table->round++;
}

int sl_proc_table_seed(struct sl_proc_table *table, const struct sl_process *process)
{
	struct row *row;
	int ret = row_get(table, process, &row);

	if (ret)
		return ret;
	row->round = table->round;
	row_update(row, process);
	if (row->proc.exited) {
		row->proc.process.flags |= SL_PROC_EXITED;
	} else if (process->flags & SL_PROC_EXITED) {
		row->proc.exit_lost = true;
		row_exit(table, row, 0);
	}
	return 0;
}

void sl_proc_table_resync_end(struct sl_proc_table *table, unsigned long long now_ns)
{
	struct row *row = TAILQ_FIRST(&table->live);

	while (row) {
		struct row *next = TAILQ_NEXT(row, link);

		if (row->round != table->round) {
			row->proc.exit_lost = true;
			row_exit(table, row, now_ns);
		}
		row = next;
	}
}

void sl_proc_table_stats(const struct sl_proc_table *table, struct sl_proc_table_stats *out)
{
	*out = table->stats;
}
