/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "identity/exe_file.h"

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

#define NSEC_PER_SEC 1000000000LL

/* The kernel's own device encoding (MKDEV, include/linux/kdev_t.h), not makedev(3)'s. */
#define KERNEL_MINOR_BITS 20

enum sl_digest_error sl_exe_ref_init(struct sl_exe_ref *ref, const struct sl_exe *exe, bool *nomem)
{
	/* The record is the kernel's, but a short map value must not become an overrun. */
	size_t len =
		strnlen(exe->path, exe->path_len < SL_PATH_MAX ? exe->path_len : SL_PATH_MAX - 1);

	*ref = (struct sl_exe_ref){ .key = exe->key, .size = exe->size };
	*nomem = false;
	if (exe->key.flags & SL_EXE_SCRIPT)
		return SL_DIGEST_NO_FILE;
	if (exe->size > SL_DIGEST_FILE_MAX)
		return SL_DIGEST_TOO_LARGE;
	/* A deleted file's path names another file at best, a detached mount's nothing. */
	if (exe->key.flags & (SL_EXE_MEMFD | SL_EXE_DELETED | SL_EXE_DETACHED | SL_EXE_TRUNCATED))
		return SL_DIGEST_NONE;
	if (exe->path[0] != '/' || !len)
		return SL_DIGEST_NONE;
	/* Not strndup(): a hostile record's path need not be terminated. */
	ref->path = malloc(len + 1);
	if (!ref->path) {
		*nomem = true;
		return SL_DIGEST_UNREADABLE;
	}
	memcpy(ref->path, exe->path, len);
	ref->path[len] = '\0';
	if (exe->root_off < len && ref->path[exe->root_off] == '/')
		ref->root_off = exe->root_off;
	return SL_DIGEST_NONE;
}

void sl_exe_ref_clear(struct sl_exe_ref *ref)
{
	free(ref->path);
	ref->path = NULL;
}

static bool dev_is_synthetic(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	return fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC;
}

/*
 * `flags` for statx(2): AT_STATX_DONT_SYNC where a network server must not be waited for.
 * *same_inode says whether at least the inode number is the record's.
 */
static enum sl_digest_error verify(const struct sl_exe_ref *ref, int fd, int flags,
				   bool *same_inode)
{
	const unsigned int want = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_CTIME;
	struct statx st;
	long long ctime_ns;

	*same_inode = false;
	if (statx(fd, "", AT_EMPTY_PATH | flags, want, &st))
		return SL_DIGEST_UNREADABLE;
	if ((st.stx_mask & want) != want)
		return SL_DIGEST_UNREADABLE;
	if (!S_ISREG(st.stx_mode))
		return SL_DIGEST_NOT_REGULAR;
	*same_inode = st.stx_ino == ref->key.ino;
	ctime_ns = st.stx_ctime.tv_sec * NSEC_PER_SEC + st.stx_ctime.tv_nsec;
	if (!*same_inode || st.stx_size != ref->size ||
	    (unsigned long long)ctime_ns != ref->key.ctime_ns)
		return SL_DIGEST_MISMATCH;
	/* Last, as statfs may ask a server: reached only by what equals the record otherwise. */
	if (((st.stx_dev_major << KERNEL_MINOR_BITS) | st.stx_dev_minor) != ref->key.dev &&
	    !dev_is_synthetic(fd))
		return SL_DIGEST_MISMATCH;
	return SL_DIGEST_NONE;
}

enum sl_digest_error sl_exe_verify(const struct sl_exe_ref *ref, int fd)
{
	bool same_inode;

	return verify(ref, fd, AT_STATX_SYNC_AS_STAT, &same_inode);
}

static enum sl_digest_error error_of_open(int err)
{
	switch (err) {
	case EACCES:
	case EPERM:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EIO:
		return SL_DIGEST_UNREADABLE;
	default:
		return SL_DIGEST_GONE;
	}
}

/*
 * A recorded path is a walk over dentries, so no component is a symbolic link; one that
 * is there now was put there later, and is not followed.
 */
static int open_path(int dir_fd, const char *path, bool cached)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT |
			   (cached ? RESOLVE_CACHED : 0),
	};

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* A magic link: jumps to the inode, no path walk, nothing that could block. */
static int open_proc(int pid, const char *what, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return open(path, O_PATH | O_CLOEXEC | flags);
}

static enum sl_digest_error pin_below(const struct sl_exe_ref *ref, int root_fd, const char *path,
				      bool cached, int *fd)
{
	_cleanup_fd_ int pin = open_path(root_fd, path, cached);
	enum sl_digest_error error;
	bool same_inode;

	if (pin < 0)
		return error_of_open(errno);
	error = verify(ref, pin, cached ? AT_STATX_DONT_SYNC : AT_STATX_SYNC_AS_STAT, &same_inode);
	if (!error)
		*fd = TAKE_FD(pin);
	return error;
}

static enum sl_digest_error pin_exe(const struct sl_exe_ref *ref, int pid, int *fd)
{
	_cleanup_fd_ int pin = open_proc(pid, "exe", 0);
	enum sl_digest_error error;
	bool same_inode;

	if (pin < 0)
		return error_of_open(errno);
	error = verify(ref, pin, AT_STATX_DONT_SYNC, &same_inode);
	if (!error) {
		*fd = TAKE_FD(pin);
		return SL_DIGEST_NONE;
	}
	/* Another image by now, or another process: says nothing about the file asked for. */
	if (error == SL_DIGEST_MISMATCH && !same_inode)
		return SL_DIGEST_GONE;
	return error;
}

/* Of several sources that failed, the one that came closest to the file explains most. */
static enum sl_digest_error closer(enum sl_digest_error a, enum sl_digest_error b)
{
	static const int rank[SL_DIGEST_ERROR_MAX] = {
		[SL_DIGEST_GONE] = 1,
		[SL_DIGEST_UNREADABLE] = 2,
		[SL_DIGEST_NOT_REGULAR] = 3,
		[SL_DIGEST_MISMATCH] = 4,
	};

	return rank[b] > rank[a] ? b : a;
}

enum sl_digest_error sl_exe_pin(const struct sl_exe_ref *ref, int pid, bool cached, int *fd)
{
	enum sl_digest_error why = SL_DIGEST_GONE, error;

	if (pid > 0) {
		error = pin_exe(ref, pid, fd);
		if (!error)
			return SL_DIGEST_NONE;
		why = closer(why, error);
	}
	if (ref->path && pid > 0) {
		_cleanup_fd_ int root = open_proc(pid, "root", O_DIRECTORY);

		if (root >= 0) {
			error = pin_below(ref, root, ref->path + ref->root_off, cached, fd);
			if (!error)
				return SL_DIGEST_NONE;
			why = closer(why, error);
		}
	}
	if (ref->path) {
		_cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		error = root < 0 ? error_of_open(errno)
				 : pin_below(ref, root, ref->path, cached, fd);
		if (!error)
			return SL_DIGEST_NONE;
		why = closer(why, error);
	}
	if (why == SL_DIGEST_GONE && (ref->key.flags & SL_EXE_MEMFD))
		return SL_DIGEST_MEMFD;
	return why;
}

enum sl_digest_error sl_exe_open_pinned(int pin_fd, int *fd)
{
	char path[32];
	int opened;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", pin_fd);
	opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (opened < 0)
		return SL_DIGEST_UNREADABLE;
	*fd = opened;
	return SL_DIGEST_NONE;
}
