/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "guard/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "guard/files_private.h"
#include "guard/guard_private.h"
#include "policy/bits.h"

#define READ_BYTES (128u << 10)

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
		 __u32 policy_id)
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

/* As the exec hook will see it (bpf/exe.h); st_dev of overlayfs and btrfs never does. */
static void file_key(struct sl_guard_file *key, const struct sl_files *files, const struct stat *st,
		     const char *path)
{
	*key = (struct sl_guard_file){
		.ino = st->st_ino,
		.ctime_ns = (__u64)st->st_ctim.tv_sec * 1000000000 + (__u64)st->st_ctim.tv_nsec,
		.dev = (__u32)(major(st->st_dev) << 20 | minor(st->st_dev)),
		.path_hash = sl_set_path_hash(files->set, path),
		.policy = files->policy,
	};
}

static int hash_bytes(EVP_MD_CTX *ctx, int fd, __u64 size)
{
	_cleanup_free_ char *buf = malloc(READ_BYTES);
	__u64 left = size;
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	while (left) {
		n = read(fd, buf, left < READ_BYTES ? left : READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ESTALE;
		if (!EVP_DigestUpdate(ctx, buf, (size_t)n))
			return -EIO;
		left -= (__u64)n;
	}
	return 0;
}

static int hash_fd(int path_fd, __u64 size, uint8_t sha256[SL_SHA256_LEN])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	_cleanup_fd_ int fd = -1;
	char path[32];
	int rc = ctx ? 0 : -ENOMEM;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	if (!rc)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (!rc && fd < 0)
		rc = -errno;
	if (!rc && !EVP_DigestInit_ex(ctx, EVP_sha256(), NULL))
		rc = -EIO;
	rc = rc ?: hash_bytes(ctx, fd, size);
	if (!rc && !EVP_DigestFinal_ex(ctx, sha256, NULL))
		rc = -EIO;
	EVP_MD_CTX_free(ctx);
	return rc;
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

	if (size > SL_FILES_HASH_MAX)
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
	__u64 size;
};

static int hash_once(void *arg, uint8_t sha256[SL_SHA256_LEN])
{
	const struct hash_of_fd *file = arg;

	return hash_fd(file->path_fd, file->size, sha256);
}

static bool grants_nothing(const struct sl_image_bits *bits)
{
	static const struct sl_grant nothing;

	return !memcmp(&bits->granted, &nothing, sizeof(nothing)) &&
	       !memcmp(&bits->missed, &nothing, sizeof(nothing));
}

/* Whether the file still is what `before` says: nobody wrote to it while it was hashed. */
static bool unchanged(int path_fd, const struct stat *before)
{
	struct stat now;

	return !fstat(path_fd, &now) && now.st_size == before->st_size &&
	       now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
	       now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

int sl_files_prepare(struct sl_files *files, int path_fd)
{
	char link[32], path[PATH_MAX];
	struct sl_image image = { .path = path, .any_script = true };
	uint8_t sha256[SL_SHA256_LEN];
	struct hash_of_fd file;
	struct sl_guard_grant row;
	struct sl_image_bits bits;
	struct sl_guard_file key;
	struct stat st;
	ssize_t n;
	int rc;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || fstat(path_fd, &st))
		return -errno;
	path[n] = '\0';
	if (!S_ISREG(st.st_mode) || path[0] != '/')
		return 0;
	file_key(&key, files, &st, path);
	sl_compiled_image(files->compiled, &image, &bits);
	if (grants_nothing(&bits))
		return 0;
	if (files->digests) {
		file = (struct hash_of_fd){ path_fd, (__u64)st.st_size };
		rc = sl_files_digest_once(files, &key, file.size, hash_once, &file, sha256);
		if (rc)
			return rc;
		if (!unchanged(path_fd, &st))
			return -ESTALE;
		image.sha256 = sha256;
		sl_compiled_image(files->compiled, &image, &bits);
	}
	row = (struct sl_guard_grant){ .granted = bits.granted, .missed = bits.missed };
	return sl_guard_put(files->set, SL_MAP_GUARD_FILES, &key, &row);
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

void sl_files_key(const struct sl_files *files, const struct sl_exe *exe, struct sl_guard_file *key)
{
	*key = (struct sl_guard_file){
		.ino = exe->key.ino,
		.ctime_ns = exe->key.ctime_ns,
		.path_hash = exe->key.path_hash,
		.dev = exe->key.dev,
		.policy = files->policy,
	};
}

int sl_files_digest(struct sl_files *files, const struct sl_exe *exe, uint8_t sha256[SL_SHA256_LEN])
{
	struct sl_guard_file key;
	bool found;

	sl_files_key(files, exe, &key);
	pthread_mutex_lock(&files->lock);
	found = take_known(files, &key, exe->size, sha256);
	pthread_mutex_unlock(&files->lock);
	return found ? 0 : -ENOENT;
}
