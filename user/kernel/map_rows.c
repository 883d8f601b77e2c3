// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of a map that belong to one thing. They are read in batches: a call for each row would
 * take as long as all that other sandboxes have, each time that one is detached.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "kernel/set_private.h"

/* More than a bucket of a hash holds: it gives whole buckets only. */
#define BATCH 1024

/* How often a batch may be disturbed by those who change the map. */
#define TRIES 100

struct rows {
	int fd;
	struct bpf_map_info info;
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
	token = rows->info.key_size > sizeof(__u64) ? rows->info.key_size : sizeof(__u64);
	rows->keys = malloc((size_t)rows->info.key_size * BATCH);
	rows->values = malloc((size_t)rows->info.value_size * BATCH);
	rows->in = malloc(token);
	rows->out = malloc(token);
	return rows->keys && rows->values && rows->in && rows->out ? 0 : -ENOMEM;
}

/* *count rows from where the one before ended. 1: these are the last. */
static int next_batch(struct rows *rows, bool first, __u32 *count)
{
	char *before = rows->in;

	for (int i = 0; i < TRIES; i++) {
		*count = BATCH;
		errno = 0;
		if (!bpf_map_lookup_batch(rows->fd, first ? NULL : rows->in, rows->out, rows->keys,
					  rows->values, count, NULL) ||
		    errno == ENOENT) {
			int last = errno == ENOENT;

			rows->in = rows->out;
			rows->out = before;
			return last;
		}
		if (errno != EINTR && errno != EAGAIN)
			break;
	}
	return -errno;
}

/* Adds the keys of a batch whose key or value has the id. */
static int pick(const struct rows *rows, __u32 count, bool of_value, size_t offset, __u32 id,
		struct sl_array *out)
{
	const char *of = of_value ? rows->values : rows->keys;
	size_t size = of_value ? rows->info.value_size : rows->info.key_size;
	void *slot;

	for (__u32 i = 0; i < count; i++) {
		if (memcmp(of + i * size + offset, &id, sizeof(id)) != 0)
			continue;
		slot = sl_array_add(out);
		if (!slot)
			return -ENOMEM;
		memcpy(slot, rows->keys + (size_t)i * rows->info.key_size, rows->info.key_size);
	}
	return 0;
}

int sl_map_find_rows(int fd, bool of_value, size_t offset, __u32 id, struct sl_array *out)
{
	__attribute__((cleanup(rows_free))) struct rows rows = { 0 };
	__u32 count = 0;
	int rc = rows_open(&rows, fd), last = 0;

	out->item = rows.info.key_size;
	for (bool first = true; !rc && !last; first = false) {
		last = next_batch(&rows, first, &count);
		rc = last < 0 ? last : pick(&rows, count, of_value, offset, id, out);
	}
	return rc;
}

long long sl_map_count_rows(int fd)
{
	__attribute__((cleanup(rows_free))) struct rows rows = { 0 };
	long long sum = 0;
	__u32 count = 0;
	int rc = rows_open(&rows, fd), last = 0;

	for (bool first = true; !rc && !last; first = false) {
		last = next_batch(&rows, first, &count);
		rc = last < 0 ? last : 0;
		sum += rc ? 0 : count;
	}
	return rc ? rc : sum;
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
