// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Walks over maps, in batches. Key by key (BPF_MAP_GET_NEXT_KEY) a walk starts again when the
 * row where it stands is deleted: what it has met it meets twice, and it need not end while
 * others delete. A batch goes on at a bucket's number, and one call gives many rows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "kernel/set_private.h"

/*
 * Rows of a batch: of so many bytes, and always more than a bucket of a hash holds (one in
 * the mean), since only whole buckets are given.
 */
#define BATCH_BYTES (1u << 18)
#define BATCH_MIN 64
#define BATCH_MAX 1024

/* How often a batch may be disturbed by those who change the map. */
#define TRIES 100

struct rows {
	int fd;
	struct bpf_map_info info;
	__u32 batch;
	char *keys, *values;
	/* Where the next batch begins: a bucket's number, in a trie a key. */
	char *in, *out;
};

static void rows_free(struct rows *rows)
{
	free(rows->keys);
	free(rows->values);
	free(rows->in);
	free(rows->out);
}

static int rows_open(struct rows *rows, int fd)
{
	__u32 len = sizeof(rows->info);
	size_t token;

	rows->fd = fd;
	if (bpf_obj_get_info_by_fd(fd, &rows->info, &len))
		return -errno;
	rows->batch = BATCH_BYTES / (rows->info.key_size + rows->info.value_size);
	if (rows->batch < BATCH_MIN)
		rows->batch = BATCH_MIN;
	if (rows->batch > BATCH_MAX)
		rows->batch = BATCH_MAX;
	token = rows->info.key_size > sizeof(__u64) ? rows->info.key_size : sizeof(__u64);
	rows->keys = malloc((size_t)rows->info.key_size * rows->batch);
	rows->values = malloc((size_t)rows->info.value_size * rows->batch);
	rows->in = malloc(token);
	rows->out = malloc(token);
	return rows->keys && rows->values && rows->in && rows->out ? 0 : -ENOMEM;
}

/* *count rows from where the one before ended. 1: these are the last. */
static int next_batch(struct rows *rows, bool first, __u32 *count)
{
	char *before = rows->in;

	for (int i = 0; i < TRIES; i++) {
		*count = rows->batch;
		errno = 0;
		if (!bpf_map_lookup_batch(rows->fd, first ? NULL : rows->in, rows->out, rows->keys,
					  rows->values, count, NULL) ||
		    errno == ENOENT) {
			int last = errno == ENOENT;

			rows->in = rows->out;
			rows->out = before;
			return last;
		}
		if (errno != EINTR && errno != EAGAIN && errno != EBUSY)
			break;
	}
	return -errno;
}

int sl_map_each(int fd, sl_row_fn fn, void *arg)
{
	__attribute__((cleanup(rows_free))) struct rows rows = { 0 };
	__u32 count = 0;
	int rc = rows_open(&rows, fd), last = 0;

	for (bool first = true; !rc && !last; first = false) {
		last = next_batch(&rows, first, &count);
		rc = last < 0 ? last : 0;
		for (__u32 i = 0; !rc && i < count; i++)
			rc = fn(rows.keys + (size_t)i * rows.info.key_size,
				rows.values + (size_t)i * rows.info.value_size, arg);
	}
	return rc;
}

/* --- rows that belong to one thing --- */

struct find {
	bool of_value;
	size_t offset;
	__u32 id;
	struct sl_array *keys;
};

static int find_row(const void *key, void *value, void *arg)
{
	const struct find *find = arg;
	const char *of = find->of_value ? value : key;
	void *slot;

	if (memcmp(of + find->offset, &find->id, sizeof(find->id)) != 0)
		return 0;
	slot = sl_array_add(find->keys);
	if (!slot)
		return -ENOMEM;
	memcpy(slot, key, find->keys->item);
	return 0;
}

int sl_map_find_rows(int fd, bool of_value, size_t offset, __u32 id, struct sl_array *out)
{
	struct find find = { of_value, offset, id, out };
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	out->item = info.key_size;
	return sl_map_each(fd, find_row, &find);
}

static int count_row(const void *key, void *value, void *arg)
{
	(void)key;
	(void)value;
	++*(long long *)arg;
	return 0;
}

long long sl_map_count_rows(int fd)
{
	long long count = 0;
	int rc = sl_map_each(fd, count_row, &count);

	return rc ? rc : count;
}

int sl_map_delete_rows(int fd, bool of_value, size_t offset, __u32 id)
{
	_cleanup_array_ struct sl_array found = { 0 };
	int rc = sl_map_find_rows(fd, of_value, offset, id, &found);

	/* Not before: a trie goes on from the last key, or from its start if that has gone. */
	for (size_t i = 0; !rc && i < found.count; i++)
		bpf_map_delete_elem(fd, sl_array_at(&found, i));
	return rc;
}
