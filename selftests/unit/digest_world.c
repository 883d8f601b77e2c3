/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "unit/digest_world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

static char dir[64];

void digest_world_make(void)
{
	strcpy(dir, "/tmp/sl-digest-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

void digest_world_remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

const char *in_dir(const char *name)
{
	static __thread char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

void put_file(const char *path, const char *content)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
}

struct sl_exe *record_of_stat(const struct stat *st, const char *path, unsigned int id)
{
	struct sl_exe *exe = calloc(1, sizeof(*exe));

	cr_assert_not_null(exe);
	exe->id = id;
	exe->size = (unsigned long long)st->st_size;
	exe->key.ino = st->st_ino;
	exe->key.dev = major(st->st_dev) << 20 | minor(st->st_dev);
	exe->key.ctime_ns = (unsigned long long)st->st_ctim.tv_sec * 1000000000ULL +
			    (unsigned long long)st->st_ctim.tv_nsec;
	exe->path_len = (unsigned short)strlen(path);
	strcpy(exe->path, path);
	return exe;
}

struct sl_exe *record(const char *path, unsigned int id)
{
	struct stat st;

	cr_assert_eq(lstat(path, &st), 0, "%s", path);
	return record_of_stat(&st, path, id);
}

const char *digest_text(const struct sl_digest *digest)
{
	static __thread char hex[2 * SL_SHA256_LEN + 1];

	if (digest->error)
		return sl_digest_error_name(digest->error);
	sl_digest_hex(digest, hex);
	return hex;
}

/* Older kernels stamp by the clock tick: again until the stamp has moved. */
void touch_file(const char *path)
{
	struct stat before, after;

	cr_assert_eq(stat(path, &before), 0);
	do {
		cr_assert_eq(chmod(path, 0755), 0);
		cr_assert_eq(stat(path, &after), 0);
	} while (before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
		 before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
}
