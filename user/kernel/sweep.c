// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "kernel/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/set_private.h"
#include "kernel/sweep_private.h"

/* References are gathered this often before a row counts as unused. */
#define SCANS 2

#define DUE_SHARE 8

/* How long readers that are awake get for what they have in hand: they look every 5 ms. */
#define READER_ROUNDS 10
#define READER_MS 5

/* What a row of either kind has in common, so that one code removes both. */
struct kind {
	enum sl_map rows;
	enum sl_map index;
	size_t size;
	size_t round;
};

static const struct kind exe_kind = { SL_MAP_EXES, SL_MAP_EXE_INDEX, sizeof(struct sl_exe),
				      offsetof(struct sl_exe, round) };
static const struct kind lineage_kind = { SL_MAP_LINEAGES, SL_MAP_LINEAGE_INDEX,
					  sizeof(struct sl_lineage),
					  offsetof(struct sl_lineage, round) };
_Static_assert(!offsetof(struct sl_exe, key) && !offsetof(struct sl_lineage, key),
	       "a row begins with the key of its index");

struct sweep {
	struct sl_set *set;
	unsigned int round;
	struct sl_array exes; /* ids that nothing refers to */
	struct sl_array lineages;
	struct sl_exe row; /* scratch: either kind fits */
	struct sl_lineage lineage;
};

static void cleanup_sweep(struct sweep **sweep)
{
	if (!*sweep)
		return;
	sl_array_free(&(*sweep)->exes);
	sl_array_free(&(*sweep)->lineages);
	free(*sweep);
}

/* Begins a round: what is given to a process from here on is of this round. */
static int begin_round(struct sweep *s)
{
	struct sl_ids *ids = mmap(NULL, sizeof(*ids), PROT_READ | PROT_WRITE, MAP_SHARED,
				  s->set->maps[SL_MAP_IDS], 0);

	if (ids == MAP_FAILED)
		return -errno;
	s->round = __atomic_add_fetch(&ids->round, 1, __ATOMIC_SEQ_CST);
	munmap(ids, sizeof(*ids));
	return sl_grace_period();
}

/* --- what is in use --- */

/* Marks a lineage, all it came from, and their executables. */
static int mark_chain(struct sl_sweep_marks *marks, const struct sl_htab *rows, __u32 id)
{
	const struct sl_lineage *row;
	unsigned char *done;
	int rc = 0;

	while (!rc && id) {
		done = sl_htab_add(marks->lineages, &id, NULL);
		if (!done)
			return -ENOMEM;
		if (*done)
			return 0;
		*done = 1;
		row = sl_htab_get(rows, &id);
		if (!row)
			return 0;
		rc = sl_sweep_mark(row->key.parent, row->key.exe, row->key.script, marks);
		id = row->key.parent;
	}
	return rc;
}

static int read_lineage(const void *id, void *value, void *arg)
{
	struct sl_lineage *copy = sl_htab_add(arg, id, NULL);

	if (!copy)
		return -ENOMEM;
	*copy = *(const struct sl_lineage *)value;
	return 0;
}

static int mark_lineages(struct sweep *s, struct sl_sweep_marks *marks)
{
	_cleanup_(sl_htab_free) struct sl_htab *rows = NULL;
	const struct sl_lineage *row;
	const void *id;
	void *value;
	size_t at = 0;
	int rc = sl_htab_new(&rows, sizeof(__u32), sizeof(struct sl_lineage));

	rc = rc ?: sl_map_each(s->set->maps[SL_MAP_LINEAGES], read_lineage, rows);
	while (!rc && sl_htab_next(rows, &at, &id, &value)) {
		row = value;
		if (row->round == s->round || sl_htab_get(marks->lineages, id))
			rc = mark_chain(marks, rows, *(const __u32 *)id);
	}
	return rc;
}

/* --- what is not --- */

static unsigned int row_round(const void *row, const struct kind *kind)
{
	unsigned int round;

	memcpy(&round, (const char *)row + kind->round, sizeof(round));
	return round;
}

struct collect {
	unsigned int round;
	const struct kind *kind;
	const struct sl_htab *marked;
	struct sl_array *out;
};

static int collect_row(const void *id, void *row, void *arg)
{
	const struct collect *collect = arg;
	__u32 *slot;

	if (sl_htab_get(collect->marked, id) || row_round(row, collect->kind) == collect->round)
		return 0;
	slot = sl_array_add(collect->out);
	if (!slot)
		return -ENOMEM;
	*slot = *(const __u32 *)id;
	return 0;
}

static int collect(const struct sweep *s, const struct kind *kind, const struct sl_htab *marked,
		   struct sl_array *out)
{
	struct collect collect = { s->round, kind, marked, out };

	return sl_map_each(s->set->maps[kind->rows], collect_row, &collect);
}

/* Leaves those that are not marked. */
static void keep_unmarked(struct sl_array *ids, const struct sl_htab *marked)
{
	__u32 *id = ids->data;
	size_t n = 0;

	for (size_t i = 0; i < ids->count; i++)
		if (!sl_htab_get(marked, &id[i]))
			id[n++] = id[i];
	ids->count = n;
}

static int scan(struct sweep *s, const struct sl_sweep_roots *roots, bool first)
{
	struct sl_sweep_marks marks;
	int rc = sl_sweep_marks_new(&marks);

	if (!rc && roots)
		rc = roots->each(roots->ctx, sl_sweep_mark, &marks);
	rc = rc ?: sl_sweep_gather(s->set, &marks);
	rc = rc ?: mark_lineages(s, &marks);
	if (!rc && first) {
		rc = collect(s, &lineage_kind, marks.lineages, &s->lineages);
		rc = rc ?: collect(s, &exe_kind, marks.exes, &s->exes);
	} else if (!rc) {
		keep_unmarked(&s->lineages, marks.lineages);
		keep_unmarked(&s->exes, marks.exes);
	}
	sl_sweep_marks_free(&marks);
	return rc;
}

/* --- removing --- */

static void unindex(struct sweep *s, const struct kind *kind, const struct sl_array *ids)
{
	int rows = s->set->maps[kind->rows], index = s->set->maps[kind->index];
	const __u32 *id = ids->data;
	__u32 indexed;

	for (size_t i = 0; i < ids->count; i++)
		if (!bpf_map_lookup_elem(rows, &id[i], &s->row) &&
		    !bpf_map_lookup_elem(index, &s->row, &indexed) && indexed == id[i])
			bpf_map_delete_elem(index, &s->row);
}

/* Returns how many. A row that was found in the index before it went from it stays. */
static unsigned int delete_rows(struct sweep *s, const struct kind *kind,
				const struct sl_array *ids)
{
	int rows = s->set->maps[kind->rows];
	const __u32 *id = ids->data;
	unsigned int n = 0;

	for (size_t i = 0; i < ids->count; i++) {
		if (bpf_map_lookup_elem(rows, &id[i], &s->row))
			continue;
		/* In the meantime a row of that key may have been made: then two have it. */
		if (row_round(&s->row, kind) == s->round)
			bpf_map_update_elem(s->set->maps[kind->index], &s->row, &id[i],
					    BPF_NOEXIST);
		else if (!bpf_map_delete_elem(rows, &id[i]))
			n++;
	}
	return n;
}

static int delete_grant(const void *policy, void *row, void *arg)
{
	struct sweep *s = arg;
	const __u32 *id = s->lineages.data;
	struct sl_guard_lineage_key key;

	(void)row;
	for (size_t i = 0; i < s->lineages.count; i++) {
		key = (struct sl_guard_lineage_key){ *(const __u32 *)policy, id[i] };
		if (sl_lineage_by_id(s->set, id[i], &s->lineage))
			bpf_map_delete_elem(s->set->maps[SL_MAP_GUARD_LINEAGES], &key);
	}
	return 0;
}

/* What policies grant the lineages that are gone. */
static void delete_grants(struct sweep *s)
{
	(void)sl_map_each(s->set->maps[SL_MAP_GUARD_POLICIES], delete_grant, s);
}

/* Events that were made before refer to rows by number: who reads them looks these up. */
static int wait_for_readers(const struct sweep *s, const struct sl_ring *mine)
{
	__u64 now = sl_boottime_ns();
	int rc = sl_rings_behind(s->set, mine, now);

	for (int i = 0; rc == 1 && i < READER_ROUNDS; i++) {
		poll(NULL, 0, READER_MS);
		rc = sl_rings_behind(s->set, mine, now);
	}
	return rc == 1 ? -EAGAIN : rc;
}

static int remove_unused(struct sweep *s, const struct sl_ring *mine, struct sl_swept *out)
{
	int rc;

	unindex(s, &lineage_kind, &s->lineages);
	unindex(s, &exe_kind, &s->exes);
	/* Rows that a failure leaves without an index are the next sweep's. */
	rc = sl_grace_period();
	rc = rc ?: wait_for_readers(s, mine);
	if (rc)
		return rc;
	out->lineages = delete_rows(s, &lineage_kind, &s->lineages);
	out->exes = delete_rows(s, &exe_kind, &s->exes);
	delete_grants(s);
	return 0;
}

/* One sweeper a set. The directory of iterators stands for it. */
static int sweep_lock(const struct sl_set *set, int *fd)
{
	char path[PATH_MAX];
	int rc = sl_set_path(path, set->dir, SL_SET_ITERS, NULL);

	if (rc)
		return rc;
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (!flock(*fd, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

int sl_sweep(struct sl_set *set, const struct sl_sweep_roots *roots, struct sl_swept *out)
{
	_cleanup_(cleanup_sweep) struct sweep *s = calloc(1, sizeof(*s));
	_cleanup_fd_ int lock = -1;
	struct sl_swept swept = { 0 };
	int rc;

	if (!s)
		return -ENOMEM;
	s->set = set;
	s->exes = (struct sl_array)SL_ARRAY(__u32);
	s->lineages = (struct sl_array)SL_ARRAY(__u32);
	rc = sweep_lock(set, &lock);
	rc = rc ?: begin_round(s);
	for (int i = 0; !rc && i < SCANS; i++)
		rc = scan(s, roots, i == 0);
	if (!rc && (s->exes.count || s->lineages.count))
		rc = remove_unused(s, roots ? roots->ring : NULL, &swept);
	if (!rc)
		*out = swept;
	return rc;
}

bool sl_sweep_due(const struct sl_set *set, struct sl_sweep_clock *clock)
{
	struct sl_ids ids;
	__u32 zero = 0;

	if (bpf_map_lookup_elem(set->maps[SL_MAP_IDS], &zero, &ids))
		return false;
	clock->now_exe = ids.exe;
	clock->now_lineage = ids.lineage;
	return ids.exe - clock->exe > set->max_exes / DUE_SHARE ||
	       ids.lineage - clock->lineage > set->max_lineages / DUE_SHARE;
}

void sl_sweep_done(struct sl_sweep_clock *clock)
{
	clock->exe = clock->now_exe;
	clock->lineage = clock->now_lineage;
}
