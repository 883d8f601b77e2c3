// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An existing set: opening it from its pins, closing, destroying. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "kernel/bpffs.h"
#include "kernel/set_private.h"

static void set_close(struct sl_set *set)
{
	if (!set)
		return;
	sl_set_slots_unmap(set);
	for (int i = 0; i < SL_MAP_MAX; i++)
		if (set->maps[i] >= 0)
			close(set->maps[i]);
	if (set->lock_fd >= 0)
		close(set->lock_fd);
	free(set);
}

void sl_set_free(struct sl_set **set)
{
	if (!set)
		return;
	set_close(*set);
	*set = NULL;
}

static int no_set(const char *dir, int code, struct sl_err *err)
{
	if (code != ENOENT) {
		sl_err_sys(err, code, "can't open the set at '%s'", dir);
		if (code == EACCES || code == EPERM)
			sl_err_hint(err, geteuid() ? "run as root (sudo): sets are for root only"
						   : "not even root may in a sandbox, or in a "
						     "container without CAP_BPF: ask outside");
		return -code;
	}
	sl_err_set(err, ENOENT, "nothing is attached: there is no set at '%s'", dir);
	/* Not its value: there may be no err. */
	sl_err_hint(err, "'sluice sandbox attach CGROUP' makes one, 'sluice run -- CMD' one of its "
			 "own");
	return -ENOENT;
}

static int open_maps(struct sl_set *set, struct sl_err *err)
{
	char path[PATH_MAX];
	int rc;

	for (int i = 0; i < SL_MAP_MAX; i++) {
		rc = sl_set_path(path, set->dir, SL_SET_MAPS, sl_map_name(i));
		if (rc)
			return sl_err_sys(err, -rc, "'%s'", set->dir);
		set->maps[i] = bpf_obj_get(path);
		if (set->maps[i] < 0)
			return no_set(set->dir, errno, err);
	}
	return 0;
}

static int map_entries(int fd, unsigned int *entries)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	*entries = info.max_entries;
	return 0;
}

/* A directory elsewhere is a mistyped option, not a set that lacks its maps. */
static int check_dir(const char *dir, struct sl_err *err)
{
	struct statfs fs;

	if (strlen(dir) >= sizeof(((struct sl_set *)NULL)->dir))
		return sl_err_sys(err, ENAMETOOLONG, "'%s'", dir);
	if (*dir && (statfs(dir, &fs) || fs.f_type == BPF_FS_MAGIC))
		return 0;
	sl_err_set(err, EINVAL, "'%s' is no directory of a BPF file system", dir);
	return sl_err_hint(err, "sets are pinned below " SL_SET_ROOT);
}

int sl_set_open(struct sl_set **out, const char *dir, struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *set = calloc(1, sizeof(*set));
	struct sl_config config;
	__u32 zero = 0;
	int rc = check_dir(dir, err);

	if (rc)
		return rc;
	if (!set)
		return sl_err_sys(err, ENOMEM, "can't open a set");
	set->lock_fd = -1;
	memset(set->maps, -1, sizeof(set->maps));
	strcpy(set->dir, dir);
	rc = open_maps(set, err);
	if (rc)
		return rc;
	if (bpf_map_lookup_elem(set->maps[SL_MAP_CONFIG], &zero, &config))
		return sl_err_sys(err, errno, "can't read the settings of '%s'", dir);
	if (config.schema != SL_SCHEMA) {
		config.version[sizeof(config.version) - 1] = '\0';
		sl_err_set(err, EPROTO, "the set at '%s' has schema %u (sluice %s), this is %d",
			   dir, config.schema, config.version, SL_SCHEMA);
		return sl_err_hint(err,
				   "use the sluice that made it, or detach its sandboxes first");
	}
	rc = map_entries(set->maps[SL_MAP_COUNTERS], &set->max_sandboxes);
	rc = rc ?: map_entries(set->maps[SL_MAP_EXES], &set->max_exes);
	rc = rc ?: map_entries(set->maps[SL_MAP_LINEAGES], &set->max_lineages);
	if (rc)
		return sl_err_sys(err, -rc, "can't read the sizes of '%s'", dir);
	set->sock_slots = config.sock_slots;
	set->tuple_buckets = config.tuple_buckets;
	set->hash_seed = config.hash_seed;
	set->count_skb = config.count_skb;
	/* Whoever reads this set prints a moment of it as the same text. */
	sl_realtime_offset_anchor(config.realtime_ns);
	*out = TAKE_PTR(set);
	return 0;
}

bool sl_set_gone(const struct sl_set *set)
{
	struct bpf_map_info ours = {}, pinned = {};
	__u32 ours_len = sizeof(ours), pinned_len = sizeof(pinned);
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];

	if (sl_set_path(path, set->dir, SL_SET_MAPS, sl_map_name(SL_MAP_CONFIG)))
		return false;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT;
	return !bpf_obj_get_info_by_fd(fd, &pinned, &pinned_len) &&
	       !bpf_obj_get_info_by_fd(set->maps[SL_MAP_CONFIG], &ours, &ours_len) &&
	       ours.id != pinned.id;
}

int sl_set_destroy(const char *dir, struct sl_err *err)
{
	sl_root_detach(dir);
	return sl_bpffs_remove(dir, err);
}

__u64 sl_set_path_hash(const struct sl_set *set, const char *path)
{
	size_t len = strlen(path);
	__u64 hash = sl_path_hash_begin(set->hash_seed, len), word;

	for (size_t at = 0; at < len; at += sizeof(word)) {
		word = 0;
		memcpy(&word, path + at, len - at < sizeof(word) ? len - at : sizeof(word));
		hash = sl_path_hash_word(hash, word);
	}
	return hash;
}

int sl_set_map_fd(const struct sl_set *set, enum sl_map map)
{
	return set->maps[map];
}

const char *sl_set_command(char *dst, size_t size, const char *dir, const char *command)
{
	if (strcmp(dir, SL_SET_DEFAULT))
		snprintf(dst, size, "sluice --set %s %s", dir, command);
	else
		snprintf(dst, size, "sluice %s", command);
	return dst;
}

const char *sl_set_dir(const struct sl_set *set)
{
	return set->dir;
}

int sl_set_want_events(struct sl_set *set, unsigned int events)
{
	struct sl_config config;
	__u32 zero = 0;

	if (bpf_map_lookup_elem(set->maps[SL_MAP_CONFIG], &zero, &config))
		return -errno;
	config.events = events;
	return bpf_map_update_elem(set->maps[SL_MAP_CONFIG], &zero, &config, BPF_EXIST) ? -errno
											: 0;
}

int sl_iter_open(const struct sl_set *set, const char *name)
{
	_cleanup_fd_ int link = -1;
	char path[PATH_MAX];
	int fd;

	if (sl_set_path(path, set->dir, SL_SET_ITERS, name))
		return -ENAMETOOLONG;
	link = bpf_obj_get(path);
	if (link < 0)
		return -errno;
	fd = bpf_iter_create(link);
	return fd < 0 ? -errno : fd;
}

/* The pinned link is for all tasks: its program, linked anew for this process alone. */
static int open_own(const struct sl_set *set, const char *name)
{
	union bpf_iter_link_info about = { .task.tid = (__u32)getpid() };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &about,
		    .iter_info_len = sizeof(about));
	_cleanup_fd_ int pin = -1, prog = -1, link = -1;
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);
	char path[PATH_MAX];
	int fd;

	if (sl_set_path(path, set->dir, SL_SET_ITERS, name))
		return -ENAMETOOLONG;
	pin = bpf_obj_get(path);
	if (pin < 0 || bpf_obj_get_info_by_fd(pin, &info, &len))
		return -errno;
	prog = bpf_prog_get_fd_by_id(info.prog_id);
	if (prog < 0)
		return -errno;
	link = bpf_link_create(prog, 0, BPF_TRACE_ITER, &opts);
	if (link < 0)
		return -errno;
	fd = bpf_iter_create(link);
	return fd < 0 ? -errno : fd;
}

int sl_file_identity(const struct sl_set *set, int fd, struct sl_iter_file *out)
{
	_cleanup_fd_ int iter = open_own(set, "dump_files");
	struct sl_iter_file file;
	int rc;

	if (iter < 0)
		return iter;
	do {
		rc = sl_iter_read(iter, &file, sizeof(file));
	} while (rc == 1 && file.fd != (__u32)fd);
	if (rc == 1)
		*out = file;
	return rc == 1 ? 0 : rc ?: -ENOENT;
}

int sl_iter_run(const struct sl_set *set, const char *name)
{
	_cleanup_fd_ int fd = sl_iter_open(set, name);
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, buf, sizeof(buf));
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	return n < 0 ? -errno : 0;
}

int sl_grace_period(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) ? -EOPNOTSUPP : 0;
}

int sl_iter_read(int fd, void *record, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while (have < size) {
		n = read(fd, (char *)record + have, size - have);
		if (n == 0)
			return have ? -EPROTO : 0;
		if (n > 0)
			have += n;
		else if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 1;
}
