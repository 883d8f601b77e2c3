/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel/shared.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "kernel/bpffs.h"
#include "kernel/feature.h"

/* Loading takes a fraction of a second; a lock held for longer is somebody's bug. */
#define LOCK_TRIES 3000
#define LOCK_PAUSE_MS 10

static int lock_fd(int fd, struct sl_err *err)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return sl_err_sys(err, errno, "can't lock the set's directory");
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	sl_err_set(err, EBUSY, "another process has been changing this set for half a minute");
	return sl_err_hint(err, "look for a sluice command that hangs, and end it");
}

/* -EAGAIN when it was removed as soon as it was made. */
static int open_parent(int *out, const char *parent, bool create, struct sl_err *err)
{
	int rc = create ? sl_bpffs_mount(err) : 0;
	int fd;

	if (!rc && create && strcmp(parent, SL_BPFFS) != 0)
		rc = sl_bpffs_mkdirs(parent, err);
	if (rc)
		return rc;
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && create)
		return -EAGAIN;
	if (fd < 0)
		return sl_err_sys(err, errno, "can't open '%s'", parent);
	*out = fd;
	return 0;
}

/* Locks the directory that holds the set; it is made when `create`. */
static int lock_parent(int *out, const char *dir, bool create, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	char parent[PATH_MAX];
	char *slash;
	int rc;

	if (strlen(dir) >= sizeof(parent))
		return sl_err_sys(err, ENAMETOOLONG, "'%s'", dir);
	strcpy(parent, dir);
	slash = strrchr(parent, '/');
	if (strncmp(dir, SL_BPFFS "/", strlen(SL_BPFFS "/")) != 0 || !slash[1]) {
		sl_err_set(err, EINVAL, "'%s' names no directory below " SL_BPFFS, dir);
		return sl_err_hint(err, "the default is " SL_SET_DEFAULT);
	}
	*slash = '\0';
	for (int i = 0; i < LOCK_TRIES; i++) {
		sl_cleanup_fd(&fd);
		rc = open_parent(&fd, parent, create, err);
		rc = rc ? rc : lock_fd(fd, err);
		/* Otherwise the last set of all went meanwhile, and the directory with it. */
		if (!rc && sl_bpffs_is(fd, parent)) {
			*out = TAKE_FD(fd);
			return 0;
		}
		if (rc && rc != -EAGAIN)
			return rc;
	}
	return sl_err_set(err, EBUSY, "'%s' is removed as often as it is made", parent);
}

int sl_shared_check(const struct sl_set *set, const struct sl_set_options *options,
		    struct sl_err *err)
{
	const struct {
		enum sl_map map;
		unsigned int wanted;
		const char *option;
	} sizes[] = {
		{ SL_MAP_PROCS, options->max_procs, "max-procs" },
		{ SL_MAP_EXES, options->max_exes, "max-exes" },
		{ SL_MAP_LINEAGES, options->max_lineages, "max-lineages" },
		{ SL_MAP_SOCKS_OVER, options->max_socks, "max-socks" },
		{ SL_MAP_SOCKS, options->max_closed, "max-closed" },
		{ SL_MAP_RING, options->ring_bytes, "ring-bytes" },
		/* One row more, for what belongs to no sandbox. */
		{ SL_MAP_COUNTERS, options->max_sandboxes ? options->max_sandboxes + 1 : 0,
		  "max-sandboxes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct bpf_map_info info = {};
		__u32 len = sizeof(info);

		if (bpf_obj_get_info_by_fd(sl_set_map_fd(set, sizes[i].map), &info, &len))
			return sl_err_sys(err, errno, "can't read the sizes of the set");
		if (info.max_entries >= sizes[i].wanted)
			continue;
		sl_err_set(err, EEXIST, "the set at '%s' is in use with --%s %u, %u was asked for",
			   sl_set_dir(set), sizes[i].option, info.max_entries, sizes[i].wanted);
		return sl_err_hint(err, "detach all its sandboxes first: sizes are chosen when the "
					"first is attached");
	}
	return 0;
}

/*
 * Opens the set or makes it. Under the lock, a directory without all its maps is what a
 * command that was killed left behind, unless its maker still holds it.
 */
static int open_or_create(struct sl_set **out, const char *dir,
			  const struct sl_set_options *options, struct sl_err *err)
{
	_cleanup_fd_ int left = -1;
	int rc = sl_set_open(out, dir, err);

	if (!rc) {
		rc = options ? sl_shared_check(*out, options, err) : 0;
		if (rc)
			sl_set_free(out);
		return rc;
	}
	if (rc != -ENOENT)
		return rc;
	left = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (left >= 0) {
		if (flock(left, LOCK_EX | LOCK_NB))
			return sl_err_set(err, EBUSY, "the set at '%s' is being made right now",
					  dir);
		rc = sl_set_destroy(dir, err);
		if (rc)
			return rc;
	}
	if (err)
		*err = (struct sl_err){ 0 };
	return sl_set_create(out, dir, options, err);
}

static int stop(const struct sl_sandbox *sandbox, void *arg)
{
	(void)sandbox;
	(void)arg;
	return 1;
}

/* An agent keeps its set, whoever attaches or detaches: see sl_shared_mark(). */
static bool is_kept(const char *dir)
{
	_cleanup_fd_ int fd = -1;
	char mark[PATH_MAX];

	if (sl_shared_mark(mark, dir))
		return false;
	fd = open(mark, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

/* Removes the set when no sandbox is left in it. */
static int destroy_if_empty(struct sl_set *set, const char *dir, struct sl_err *err)
{
	int rc = sl_sandbox_each(set, stop, NULL);

	if (rc < 0)
		return sl_err_sys(err, -rc, "can't read the sandboxes of '%s'", dir);
	return rc || is_kept(dir) ? 0 : sl_set_destroy(dir, err);
}

int sl_shared_mark(char out[PATH_MAX], const char *dir)
{
	return snprintf(out, PATH_MAX, "%s-agent", dir) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int sl_shared_make(const char *dir, const struct sl_set_options *options, struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	_cleanup_fd_ int lock = -1;
	int rc = lock_parent(&lock, dir, true, err);

	return rc ? rc : open_or_create(&set, dir, options, err);
}

int sl_shared_drop(const char *dir, struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	_cleanup_fd_ int lock = -1;
	int rc = sl_shared_lock(&set, &lock, dir, err);

	return rc ? rc : destroy_if_empty(set, dir, err);
}

int sl_shared_attach(const char *dir, const char *path, const char *name,
		     const struct sl_set_options *options, unsigned int *id, struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	_cleanup_fd_ int lock = -1;
	int rc = sl_feature_require(err);

	rc = rc ? rc : lock_parent(&lock, dir, true, err);
	rc = rc ? rc : open_or_create(&set, dir, options, err);
	if (rc)
		return rc;
	rc = sl_sandbox_attach(set, path, name, id, err);
	if (rc)
		(void)destroy_if_empty(set, dir, NULL);
	return rc;
}

int sl_shared_lock(struct sl_set **out, int *lock, const char *dir, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	int rc = lock_parent(&fd, dir, false, err);

	rc = rc ? rc : sl_set_open(out, dir, err);
	if (!rc)
		*lock = TAKE_FD(fd);
	return rc;
}

int sl_shared_detach(const char *dir, unsigned int id,
		     int (*forget)(struct sl_set *set, unsigned int id), struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	_cleanup_fd_ int lock = -1;
	int rc = sl_shared_lock(&set, &lock, dir, err);

	rc = rc ? rc : sl_sandbox_detach(set, id, err);
	if (!rc && forget && forget(set, id))
		rc = sl_err_set(err, EIO, "detached, but rows of its policy are left");
	return rc ? rc : destroy_if_empty(set, dir, err);
}
