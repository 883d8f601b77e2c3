/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "identity/exe_table.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/htab.h"

struct node {
	TAILQ_ENTRY(node) use;
	struct sl_exe_row row; /* last: its path follows */
};

TAILQ_HEAD(nodes, node);

struct sl_exe_table {
	struct sl_identity_ops ops;
	unsigned int max_rows;
	struct sl_htab *by_id; /* id -> struct node * */
	struct nodes uses;     /* least recently used first */
	struct sl_exe scratch; /* what a look-up returns; too large for a stack frame */
};

int sl_exe_table_new(struct sl_exe_table **out, const struct sl_identity_ops *ops,
		     unsigned int max_rows)
{
	struct sl_exe_table *table = calloc(1, sizeof(*table));
	int ret;

	if (!table)
		return -ENOMEM;
	ret = sl_htab_new(&table->by_id, sizeof(unsigned int), sizeof(struct node *));
	if (ret) {
		free(table);
		return ret;
	}
	table->ops = *ops;
	table->max_rows = max_rows ? max_rows : SL_EXE_TABLE_MAX;
	if (table->max_rows < SL_EXE_TABLE_BORROW)
		table->max_rows = SL_EXE_TABLE_BORROW;
	TAILQ_INIT(&table->uses);
	*out = table;
	return 0;
}

static void node_drop(struct sl_exe_table *table, struct node *node)
{
	TAILQ_REMOVE(&table->uses, node, use);
	sl_htab_del(table->by_id, &node->row.id);
	free(node);
}

void sl_exe_table_free(struct sl_exe_table **table)
{
	struct node *node;

	if (!*table)
		return;
	while ((node = TAILQ_FIRST(&(*table)->uses)))
		node_drop(*table, node);
	sl_htab_free(&(*table)->by_id);
	free(*table);
	*table = NULL;
}

/* Lengths and offsets are taken at their word only as far as they stay inside the path. */
static struct node *node_of_exe(const struct sl_exe *exe, unsigned int id)
{
	size_t max = exe->path_len < SL_PATH_MAX ? exe->path_len : SL_PATH_MAX - 1;
	size_t len = strnlen(exe->path, max);
	struct node *node = malloc(sizeof(*node) + len + 1);
	struct sl_exe_row *row;

	if (!node)
		return NULL;
	row = &node->row;
	row->key = exe->key;
	row->size = exe->size;
	row->seen_ns = exe->seen_ns;
	row->id = id;
	row->path_len = (unsigned int)len;
	row->root_off = exe->root_off < len ? exe->root_off : 0;
	memcpy(row->path, exe->path, len);
	row->path[len] = '\0';
	return node;
}

static int node_add(struct sl_exe_table *table, struct node *node)
{
	struct node **slot;

	if (sl_htab_count(table->by_id) >= table->max_rows)
		node_drop(table, TAILQ_FIRST(&table->uses));
	slot = sl_htab_add(table->by_id, &node->row.id, NULL);
	if (!slot)
		return -ENOMEM;
	*slot = node;
	TAILQ_INSERT_TAIL(&table->uses, node, use);
	return 0;
}

int sl_exe_table_get(struct sl_exe_table *table, unsigned int id, const struct sl_exe_row **out)
{
	_cleanup_free_ struct node *node = NULL;
	struct node **slot;
	int ret;

	if (!id)
		return -ENOENT;
	slot = sl_htab_get(table->by_id, &id);
	if (slot) {
		TAILQ_REMOVE(&table->uses, *slot, use);
		TAILQ_INSERT_TAIL(&table->uses, *slot, use);
		*out = &(*slot)->row;
		return 0;
	}
	ret = table->ops.exe_by_id(table->ops.ctx, id, &table->scratch);
	if (ret)
		return ret;
	node = node_of_exe(&table->scratch, id);
	if (!node)
		return -ENOMEM;
	ret = node_add(table, node);
	if (ret)
		return ret;
	*out = &TAKE_PTR(node)->row;
	return 0;
}

unsigned int sl_exe_table_count(const struct sl_exe_table *table)
{
	return (unsigned int)sl_htab_count(table->by_id);
}
