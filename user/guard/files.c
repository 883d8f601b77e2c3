// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "guard/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "guard/files_private.h"
#include "guard/guard_private.h"
#include "guard/trust.h"
#include "policy/bits.h"

/* How often a file is judged again because its trust has changed meanwhile. */
#define JUDGE_TRIES 8

struct known_file {
	uint8_t sha256[SL_SHA256_LEN];
	__u64 size;
	bool hashed;
	bool hashing; /* by one thread; the others wait */
};

void sl_files_free(struct sl_files **files)
{
	if (!*files)
		return;
	sl_htab_free(&(*files)->known);
	sl_htab_free(&(*files)->prepared);
	pthread_cond_destroy(&(*files)->hashed);
	pthread_mutex_destroy(&(*files)->lock);
	free(*files);
	*files = NULL;
}

int sl_files_new(struct sl_files **out, struct sl_set *set, const struct sl_compiled *compiled,
		 unsigned int sandbox, __u32 policy_id)
{
	_cleanup_(sl_files_free) struct sl_files *files = calloc(1, sizeof(*files));
	struct sl_compiled_needs needs;
	int rc;

	if (!files)
		return -ENOMEM;
	sl_compiled_needs(compiled, &needs);
	files->set = set;
	files->compiled = compiled;
	files->policy = policy_id;
	files->sandbox = sandbox;
	files->digests = needs.digests;
	files->scripts = needs.scripts;
	pthread_mutex_init(&files->lock, NULL);
	pthread_cond_init(&files->hashed, NULL);
	rc = sl_htab_new(&files->known, sizeof(struct sl_guard_file), sizeof(struct known_file));
	rc = rc ?: sl_htab_new(&files->prepared, sizeof(__u32), 0);
	if (rc)
		return rc;
	*out = TAKE_PTR(files);
	return 0;
}

/* Whether stat(2) tells another device than the super block has. */
static bool dev_is_synthetic(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

/* As the exec hook will see it (bpf/exe.h). */
static int file_key(struct sl_guard_file *key, const struct sl_files *files, int fd,
		    const struct stat *st, const char *path)
{
	struct sl_iter_file file;
	int rc;

	*key = (struct sl_guard_file){
		.ino = st->st_ino,
		.ctime_ns = (__u64)st->st_ctim.tv_sec * 1000000000 + (__u64)st->st_ctim.tv_nsec,
		.dev = (__u32)(major(st->st_dev) << 20 | minor(st->st_dev)),
		.path_hash = sl_set_path_hash(files->set, path),
		.policy = files->policy,
	};
	if (!dev_is_synthetic(fd))
		return 0;
	rc = sl_file_identity(files->set, fd, &file);
	if (rc)
		return rc;
	key->ino = file.ino;
	key->ctime_ns = file.ctime_ns;
	key->dev = file.dev;
	return 0;
}

/* With the lock held: the digest, if it is known for a file of this size. */
static bool take_known(struct sl_files *files, const struct sl_guard_file *key, __u64 size,
		       uint8_t sha256[SL_SHA256_LEN])
{
	const struct known_file *known = sl_htab_get(files->known, key);

	if (!known || !known->hashed || known->size != size)
		return false;
	memcpy(sha256, known->sha256, SL_SHA256_LEN);
	return true;
}

/* Hashed without the lock, so that one large file delays only who waits for it. */
int sl_files_digest_once(struct sl_files *files, const struct sl_guard_file *key, __u64 size,
			 int (*hash)(void *arg, uint8_t sha256[SL_SHA256_LEN]), void *arg,
			 uint8_t sha256[SL_SHA256_LEN])
{
	struct known_file *known;
	int rc;

	if (size > SL_FILE_DIGEST_MAX)
		return -EFBIG;
	pthread_mutex_lock(&files->lock);
	for (known = sl_htab_get(files->known, key); known && known->hashing;
	     known = sl_htab_get(files->known, key))
		pthread_cond_wait(&files->hashed, &files->lock);
	rc = take_known(files, key, size, sha256) ? 0 : -EINPROGRESS;
	known = rc ? sl_htab_add(files->known, key, NULL) : NULL;
	if (known)
		known->hashing = true;
	pthread_mutex_unlock(&files->lock);
	if (!rc || !known)
		return rc ? -ENOMEM : 0;
	rc = hash(arg, sha256);
	pthread_mutex_lock(&files->lock);
	known = sl_htab_get(files->known, key);
	known->hashing = false;
	known->hashed = !rc;
	known->size = size;
	if (!rc)
		memcpy(known->sha256, sha256, SL_SHA256_LEN);
	pthread_cond_broadcast(&files->hashed);
	pthread_mutex_unlock(&files->lock);
	return rc;
}

struct hash_of_fd {
	int path_fd;
	const struct stat *st;
};

static int hash_once(void *arg, uint8_t sha256[SL_SHA256_LEN])
{
	const struct hash_of_fd *file = arg;

	return sl_file_digest(file->path_fd, file->st, sha256);
}

static bool grants_nothing(const struct sl_grant *grant)
{
	static const struct sl_grant nothing;

	return !memcmp(grant, &nothing, sizeof(nothing));
}

bool sl_guard_file_concerns(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
			    const char *path)
{
	const struct sl_image image = { .path = path, .any_script = true };
	struct sl_image_bits bits;
	struct sl_grant linked;

	sl_compiled_image(compiled, &image, &bits);
	if (!grants_nothing(&bits.granted) || !grants_nothing(&bits.missed))
		return true;
	if (!sl_compiled_policy(compiled)->first_use)
		return false;
	/* Links of the policy that lead here have rows in the kernel only. */
	sl_guard_granted(set, policy_id, SL_PATHS_EXE, path, &linked);
	return !grants_nothing(&linked);
}

/* A task with mounts of its own runs other files under paths of ours: not to be trusted. */
static bool is_there(const char *path, const struct stat *st)
{
	struct stat there;

	return !stat(path, &there) && there.st_ino == st->st_ino && there.st_dev == st->st_dev;
}

int sl_guard_file_judge(struct sl_set *set, unsigned int sandbox,
			const struct sl_compiled *compiled, const char *path, const uint8_t *sha256,
			struct sl_guard_grant *out)
{
	const struct sl_image image = { .path = path, .sha256 = sha256, .any_script = true };
	struct sl_image_bits bits;
	int rc;

	sl_compiled_image(compiled, &image, &bits);
	*out = (struct sl_guard_grant){ .granted = bits.granted, .missed = bits.missed };
	if (sha256) {
		memcpy(out->found, sha256, SL_SHA256_LEN);
		out->flags |= SL_GUARD_FILE_HASHED;
	}
	if (bits.expected) {
		memcpy(out->expected, bits.expected, SL_SHA256_LEN);
		out->flags |= SL_GUARD_FILE_EXPECTED;
	}
	if (bits.pinned)
		out->flags |= SL_GUARD_FILE_PINNED;
	if (bits.pin_right)
		out->flags |= SL_GUARD_FILE_TRUSTED;
	if (bits.pinned || !sl_compiled_policy(compiled)->first_use)
		return 0;
	/* All by its path alone. */
	out->trusted = bits.granted;
	memset(&out->granted, 0, sizeof(out->granted));
	rc = sha256 ? sl_trust_first(set, sandbox, path, sha256, out->expected) : 0;
	if (rc || !sha256)
		return rc;
	out->flags |= SL_GUARD_FILE_EXPECTED;
	if (!memcmp(out->expected, sha256, SL_SHA256_LEN))
		out->flags |= SL_GUARD_FILE_TRUSTED;
	return 0;
}

/*
 * Judges a file and tells the guard. What is trusted may change between the two, and who
 * changes it judges the rows that are there (sl_trust_accept()): so it is looked at again.
 */
int sl_files_judge(struct sl_files *files, const struct sl_guard_file *key, const char *path,
		   const uint8_t *sha256)
{
	uint8_t trusted[SL_SHA256_LEN];
	struct sl_guard_grant row;
	int rc;

	for (int i = 0; i < JUDGE_TRIES; i++) {
		rc = sl_guard_file_judge(files->set, files->sandbox, files->compiled, path, sha256,
					 &row);
		rc = rc ?: sl_guard_put(files->set, SL_MAP_GUARD_FILES, key, &row, BPF_ANY);
		if (rc || !sl_compiled_policy(files->compiled)->first_use ||
		    row.flags & SL_GUARD_FILE_PINNED)
			return rc;
		rc = sl_trust_read(files->set, files->sandbox, path, trusted);
		if (rc || !memcmp(trusted, row.expected, SL_SHA256_LEN))
			return rc;
	}
	bpf_map_delete_elem(sl_set_map_fd(files->set, SL_MAP_GUARD_FILES), key);
	return -EAGAIN;
}

int sl_files_prepare(struct sl_files *files, int path_fd)
{
	char link[32], path[PATH_MAX];
	uint8_t sha256[SL_SHA256_LEN];
	struct sl_guard_file key;
	struct stat st;
	struct hash_of_fd file = { path_fd, &st };
	ssize_t n;
	int rc;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || fstat(path_fd, &st))
		return -errno;
	path[n] = '\0';
	if (!S_ISREG(st.st_mode) || path[0] != '/' ||
	    !sl_guard_file_concerns(files->set, files->policy, files->compiled, path))
		return 0;
	if (sl_compiled_policy(files->compiled)->first_use && !is_there(path, &st))
		return 0;
	rc = file_key(&key, files, path_fd, &st, path);
	if (rc)
		return rc;
	if (!files->digests)
		return sl_files_judge(files, &key, path, NULL);
	rc = sl_files_digest_once(files, &key, (__u64)st.st_size, hash_once, &file, sha256);
	return rc ? rc : sl_files_judge(files, &key, path, sha256);
}

int sl_files_script(struct sl_files *files, const char *name)
{
	struct sl_grant grant;
	int rc = -ENOSPC;

	if (!files->scripts)
		return 0;
	sl_compiled_script(files->compiled, name, &grant);
	pthread_mutex_lock(&files->lock);
	if (files->script_rows < SL_FILES_SCRIPTS_MAX)
		rc = sl_guard_grant(files->set, files->policy, SL_PATHS_SCRIPT, name, &grant);
	if (rc == 1)
		files->script_rows++;
	pthread_mutex_unlock(&files->lock);
	return rc < 0 ? rc : 0;
}
