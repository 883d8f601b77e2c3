/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SLUICE_USER_GUARD_FILES_PRIVATE_H
#define SLUICE_USER_GUARD_FILES_PRIVATE_H

#include <pthread.h>

#include "base/htab.h"
#include "guard/files.h"

struct sl_files {
	struct sl_set *set;
	const struct sl_compiled *compiled;
	__u32 policy;
	unsigned int sandbox;
	bool digests, scripts;
	pthread_mutex_t lock; /* over what follows */
	unsigned int script_rows;
	pthread_cond_t hashed;    /* a thread has ended hashing */
	struct sl_htab *known;    /* struct sl_guard_file -> struct known_file */
	struct sl_htab *prepared; /* ids of lineages whose rows are whole */
};

/* The digest by identity: `hash` makes it unless it is known, one thread at a time. */
int sl_files_digest_once(struct sl_files *files, const struct sl_guard_file *key, __u64 size,
			 int (*hash)(void *arg, uint8_t sha256[SL_SHA256_LEN]), void *arg,
			 uint8_t sha256[SL_SHA256_LEN]);

/*
 * Judges a file by its digest (NULL: not known) and tells the guard. -EAGAIN: what is trusted
 * goes on changing; else as sl_guard_file_judge().
 */
int sl_files_judge(struct sl_files *files, const struct sl_guard_file *key, const char *path,
		   const uint8_t *sha256);

#endif
