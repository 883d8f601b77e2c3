// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Map `decisions`: what was denied, or would have been, by kind; and telling what is known here. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "kernel/set_private.h"

struct entry {
	struct sl_decision_key key;
	struct sl_decision_row row;
};

struct collect {
	unsigned int sandbox; /* 0: of all */
	struct sl_array entries;
};

static int collect_row(const void *key, void *value, void *arg)
{
	const struct sl_decision_key *kind = key;
	struct collect *collect = arg;
	struct entry *entry;

	if (collect->sandbox && kind->sandbox != collect->sandbox)
		return 0;
	entry = sl_array_add(&collect->entries);
	if (!entry)
		return -ENOMEM;
	entry->key = *kind;
	entry->row = *(const struct sl_decision_row *)value;
	return 0;
}

static int by_key(const void *a, const void *b)
{
	return memcmp(&((const struct entry *)a)->key, &((const struct entry *)b)->key,
		      sizeof(struct sl_decision_key));
}

int sl_decisions_each(struct sl_set *set, unsigned int sandbox, sl_decision_fn fn, void *arg)
{
	struct collect all = { .sandbox = sandbox, .entries = SL_ARRAY(struct entry) };
	int rc = sl_map_each(set->maps[SL_MAP_DECISIONS], collect_row, &all);
	const struct entry *entry = all.entries.data;

	if (all.entries.count)
		qsort(all.entries.data, all.entries.count, all.entries.item, by_key);
	for (size_t i = 0; !rc && i < all.entries.count; i++)
		rc = fn(&entry[i].key, &entry[i].row, arg);
	sl_array_free(&all.entries);
	return rc;
}

static int forget(const struct sl_decision_key *key, const struct sl_decision_row *row, void *arg)
{
	const struct sl_set *set = arg;

	(void)row;
	bpf_map_delete_elem(set->maps[SL_MAP_DECISIONS], key);
	return 0;
}

int sl_decisions_forget(struct sl_set *set, unsigned int sandbox)
{
	return sl_decisions_each(set, sandbox, forget, set);
}

void sl_decision_untold(const struct sl_decision_key *key, const struct sl_decision_row *row,
			struct sl_decision_record *out)
{
	*out = (struct sl_decision_record){
		.key = *key,
		.owner = row->owner,
		.first_ns = row->first_ns,
		.last_ns = row->last_ns,
		.count = row->count - row->told,
		.class_id = row->class_id,
	};
}

int sl_decision_rule(struct sl_set *set, const struct sl_decision_record *decision,
		     struct sl_guard_rule *out)
{
	const struct sl_guard_rule_key key = { decision->key.policy, decision->class_id };
	int rc = sl_map_lookup(set->maps[SL_MAP_GUARD_RULES], &key, out);

	out->key[rc ? 0 : SL_GUARD_RULE_MAX - 1] = '\0';
	return rc;
}

/* Runs a program of the set on what it is given. */
int sl_prog_run(const struct sl_set *set, const char *name, void *ctx, __u32 size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = size);
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	int rc = sl_set_path(path, set->dir, SL_SET_PROGS, name);

	if (rc)
		return rc;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	return bpf_prog_test_run_opts(fd, &opts) ? -errno : 0;
}

int sl_decision_tell(const struct sl_set *set, struct sl_refused *refused)
{
	return sl_prog_run(set, SL_PROG_REFUSED, refused, sizeof(*refused));
}

int sl_relayed_tell(const struct sl_set *set, struct sl_relayed *relayed)
{
	return sl_prog_run(set, SL_PROG_RELAYED, relayed, sizeof(*relayed));
}
