// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "broker/parse.h"
#include "broker/walk.h"

void sl_images_free(struct sl_images *images)
{
	while (images->count)
		close(images->fds[--images->count]);
}

static int open_proc(pid_t tid, const char *what)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, what);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	/* A descriptor that is not open is the caller's mistake, a task that is gone is not. */
	snprintf(path, sizeof(path), "/proc/%d", tid);
	return errno != ENOENT ? -errno : access(path, F_OK) ? -ESRCH : -EBADF;
}

/* The interpreter that a file names; -ENOENT when it is no script. */
static int interpreter_of(int path_fd, char out[SL_SHEBANG_SIZE])
{
	char name[64], head[SL_SHEBANG_SIZE];
	_cleanup_fd_ int fd = -1;
	struct stat st;
	ssize_t n;

	if (fstat(path_fd, &st))
		return -errno;
	/* Before it is opened: a device or pipe may act on that. */
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0)
		return -errno;
	return sl_parse_shebang(head, n, out);
}

/* Adds the interpreters behind images->fds[0]. */
static int follow_scripts(struct sl_images *images, const struct sl_walk *walk)
{
	char name[SL_SHEBANG_SIZE];

	for (;;) {
		int ret = interpreter_of(images->fds[images->count - 1], name), fd;

		if (ret == -ENOENT)
			return 0;
		if (ret)
			return ret;
		if (images->count == SL_IMAGES_MAX)
			return -ELOOP;
		ret = sl_walk_open(walk, name, true, &fd);
		if (ret)
			return ret;
		images->fds[images->count++] = fd;
	}
}

int sl_images_resolve(struct sl_images *out, pid_t tid, int dirfd, const char *path, int flags)
{
	_cleanup_(sl_images_free) struct sl_images images = { .count = 0 };
	_cleanup_fd_ int root = -1, cwd = -1, start = -1;
	struct sl_walk walk = { .tid = tid }, first;
	char name[32];
	int ret = 0, fd;

	root = open_proc(tid, "root");
	if (root < 0)
		return root;
	cwd = open_proc(tid, "cwd");
	if (cwd < 0)
		return cwd;
	walk.root = root;
	walk.start = cwd;
	first = walk;
	if (dirfd != AT_FDCWD && path[0] != '/') {
		snprintf(name, sizeof(name), "fd/%d", dirfd);
		start = dirfd < 0 ? -EBADF : open_proc(tid, name);
		if (start < 0)
			return start;
		first.start = start;
	}
	if (!path[0]) {
		/* fexecve(3): the descriptor itself. */
		if (!(flags & AT_EMPTY_PATH))
			return -ENOENT;
		fd = fcntl(first.start, F_DUPFD_CLOEXEC, 0);
		ret = fd < 0 ? -errno : 0;
	} else {
		ret = sl_walk_open(&first, path, !(flags & AT_SYMLINK_NOFOLLOW), &fd);
	}
	if (ret)
		return ret;
	images.fds[images.count++] = fd;
	ret = follow_scripts(&images, &walk);
	if (ret)
		return ret;
	*out = images;
	images.count = 0;
	return 0;
}
