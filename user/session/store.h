/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What has to survive the keeper and a reboot: one file for each session, KEY.json in a
 * directory of the agent's own (0700). The file has the token, so nobody else may read it.
 *
 *	sl_store_open(&store, dir, &err);
 *	sl_store_load(store, &handlers, ctx, &err);	once, before anything is saved
 *	sl_store_save(store, entry, &err);		SL_EFFECT_SAVE, news of conditions
 *	sl_store_remove(store, key, &err);		the session is forgotten
 *	sl_store_free(&store);
 *
 * Rules
 * 1. A file is old or new, never half: KEY.tmp is written, synced and renamed, then the
 *    directory is synced. Whatever fails, the file of before stays.
 * 2. Reading is strict: one JSON object, all members and no others, within their bounds, with
 *    the digest of its text, and the key that is its name. What is not so is damaged: it is
 *    reported and set aside as KEY.bad, and none of it is used. What can't be read just now
 *    (no descriptor, no memory, an I/O error) is not damaged: loading fails.
 * 3. The epoch may be older than the record's was, since a recovery does not save: the client
 *    raises its own each time, and of the connections of before none is left.
 * 4. Where the disk is full, what was reserved for a session (KEY.room, as large as KEY.json is
 *    made) is written in place, padded with newlines, synced, and takes KEY.json's name, while that
 *    becomes the room for the next time. So what is attached can be frozen and ended, and that is
 *    remembered, on any disk that has RENAME_EXCHANGE and gives room away beforehand.
 * 5. It waits for the disk. Not locked; other files in the directory are left alone.
 */
#ifndef SLUICE_USER_SESSION_STORE_H
#define SLUICE_USER_SESSION_STORE_H

#include <sys/types.h>

#include "base/err.h"
#include "session/condition.h"
#include "session/record.h"

#define SL_STORE_ROOM (16U << 10) /* bytes that are reserved: most sessions are a quarter of it */
#define SL_STORE_FILE_MAX (128U << 10) /* bytes; what is written is smaller */

struct sl_store_entry {
	struct sl_record_copy session;
	struct sl_conditions conditions;
};

struct sl_store;

/* System calls, for tests that make them fail. */
struct sl_store_ops {
	ssize_t (*write)(int fd, const void *data, size_t size);
	int (*fsync)(int fd);
	int (*renameat)(int old_dir, const char *old_name, int new_dir, const char *new_name);
};

/* Makes the directory, but not its parents. -EPERM: others may use it. `ops` NULL: the real. */
int sl_store_open(struct sl_store **out, const char *dir, const struct sl_store_ops *ops,
		  struct sl_err *err);
void sl_store_free(struct sl_store **store);

/*
 * Rule 4, before the session is made; sl_store_remove() gives it back. -ENOSPC with err. For any
 * thread.
 */
int sl_store_reserve(struct sl_store *store, const uint8_t key[SL_SESSION_KEY], struct sl_err *err);

/* -EINVAL: the session is not whole. */
int sl_store_save(struct sl_store *store, const struct sl_store_entry *entry, struct sl_err *err);

/* 0 when there is none, too. */
int sl_store_remove(struct sl_store *store, const uint8_t key[SL_SESSION_KEY], struct sl_err *err);

struct sl_store_handlers {
	void (*entry)(void *ctx, const struct sl_store_entry *entry);
	/* A file that is set aside (or could not be: err says so), by its name. */
	void (*damaged)(void *ctx, const char *name, const struct sl_err *err);
};

int sl_store_load(struct sl_store *store, const struct sl_store_handlers *handlers, void *ctx,
		  struct sl_err *err);

/* The text of a file; the caller frees it. -ENOMEM, -EIO (libcrypto). */
int sl_store_print(char **text, size_t *len, const struct sl_store_entry *entry);

/* -EBADMSG with what is wrong in `err`, -ENOMEM; *out is untouched then. */
int sl_store_parse(struct sl_store_entry *out, const char *text, size_t len, struct sl_err *err);

#endif
