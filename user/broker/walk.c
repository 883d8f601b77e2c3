// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

#define LINKS_MAX 40    /* MAXSYMLINKS of include/linux/namei.h */
#define PROC_ROOT_INO 1 /* include/linux/proc_ns.h */
#define TRIES_MAX 16
#define TEXT_MAX (2 * PATH_MAX)

/* The state of a walk by hand: where it is and what is left of the path. */
struct steps {
	const struct sl_walk *walk;
	int at; /* owned */
	unsigned int links;
	char left[TEXT_MAX];
};

static int open_in_kernel(int dir, const char *path, bool follow, unsigned long resolve, int *out)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW),
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};
	int tries = 0;
	long fd;

	/* EAGAIN: something was renamed or mounted meanwhile, anywhere. */
	do
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && ++tries < TRIES_MAX);
	if (fd < 0)
		return -errno;
	*out = (int)fd;
	return 0;
}

static bool same_place(int a, int b)
{
	const unsigned int mask = STATX_INO | STATX_MNT_ID;
	struct statx sa, sb;

	return !statx(a, "", AT_EMPTY_PATH, mask, &sa) && !statx(b, "", AT_EMPTY_PATH, mask, &sb) &&
	       sa.stx_ino == sb.stx_ino && sa.stx_mnt_id == sb.stx_mnt_id &&
	       sa.stx_dev_major == sb.stx_dev_major && sa.stx_dev_minor == sb.stx_dev_minor;
}

static bool in_proc(int fd, bool *is_root)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return false;
	*is_root = !fstat(fd, &st) && st.st_ino == PROC_ROOT_INO;
	return true;
}

/* Takes over `fd`. */
static void move_to(struct steps *s, int fd)
{
	close(s->at);
	s->at = fd;
}

static int restart_at_root(struct steps *s)
{
	int fd = fcntl(s->walk->root, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	move_to(s, fd);
	return 0;
}

/* Puts the text of the link `fd` before what is left. */
static int expand(struct steps *s, int fd)
{
	char text[TEXT_MAX], rest[TEXT_MAX];
	ssize_t n;

	if (++s->links > LINKS_MAX)
		return -ELOOP;
	n = readlinkat(fd, "", text, PATH_MAX);
	if (n < 0)
		return -errno;
	if (!n)
		return -ENOENT;
	text[n] = '\0';
	memcpy(rest, s->left, sizeof(rest));
	if (snprintf(s->left, sizeof(s->left), "%s/%s", text, rest) >= (int)sizeof(s->left))
		return -ENAMETOOLONG;
	return text[0] == '/' ? restart_at_root(s) : 0;
}

/* /proc/self and /proc/thread-self are links whose target depends on who reads them. */
static int open_self(pid_t tid, const char *name, int *out)
{
	bool self = !strcmp(name, "self");
	struct sl_task task;
	char path[64];
	int ret;

	if (!self && strcmp(name, "thread-self") != 0)
		return 0;
	ret = sl_task_find(&task, tid);
	if (ret)
		return ret;
	if (self)
		snprintf(path, sizeof(path), "/proc/%d", task.tgid);
	else
		snprintf(path, sizeof(path), "/proc/%d/task/%d", task.tgid, task.tid);
	*out = open(path, O_PATH | O_CLOEXEC);
	return *out < 0 ? (errno == ENOENT ? -ESRCH : -errno) : 1;
}

/* One component that is a name. `last`: nothing follows it. */
static int step(struct steps *s, const char *name, bool last, bool follow)
{
	_cleanup_fd_ int fd = -1;
	bool proc, proc_root = false;
	struct stat st;
	int ret;

	proc = in_proc(s->at, &proc_root);
	ret = proc_root ? open_self(s->walk->tid, name, &fd) : 0;
	if (ret < 0)
		return ret;
	if (!ret) {
		fd = openat(s->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st))
			return -errno;
		if (S_ISLNK(st.st_mode) && last && !follow)
			return -ELOOP;
		if (S_ISLNK(st.st_mode) && (!proc || proc_root))
			return expand(s, fd);
		if (S_ISLNK(st.st_mode)) {
			/* A magic link (exe, cwd, fd/N): it has no text to follow. */
			if (++s->links > LINKS_MAX)
				return -ELOOP;
			sl_cleanup_fd(&fd);
			fd = openat(s->at, name, O_PATH | O_CLOEXEC);
			if (fd < 0)
				return -errno;
		}
	}
	move_to(s, TAKE_FD(fd));
	return 0;
}

static int go_up(struct steps *s)
{
	int fd;

	if (same_place(s->at, s->walk->root))
		return 0;
	fd = openat(s->at, "..", O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	move_to(s, fd);
	return 0;
}

/* Takes the next component off s->left; false at the end. *last: nothing but it was left. */
static bool next_name(struct steps *s, char name[NAME_MAX + 2], bool *last)
{
	char *p = s->left + strspn(s->left, "/");
	size_t n = strcspn(p, "/");

	if (!n)
		return false;
	snprintf(name, NAME_MAX + 2, "%.*s", (int)(n > NAME_MAX ? NAME_MAX + 1 : n), p);
	/* A trailing slash demands a directory, so a link before it is followed. */
	*last = !p[n];
	memmove(s->left, p + n, strlen(p + n) + 1);
	return true;
}

static int walk_steps(struct steps *s, bool follow)
{
	char name[NAME_MAX + 2];
	bool last;
	int ret = 0;

	while (!ret && next_name(s, name, &last)) {
		if (!strcmp(name, "."))
			continue;
		ret = !strcmp(name, "..") ? go_up(s) : step(s, name, last, follow);
	}
	return ret;
}

static int walk_by_hand(const struct sl_walk *walk, const char *path, bool follow, int *out)
{
	struct steps s = { .walk = walk };
	int ret;

	if (snprintf(s.left, sizeof(s.left), "%s", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	s.at = fcntl(path[0] == '/' ? walk->root : walk->start, F_DUPFD_CLOEXEC, 0);
	if (s.at < 0)
		return -errno;
	ret = walk_steps(&s, follow);
	if (ret)
		close(s.at);
	else
		*out = s.at;
	return ret;
}

/* Paths on which /proc/self of this process may have been asked for. */
static bool may_meet_proc(const char *path)
{
	return strstr(path, "proc/") || strstr(path, "dev/") || strstr(path, "self/");
}

int sl_walk_open(const struct sl_walk *walk, const char *path, bool follow, int *out)
{
	struct stat st;
	int ret, fd = -1;

	if (path[0] == '/')
		ret = open_in_kernel(walk->root, path, follow, RESOLVE_IN_ROOT, &fd);
	else
		ret = open_in_kernel(walk->start, path, follow, RESOLVE_BENEATH, &fd);
	/*
	 * ELOOP and EXDEV: magic links, or out of the start directory. ENOENT: /proc/self is
	 * empty for a reader of another pid namespace.
	 */
	if (ret == -ELOOP || ret == -EXDEV || ret == -EAGAIN ||
	    (ret == -ENOENT && may_meet_proc(path)))
		ret = walk_by_hand(walk, path, follow, &fd);
	if (ret)
		return ret;
	if (!follow && !fstat(fd, &st) && S_ISLNK(st.st_mode)) {
		close(fd);
		return -ELOOP;
	}
	*out = fd;
	return 0;
}
