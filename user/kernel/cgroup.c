// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "kernel/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/clock.h"

/*
 * A line of mountinfo (proc(5)): "ID PARENT MAJ:MIN ROOT POINT OPTIONS [OPTIONAL…] - TYPE …".
 * The mount point of a cgroup2 line, with its octal escapes undone; NULL for another line.
 */
static char *mountinfo_cgroup2(char *line)
{
	char *sep = strstr(line, " - cgroup2 "), *point = line, *in, *out;

	if (!sep)
		return NULL;
	for (int i = 0; i < 4; i++) {
		point = strchr(point, ' ');
		if (!point)
			return NULL;
		point++;
	}
	point[strcspn(point, " ")] = '\0';
	for (in = out = point; *in; out++) {
		if (in[0] == '\\' && in[1] && in[2] && in[3]) {
			*out = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
	return point;
}

const char *sl_cgroup_mount_step(bool v1)
{
	return v1 ? "mkdir -p /sys/fs/cgroup/unified && "
		    "mount -t cgroup2 none /sys/fs/cgroup/unified"
		  : "mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup";
}

int sl_cgroup_mount(char *out, size_t size, struct sl_err *err)
{
	_cleanup_file_ FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	bool v1 = false;
	size_t cap = 0;
	char *point;

	if (!file)
		return sl_err_sys(err, errno, "can't read /proc/self/mountinfo");
	while (getline(&line, &cap, file) > 0) {
		v1 |= strstr(line, " - cgroup ") != NULL;
		point = mountinfo_cgroup2(line);
		if (!point)
			continue;
		if (strlen(point) >= size)
			return sl_err_set(err, ENAMETOOLONG, "cgroup2 mount point too long");
		strcpy(out, point);
		return 0;
	}
	sl_err_set(err, ENODEV, "cgroup2 is not mounted here");
	return sl_err_hint(err, "mount it: %s", sl_cgroup_mount_step(v1));
}

int sl_cgroup_of(char *out, size_t size, pid_t pid, struct sl_err *err)
{
	_cleanup_file_ FILE *file = NULL;
	_cleanup_free_ char *line = NULL;
	char mount[PATH_MAX], path[64] = "/proc/self/cgroup";
	size_t cap = 0;
	int rc;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	rc = sl_cgroup_mount(mount, sizeof(mount), err);
	if (rc)
		return rc;
	if (!file)
		return sl_err_sys(err, errno, "can't read %s", path);
	while (getline(&line, &cap, file) > 0) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		/* "/.." appears when the cgroup is outside the cgroup namespace's root. */
		if (strstr(line, "/.."))
			return sl_err_set(err, EXDEV,
					  "the cgroup in %s is outside of our cgroup namespace",
					  path);
		rc = snprintf(out, size, "%s%s", mount, strcmp(line + 3, "/") ? line + 3 : "");
		return rc < (int)size ? 0 : sl_err_set(err, ENAMETOOLONG, "cgroup path too long");
	}
	return sl_err_set(err, ENODEV, "%s has no cgroup of cgroup2", path);
}

int sl_cgroup_self(char *out, size_t size, struct sl_err *err)
{
	return sl_cgroup_of(out, size, 0, err);
}

int sl_cgroup_open(int *fd, const char *path, struct sl_err *err)
{
	_cleanup_fd_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (dir < 0)
		return sl_err_sys(err, errno, "cgroup '%s'", path);
	if (fstatfs(dir, &fs))
		return sl_err_sys(err, errno, "cgroup '%s'", path);
	if (fs.f_type != CGROUP2_SUPER_MAGIC) {
		sl_err_set(err, EXDEV, "'%s' is not a cgroup2 directory", path);
		return sl_err_hint(err, "name a directory below the cgroup2 mount; "
					"'sluice feature probe' shows where that is");
	}
	*fd = TAKE_FD(dir);
	return 0;
}

int sl_cgroup_resolve(char *out, size_t size, const char *name, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	char mount[PATH_MAX], path[2 * PATH_MAX], real[PATH_MAX];
	int rc;

	if (!name[0]) {
		sl_err_set(err, EINVAL, "an empty name names no cgroup");
		return sl_err_hint(err, "name a cgroup's directory");
	}
	if (name[0] == '/') {
		snprintf(path, sizeof(path), "%s", name);
	} else {
		rc = sl_cgroup_mount(mount, sizeof(mount), err);
		if (rc)
			return rc;
		snprintf(path, sizeof(path), "%s/%s", mount, name);
	}
	rc = sl_cgroup_open(&fd, path, err);
	if (rc)
		return rc;
	if (!realpath(path, real))
		return sl_err_sys(err, errno, "cgroup '%s'", path);
	if (strlen(real) >= size)
		return sl_err_set(err, ENAMETOOLONG, "cgroup path too long");
	strcpy(out, real);
	return 0;
}

/* FILEID_KERNFS (include/linux/exportfs.h): the id itself. */
#define HANDLE_KERNFS 0xfe

union handle {
	struct file_handle handle;
	char space[sizeof(struct file_handle) + 64];
};

static int get_handle(union handle *h, int fd)
{
	int mount_id;

	h->handle.handle_bytes = sizeof(uint64_t);
	if (name_to_handle_at(fd, "", &h->handle, &mount_id, AT_EMPTY_PATH))
		return -errno;
	return h->handle.handle_bytes == sizeof(uint64_t) ? 0 : -EPROTO;
}

int sl_cgroup_id(unsigned long long *id, int fd)
{
	union handle h;
	uint64_t value;
	int ret = get_handle(&h, fd);

	if (ret)
		return ret;
	memcpy(&value, h.handle.f_handle, sizeof(value));
	*id = value;
	return 0;
}

/* The same directory, by our own mount. */
static int path_of_handle(char *out, size_t size, union handle *h, struct sl_err *err)
{
	_cleanup_fd_ int top = -1, here = -1;
	char mount[PATH_MAX], proc[64];
	ssize_t n;
	int ret = sl_cgroup_mount(mount, sizeof(mount), err);

	ret = ret ?: sl_cgroup_open(&top, mount, err);
	if (ret)
		return ret;
	here = open_by_handle_at(top, &h->handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (here < 0)
		return sl_err_sys(err, errno, "the cgroup is not to be found below '%s'", mount);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", here);
	n = readlink(proc, out, size);
	if (n < 0)
		return sl_err_sys(err, errno, "can't tell the path of the cgroup");
	if ((size_t)n == size)
		return sl_err_set(err, ENAMETOOLONG, "cgroup path too long");
	out[n] = '\0';
	return 0;
}

int sl_cgroup_path(char *out, size_t size, int fd, struct sl_err *err)
{
	struct statfs fs;
	union handle h;
	int ret;

	if (fstatfs(fd, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
		return sl_err_set(err, EXDEV, "the descriptor is no cgroup2 directory");
	ret = get_handle(&h, fd);
	if (ret)
		return sl_err_sys(err, -ret, "can't tell the id of the cgroup");
	return path_of_handle(out, size, &h, err);
}

int sl_cgroup_path_of(char *out, size_t size, unsigned long long id, struct sl_err *err)
{
	uint64_t value = id;
	union handle h;

	h.handle.handle_bytes = sizeof(value);
	h.handle.handle_type = HANDLE_KERNFS;
	memcpy(h.handle.f_handle, &value, sizeof(value));
	return path_of_handle(out, size, &h, err);
}

const char *sl_cgroup_relative(const char *path, const char *mount)
{
	size_t len = strlen(mount);

	if (strncmp(path, mount, len) != 0)
		return path;
	return path[len] ? path + len : "/";
}

int sl_cgroup_create(const char *path, struct sl_err *err)
{
	if (mkdir(path, 0755))
		return sl_err_sys(err, errno, "can't make cgroup '%s'", path);
	return 0;
}

/* Writes a string to a cgroup's control file. */
static int cgroup_write(const char *path, const char *file, const char *text)
{
	_cleanup_fd_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = -1;

	if (dir < 0)
		return -errno;
	fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int sl_cgroup_enter(const char *path, pid_t pid, struct sl_err *err)
{
	char text[16];
	int rc;

	snprintf(text, sizeof(text), "%d", pid);
	rc = cgroup_write(path, "cgroup.procs", text);
	return rc ? sl_err_sys(err, -rc, "can't move process %d into '%s'", pid, path) : 0;
}

int sl_cgroup_populated(const char *path, bool *populated)
{
	_cleanup_file_ FILE *file = NULL;
	char name[PATH_MAX + 16];
	char key[64];
	int value;

	snprintf(name, sizeof(name), "%s/cgroup.events", path);
	file = fopen(name, "re");
	if (!file)
		return -errno;
	while (fscanf(file, "%63s %d", key, &value) == 2) {
		if (!strcmp(key, "populated")) {
			*populated = value;
			return 0;
		}
	}
	return -EPROTO;
}

int sl_cgroup_kill(const char *path)
{
	return cgroup_write(path, "cgroup.kill", "1");
}

/* Removes the directories below `fd`, deepest first; a cgroup's files go with it. */
static void cgroup_remove_children(int fd, int depth)
{
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;
	int copy, child;

	if (depth > 64)
		return;
	copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (child < 0)
			continue;
		cgroup_remove_children(child, depth + 1);
		close(child);
		unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
}

int sl_cgroup_destroy(const char *path, int timeout_ms)
{
	long long deadline = sl_monotonic_ms() + timeout_ms;
	int fd, rc;

	for (;;) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return errno == ENOENT || errno == ENODEV ? 0 : -errno;
		sl_cgroup_kill(path);
		cgroup_remove_children(fd, 0);
		close(fd);
		if (!rmdir(path) || errno == ENOENT)
			return 0;
		rc = -errno;
		if (rc != -EBUSY || sl_monotonic_ms() >= deadline)
			return rc;
		/* Killed processes leave as they are scheduled; no event covers rmdir. */
		poll(NULL, 0, 1);
	}
}
