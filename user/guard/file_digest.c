// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "guard/file_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "identity/hash_file.h"

/* Ticks last 1 to 10 ms. */
#define TICK_TRIES 50

static int hash_fd(int fd, uint64_t size, uint8_t sha256[SL_SHA256_LEN])
{
	_cleanup_(sl_hasher_free) struct sl_hasher *hasher = NULL;
	int rc = sl_hasher_new(&hasher, NULL);

	return rc ? rc : sl_hasher_bytes(hasher, fd, size, sha256);
}

/*
 * A read lease is refused while somebody has the file open for writing (generic_add_lease(),
 * fs/locks.c); who asks for that while it is held is told to us by a signal that is ignored
 * by default.
 */
static int check_writers(int fd)
{
	if (fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETLEASE, F_RDLCK))
		return errno == EAGAIN ? -ETXTBSY : 0;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return 0;
}

static void await_next_tick(const struct timespec *ctime)
{
	struct timespec now;

	for (int i = 0; i < TICK_TRIES; i++) {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		if (now.tv_sec != ctime->tv_sec || now.tv_nsec > ctime->tv_nsec)
			return;
		poll(NULL, 0, 1);
	}
}

static bool is_still(int fd, const struct stat *st)
{
	struct stat now;

	return !fstat(fd, &now) && now.st_ino == st->st_ino && now.st_dev == st->st_dev &&
	       now.st_size == st->st_size && now.st_ctim.tv_sec == st->st_ctim.tv_sec &&
	       now.st_ctim.tv_nsec == st->st_ctim.tv_nsec;
}

int sl_file_digest(int path_fd, const struct stat *st, uint8_t sha256[SL_SHA256_LEN])
{
	uint8_t digest[SL_SHA256_LEN];
	_cleanup_fd_ int fd = -1;
	char path[32];
	int rc;

	if ((uint64_t)st->st_size > SL_FILE_DIGEST_MAX)
		return -EFBIG;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	await_next_tick(&st->st_ctim);
	rc = check_writers(fd);
	rc = rc ?: hash_fd(fd, (uint64_t)st->st_size, digest);
	if (!rc && !is_still(fd, st))
		rc = -ESTALE;
	if (!rc)
		memcpy(sha256, digest, sizeof(digest));
	return rc;
}
