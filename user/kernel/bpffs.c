// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "kernel/bpffs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "kernel/set_private.h"

/* Deepest nesting of a set's directories: <dir>/sandbox/<id>/<pin>. */
#define BPFFS_DEPTH 4

/* How often a directory that others remove meanwhile is made again. */
#define MKDIR_TRIES 1000

int sl_bpffs_mount(struct sl_err *err)
{
	struct statfs fs;

	if (!statfs(SL_BPFFS, &fs) && fs.f_type == BPF_FS_MAGIC)
		return 0;
	if (mount("bpf", SL_BPFFS, "bpf", 0, "mode=0700")) {
		sl_err_sys(err, errno, "bpffs is not mounted at " SL_BPFFS " and can't be");
		return sl_err_hint(err, "run as root outside of a restricted container, or mount "
					"it: mount -t bpf bpf " SL_BPFFS);
	}
	return 0;
}

/* Makes the directories of `path` below the mount point, one by one. 0 or -errno. */
static int make_dirs(const char *path)
{
	char part[PATH_MAX];
	char *slash = part + strlen(SL_BPFFS);

	strcpy(part, path);
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(part, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0700) && errno != EEXIST ? -errno : 0;
}

int sl_bpffs_mkdirs(const char *path, struct sl_err *err)
{
	int rc = -ENOENT;

	if (strncmp(path, SL_BPFFS "/", strlen(SL_BPFFS) + 1) != 0 || strlen(path) >= PATH_MAX) {
		sl_err_set(err, EINVAL, "'%s' is not below " SL_BPFFS, path);
		return sl_err_hint(err, "a set is a directory of pins: name one below " SL_BPFFS);
	}
	/* Who removes the last set removes the directory of all sets too (invariant 1). */
	for (int i = 0; i < MKDIR_TRIES && rc == -ENOENT; i++)
		rc = make_dirs(path);
	return rc ? sl_err_sys(err, -rc, "can't make '%s'", path) : 0;
}

bool sl_bpffs_is(int fd, const char *path)
{
	struct stat open_one, named;

	return !fstat(fd, &open_one) && !stat(path, &named) && open_one.st_ino == named.st_ino &&
	       open_one.st_dev == named.st_dev;
}

static int remove_at(int parent, const char *name, int depth)
{
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;
	int fd, rc = 0;

	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!rc && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (entry->d_type == DT_DIR)
			rc = depth ? remove_at(fd, entry->d_name, depth - 1) : -ELOOP;
		else if (unlinkat(fd, entry->d_name, 0) && errno != ENOENT)
			rc = -errno;
	}
	if (!rc && unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT)
		rc = -errno;
	return rc;
}

int sl_bpffs_remove(const char *path, struct sl_err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : sl_err_sys(err, errno, "can't open '%s'", path);
	rc = remove_at(fd, SL_SET_SANDBOXES, BPFFS_DEPTH);
	if (!rc)
		rc = remove_at(fd, SL_SET_LINKS, BPFFS_DEPTH);
	if (!rc)
		rc = remove_at(AT_FDCWD, path, BPFFS_DEPTH);
	if (!rc && !strncmp(path, SL_SET_ROOT "/", strlen(SL_SET_ROOT "/")))
		(void)rmdir(SL_SET_ROOT); /* refused while there is another set */
	return rc ? sl_err_sys(err, -rc, "can't remove '%s'", path) : 0;
}
