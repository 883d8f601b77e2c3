/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Images that were executed already, for calls that are held in place of exec. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "guard/files_private.h"
#include "guard/guard_private.h"
#include "identity/digest.h"

/* Lineages are swept and never come back: beyond this many it is begun anew. */
#define PREPARED_MAX 16384

struct look {
	struct sl_files *files;
	pid_t pid;
	bool failed; /* a digest could not be had this time */
};

/*
 * Whether the file was changed well before it was first executed. Then its ctime tells every
 * later change: all execs of this record, and who reads the file now, had the same bytes.
 * Writers are kept out while an image runs, but not between two runs.
 */
static bool is_settled(const struct sl_exe *exe)
{
	struct timespec now;
	__u64 now_ns, seen_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
	seen_ns = now_ns - (sl_boottime_ns() - exe->seen_ns);
	return exe->key.ctime_ns + SL_FILES_SETTLED_NS < seen_ns;
}

struct hash_of_exe {
	const struct sl_exe *exe;
	pid_t pid;
};

static int hash_exe(void *arg, uint8_t sha256[SL_SHA256_LEN])
{
	const struct hash_of_exe *of = arg;
	struct sl_digest digest;
	int rc = sl_digest_now(of->exe, of->pid, &digest);

	if (!rc && digest.error)
		rc = -ESTALE;
	if (!rc)
		memcpy(sha256, digest.sha256, SL_SHA256_LEN);
	return rc;
}

static int look_at(const struct sl_exe *exe, uint8_t sha256[SL_SHA256_LEN], void *arg)
{
	struct look *look = arg;
	struct hash_of_exe of = { exe, look->pid };
	struct sl_guard_file key;
	int rc;

	if (!is_settled(exe))
		return -ESTALE;
	key = sl_file_key(look->files->policy, exe);
	rc = sl_files_digest_once(look->files, &key, exe->size, hash_exe, &of, sha256);
	look->failed |= rc != 0;
	/* Decisions show the two digests; a row that has no room costs no more than that. */
	if (!rc)
		(void)sl_files_judge(look->files, &key, exe->path, sha256);
	return rc;
}

static bool is_prepared(struct sl_files *files, __u32 lineage)
{
	bool is;

	pthread_mutex_lock(&files->lock);
	is = sl_htab_get(files->prepared, &lineage);
	pthread_mutex_unlock(&files->lock);
	return is;
}

/* That there is no memory for it costs another look, no more. */
static void set_prepared(struct sl_files *files, __u32 lineage)
{
	struct sl_htab *fresh = NULL;

	pthread_mutex_lock(&files->lock);
	if (sl_htab_count(files->prepared) >= PREPARED_MAX &&
	    !sl_htab_new(&fresh, sizeof(lineage), 0)) {
		sl_htab_free(&files->prepared);
		files->prepared = fresh;
	}
	(void)sl_htab_add(files->prepared, &lineage, NULL);
	pthread_mutex_unlock(&files->lock);
}

int sl_files_lineage(struct sl_files *files, __u32 lineage, pid_t pid)
{
	struct look look = { .files = files, .pid = pid };
	int rc;

	if (is_prepared(files, lineage))
		return 0;
	rc = sl_guard_lineage(files->set, files->policy, files->compiled, lineage, look_at, &look);
	if (!rc && look.failed)
		return -ESTALE;
	if (!rc)
		set_prepared(files, lineage);
	return rc;
}
