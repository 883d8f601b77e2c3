/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "identity/lineage_table.h"

#include <errno.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/htab.h"

_Static_assert(SL_EXE_TABLE_BORROW >= 2 * 2 * SL_LINEAGE_DEPTH,
	       "the gets of one chain must not evict rows of that chain or the one before");

struct node {
	STAILQ_ENTRY(node) age;
	struct sl_lineage lineage;
};

STAILQ_HEAD(nodes, node);

struct sl_lineage_table {
	struct sl_identity_ops ops;
	struct sl_exe_table *exes;
	unsigned int max_rows;
	struct sl_htab *by_id; /* id -> struct node * */
	struct nodes ages;     /* oldest first */
};

int sl_lineage_table_new(struct sl_lineage_table **out, const struct sl_identity_ops *ops,
			 struct sl_exe_table *exes, unsigned int max_rows)
{
	struct sl_lineage_table *table = calloc(1, sizeof(*table));
	int ret;

	if (!table)
		return -ENOMEM;
	ret = sl_htab_new(&table->by_id, sizeof(unsigned int), sizeof(struct node *));
	if (ret) {
		free(table);
		return ret;
	}
	table->ops = *ops;
	table->exes = exes;
	table->max_rows = max_rows ? max_rows : SL_LINEAGE_TABLE_MAX;
	STAILQ_INIT(&table->ages);
	*out = table;
	return 0;
}

static void drop_oldest(struct sl_lineage_table *table)
{
	struct node *node = STAILQ_FIRST(&table->ages);

	STAILQ_REMOVE_HEAD(&table->ages, age);
	sl_htab_del(table->by_id, &node->lineage.id);
	free(node);
}

void sl_lineage_table_free(struct sl_lineage_table **table)
{
	if (!*table)
		return;
	while (!STAILQ_EMPTY(&(*table)->ages))
		drop_oldest(*table);
	sl_htab_free(&(*table)->by_id);
	free(*table);
	*table = NULL;
}

static int node_add(struct sl_lineage_table *table, const struct sl_lineage *lineage)
{
	struct node *node = malloc(sizeof(*node));
	struct node **slot;

	if (!node)
		return -ENOMEM;
	if (sl_htab_count(table->by_id) >= table->max_rows)
		drop_oldest(table);
	slot = sl_htab_add(table->by_id, &lineage->id, NULL);
	if (!slot) {
		free(node);
		return -ENOMEM;
	}
	node->lineage = *lineage;
	*slot = node;
	STAILQ_INSERT_TAIL(&table->ages, node, age);
	return 0;
}

/* By value: the walk adds rows, and adding may drop any other. */
static int lineage_get(struct sl_lineage_table *table, unsigned int id, struct sl_lineage *out)
{
	struct node **slot = sl_htab_get(table->by_id, &id);
	struct sl_lineage lineage;
	int ret;

	if (slot) {
		*out = (*slot)->lineage;
		return 0;
	}
	ret = table->ops.lineage_by_id(table->ops.ctx, id, &lineage);
	if (ret)
		return ret;
	lineage.id = id;
	ret = node_add(table, &lineage);
	if (!ret)
		*out = lineage;
	return ret;
}

static void chain_add(struct sl_lineage_table *table, struct sl_chain *chain,
		      const struct sl_lineage *lineage)
{
	struct sl_image *image = &chain->images[chain->count++];

	*image = (struct sl_image){
		.exe_id = lineage->key.exe,
		.script_id = lineage->key.script,
		.outside = lineage->key.flags & SL_LINEAGE_OUTSIDE,
	};
	/* Left NULL when unknown: the id says which it was. */
	sl_exe_table_get(table->exes, image->exe_id, &image->exe);
	sl_exe_table_get(table->exes, image->script_id, &image->script);
	if (lineage->key.flags & SL_LINEAGE_CUT)
		chain->cut = true;
}

int sl_lineage_table_chain(struct sl_lineage_table *table, unsigned int id, struct sl_chain *out)
{
	struct sl_lineage lineage, parent;
	int ret;

	if (!id)
		return -ENOENT;
	ret = lineage_get(table, id, &lineage);
	if (ret)
		return ret;
	out->count = 0;
	out->cut = false;
	chain_add(table, out, &lineage);
	while (lineage.key.parent) {
		/*
		 * A parent is less deep than its child. Whatever the rows say, this ends:
		 * a loop can't decrease for ever, and the array has an end.
		 */
		if (out->count == SL_LINEAGE_DEPTH ||
		    lineage_get(table, lineage.key.parent, &parent) ||
		    parent.depth >= lineage.depth) {
			out->cut = true;
			break;
		}
		lineage = parent;
		chain_add(table, out, &lineage);
	}
	return 0;
}

unsigned int sl_lineage_table_count(const struct sl_lineage_table *table)
{
	return (unsigned int)sl_htab_count(table->by_id);
}
