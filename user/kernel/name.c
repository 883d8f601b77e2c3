/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/htab.h"
#include "kernel/set_private.h"

/* Ids of one kind, in a ring: the oldest goes when it is full. */
struct ring {
	__u32 *ids;
	size_t max, head, count;
};

struct key {
	char text[SL_NAME_MAX]; /* padded with zeros */
};

struct row {
	__u32 id;
	__u32 flags;
};

struct sl_naming {
	struct sl_set *set;
	unsigned int sandbox;
	struct sl_htab *rows; /* struct key -> struct row */
	struct ring allowed, denied;
};

/* --- reading --- */

int sl_name_read(const struct sl_set *set, __u32 id, struct sl_name *out)
{
	int rc = sl_map_lookup(set->maps[SL_MAP_NAMES], &id, out);

	if (!rc)
		out->text[SL_NAME_MAX - 1] = '\0';
	return rc;
}

struct each_name {
	unsigned int sandbox; /* 0: of all */
	int (*fn)(__u32 id, const struct sl_name *name, void *arg);
	void *arg;
};

static int name_row(const void *key, void *value, void *arg)
{
	const struct each_name *each = arg;
	struct sl_name *name = value;

	name->text[SL_NAME_MAX - 1] = '\0';
	if (each->sandbox && name->sandbox != each->sandbox)
		return 0;
	return each->fn(*(const __u32 *)key, name, each->arg);
}

int sl_name_each(struct sl_set *set, unsigned int sandbox,
		 int (*fn)(__u32 id, const struct sl_name *name, void *arg), void *arg)
{
	struct each_name each = { sandbox, fn, arg };

	return sl_map_each(set->maps[SL_MAP_NAMES], name_row, &each);
}

struct each_named {
	unsigned int sandbox; /* 0: of all */
	int (*fn)(const struct sl_named *named, __u32 id, void *arg);
	void *arg;
};

static int named_row(const void *key, void *value, void *arg)
{
	const struct each_named *each = arg;
	const struct sl_named *named = key;

	if (each->sandbox && named->sandbox != each->sandbox)
		return 0;
	return each->fn(named, *(const __u32 *)value, each->arg);
}

int sl_named_each(struct sl_set *set, unsigned int sandbox,
		  int (*fn)(const struct sl_named *named, __u32 id, void *arg), void *arg)
{
	struct each_named each = { sandbox, fn, arg };

	return sl_map_each(set->maps[SL_MAP_NAMED], named_row, &each);
}

static int forget_name(__u32 id, const struct sl_name *name, void *arg)
{
	const struct sl_set *set = arg;

	(void)name;
	bpf_map_delete_elem(set->maps[SL_MAP_NAMES], &id);
	return 0;
}

static int forget_named(const struct sl_named *named, __u32 id, void *arg)
{
	const struct sl_set *set = arg;

	(void)id;
	bpf_map_delete_elem(set->maps[SL_MAP_NAMED], named);
	return 0;
}

int sl_name_forget(struct sl_set *set, unsigned int sandbox)
{
	return sl_named_each(set, sandbox, forget_named, set)
		       ?: sl_name_each(set, sandbox, forget_name, set);
}

/* --- giving out --- */

static struct ring *ring_of(struct sl_naming *naming, __u32 flags)
{
	return flags & SL_NAME_DENIED ? &naming->denied : &naming->allowed;
}

static int ring_new(struct ring *ring, size_t max)
{
	ring->ids = calloc(max, sizeof(*ring->ids));
	ring->max = max;
	return ring->ids ? 0 : -ENOMEM;
}

/* The name of this id goes, unless it has changed its kind and is in the other ring. */
static void forget_id(struct sl_naming *naming, __u32 id, const struct ring *ring)
{
	struct sl_name name;
	struct key key = { 0 };
	struct row *row;

	if (sl_name_read(naming->set, id, &name))
		return;
	memcpy(key.text, name.text, strlen(name.text));
	row = sl_htab_get(naming->rows, &key);
	if (row && row->id == id && ring_of(naming, row->flags) != ring)
		return;
	bpf_map_delete_elem(naming->set->maps[SL_MAP_NAMES], &id);
	sl_htab_del(naming->rows, &key);
}

static void ring_add(struct sl_naming *naming, struct ring *ring, __u32 id)
{
	if (ring->count == ring->max) {
		forget_id(naming, ring->ids[ring->head], ring);
		ring->head = (ring->head + 1) % ring->max;
		ring->count--;
	}
	ring->ids[(ring->head + ring->count++) % ring->max] = id;
}

/* Ids are the set's: its other sandboxes' names, and other processes, take from them too. */
static int new_id(const struct sl_naming *naming, __u32 *id)
{
	struct sl_ids *ids = mmap(NULL, sizeof(*ids), PROT_READ | PROT_WRITE, MAP_SHARED,
				  naming->set->maps[SL_MAP_IDS], 0);

	if (ids == MAP_FAILED)
		return -errno;
	*id = __atomic_add_fetch(&ids->name, 1, __ATOMIC_SEQ_CST);
	munmap(ids, sizeof(*ids));
	return *id ? 0 : -EOVERFLOW;
}

static int write_name(const struct sl_naming *naming, const struct key *key, __u32 id, __u32 flags)
{
	struct sl_name name = {
		.sandbox = naming->sandbox,
		.flags = flags,
		.since_ns = sl_boottime_ns(),
	};

	memcpy(name.text, key->text, sizeof(name.text));
	if (!bpf_map_update_elem(naming->set->maps[SL_MAP_NAMES], &id, &name, BPF_ANY))
		return 0;
	return errno == E2BIG ? -ENOSPC : -errno;
}

int sl_naming_intern(struct sl_naming *naming, const char *text, __u32 flags, __u32 *id)
{
	size_t len = strlen(text);
	struct key key = { 0 };
	struct row *row;
	__u32 fresh;
	int rc;

	if (len >= sizeof(key.text))
		return -ENAMETOOLONG;
	memcpy(key.text, text, len);
	row = sl_htab_get(naming->rows, &key);
	if (row && row->flags == flags) {
		*id = row->id;
		return 0;
	}
	rc = row ? 0 : new_id(naming, &fresh);
	rc = rc ?: write_name(naming, &key, row ? row->id : fresh, flags);
	if (rc)
		return rc;
	if (!row) {
		row = sl_htab_add(naming->rows, &key, NULL);
		if (!row) {
			bpf_map_delete_elem(naming->set->maps[SL_MAP_NAMES], &fresh);
			return -ENOMEM;
		}
		row->id = fresh;
	}
	row->flags = flags;
	*id = row->id;
	ring_add(naming, ring_of(naming, flags), *id);
	return 0;
}

static struct sl_named named_key(const struct sl_naming *naming, const struct sl_process_key *who,
				 const __be32 addr_be[4])
{
	struct sl_named key = { .sandbox = naming->sandbox };

	memcpy(key.addr_be, addr_be, sizeof(key.addr_be));
	if (who) {
		key.tgid = who->tgid;
		key.start_ns = who->start_ns;
	}
	return key;
}

int sl_naming_put(const struct sl_naming *naming, const struct sl_process_key *who,
		  const __be32 addr_be[4], __u32 id)
{
	struct sl_named key = named_key(naming, who, addr_be);

	return bpf_map_update_elem(naming->set->maps[SL_MAP_NAMED], &key, &id, BPF_ANY) ? -errno
											: 0;
}

int sl_naming_remove(const struct sl_naming *naming, const struct sl_process_key *who,
		     const __be32 addr_be[4])
{
	struct sl_named key = named_key(naming, who, addr_be);

	if (bpf_map_delete_elem(naming->set->maps[SL_MAP_NAMED], &key) && errno != ENOENT)
		return -errno;
	return 0;
}

/* --- what is there --- */

struct found {
	__u32 id;
	struct row row;
	struct key key;
};

static int find_name(__u32 id, const struct sl_name *name, void *arg)
{
	struct found *found = sl_array_add(arg);

	if (!found)
		return -ENOMEM;
	found->id = id;
	found->row = (struct row){ id, name->flags };
	memcpy(found->key.text, name->text, strlen(name->text));
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Names that another process has given out, the oldest first. */
static int take_over(struct sl_naming *naming)
{
	struct sl_array all = SL_ARRAY(struct found);
	int rc = sl_name_each(naming->set, naming->sandbox, find_name, &all);
	const struct found *found = all.data;
	struct row *row;

	if (!rc && all.count)
		qsort(all.data, all.count, all.item, by_id);
	for (size_t i = 0; !rc && i < all.count; i++) {
		row = sl_htab_add(naming->rows, &found[i].key, NULL);
		if (!row) {
			rc = -ENOMEM;
			break;
		}
		*row = found[i].row;
		ring_add(naming, ring_of(naming, row->flags), row->id);
	}
	sl_array_free(&all);
	return rc;
}

void sl_naming_free(struct sl_naming **naming)
{
	if (!*naming)
		return;
	sl_htab_free(&(*naming)->rows);
	free((*naming)->allowed.ids);
	free((*naming)->denied.ids);
	free(*naming);
	*naming = NULL;
}

int sl_naming_new(struct sl_naming **out, struct sl_set *set, unsigned int sandbox)
{
	_cleanup_(sl_naming_free) struct sl_naming *naming = calloc(1, sizeof(*naming));
	int rc;

	if (!naming)
		return -ENOMEM;
	naming->set = set;
	naming->sandbox = sandbox;
	rc = sl_htab_new(&naming->rows, sizeof(struct key), sizeof(struct row));
	rc = rc ?: ring_new(&naming->allowed, SL_NAMES_ALLOWED_MAX);
	rc = rc ?: ring_new(&naming->denied, SL_NAMES_DENIED_MAX);
	rc = rc ?: take_over(naming);
	if (rc)
		return rc;
	*out = TAKE_PTR(naming);
	return 0;
}
