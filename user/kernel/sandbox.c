// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sandboxes of a set: attaching a cgroup, detaching it. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/bpffs.h"
#include "kernel/cgroup.h"
#include "kernel/name.h"
#include "kernel/adopt.h"
#include "kernel/set_private.h"
#include "kernel/steer.h"

/*
 * Serialises attach and detach of a set: held until the descriptor is closed. Waits. Not
 * the lock of invariant 2: that one is on the set's own directory.
 */
static int sandboxes_lock(const struct sl_set *set, int *fd)
{
	char path[PATH_MAX];
	int rc = sl_set_path(path, set->dir, SL_SET_SANDBOXES, NULL);

	if (rc)
		return rc;
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	return flock(*fd, LOCK_EX) ? -errno : 0;
}

int sl_sandbox_dir(char out[PATH_MAX], const struct sl_set *set, unsigned int id)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", id);
	return sl_set_path(out, set->dir, SL_SET_SANDBOXES, name);
}

int sl_sandbox_each(struct sl_set *set, int (*fn)(const struct sl_sandbox *sandbox, void *arg),
		    void *arg)
{
	_cleanup_free_ struct sl_sandbox *sandbox = malloc(sizeof(*sandbox));
	int rc;

	if (!sandbox)
		return -ENOMEM;
	for (__u32 id = 1; id < set->max_sandboxes; id++) {
		if (bpf_map_lookup_elem(set->maps[SL_MAP_SANDBOXES], &id, sandbox)) {
			if (errno == ENOENT)
				continue;
			return -errno;
		}
		sandbox->name[sizeof(sandbox->name) - 1] = '\0';
		sandbox->cgroup[sizeof(sandbox->cgroup) - 1] = '\0';
		rc = fn(sandbox, arg);
		if (rc)
			return rc;
	}
	return 0;
}

struct id_search {
	unsigned long long cgroup_id;
	unsigned int id;
};

static int has_cgroup(const struct sl_sandbox *sandbox, void *arg)
{
	struct id_search *search = arg;

	if (sandbox->cgroup_id != search->cgroup_id)
		return 0;
	search->id = sandbox->id;
	return 1;
}

int sl_sandbox_of_cgroup(struct sl_set *set, unsigned long long cgroup_id, unsigned int *id)
{
	struct id_search search = { .cgroup_id = cgroup_id };
	int rc = sl_sandbox_each(set, has_cgroup, &search);

	if (rc == 1)
		*id = search.id;
	return rc == 1 ? 0 : rc ?: -ENOENT;
}

/* The first program is attached first, and the first to be taken off. */
bool sl_sandbox_unhooked(const struct sl_set *set, unsigned int id)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	_cleanup_fd_ int fd = -1;
	char dir[PATH_MAX], path[PATH_MAX];

	if (sl_sandbox_dir(dir, set, id) || snprintf(path, sizeof(path), "%s/%s", dir,
						     sl_cgroup_progs[0].name) >= (int)sizeof(path))
		return false;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT;
	return !bpf_obj_get_info_by_fd(fd, &info, &len) && !info.cgroup.cgroup_id;
}

/* True when one of two paths is the other or above it. */
static bool paths_nest(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), n = la < lb ? la : lb;

	if (!strcmp(a, "/") || !strcmp(b, "/"))
		return true;
	return !strncmp(a, b, n) && ((la > n ? a[n] : b[n]) == '/' || la == lb);
}

struct nest_search {
	const struct sl_sandbox *wanted;
	struct sl_err *err;
};

static int refuse_nested(const struct sl_sandbox *other, void *arg)
{
	struct nest_search *search = arg;

	if (!paths_nest(search->wanted->cgroup, other->cgroup) &&
	    search->wanted->cgroup_id != other->cgroup_id)
		return 0;
	if (!strcmp(search->wanted->cgroup, other->cgroup) &&
	    search->wanted->cgroup_id != other->cgroup_id) {
		sl_err_set(search->err, EEXIST,
			   "cgroup '%s' was removed and made again since it became sandbox %u: it "
			   "is not recorded",
			   other->cgroup, other->id);
		return sl_err_hint(search->err, "detach %u, then attach again", other->id);
	}
	sl_err_set(search->err, EEXIST, "cgroup '%s' belongs to sandbox %u ('%s') already",
		   search->wanted->cgroup, other->id, other->cgroup);
	return sl_err_hint(search->err, "a process is in one sandbox: detach %u first", other->id);
}

static int free_id(const struct sl_set *set, __u32 *out)
{
	char value[sizeof(struct sl_sandbox)];

	for (__u32 id = 1; id < set->max_sandboxes; id++) {
		if (bpf_map_lookup_elem(set->maps[SL_MAP_SANDBOXES], &id, value)) {
			if (errno != ENOENT)
				return -errno;
			*out = id;
			return 0;
		}
	}
	return -ENOSPC;
}

static int counters_reset(const struct sl_set *set, __u32 id)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ struct sl_counters *zero = NULL;

	if (cpus < 0)
		return cpus;
	zero = calloc(cpus, sizeof(*zero));
	if (!zero)
		return -ENOMEM;
	return bpf_map_update_elem(set->maps[SL_MAP_COUNTERS], &id, zero, BPF_ANY) ? -errno : 0;
}

int sl_mount_ns(pid_t pid, __u32 *out)
{
	char path[32] = "/proc/self/ns/mnt";
	struct stat st;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &st))
		return -errno;
	*out = (__u32)st.st_ino;
	return 0;
}

/* Says who the sandbox is, so tracepoints recognise members; then seeds those there. */
static int sandbox_publish(const struct sl_set *set, const struct sl_sandbox *sandbox)
{
	struct sl_guard no_policy = { 0 };
	__u64 cgroup_id = sandbox->cgroup_id;
	int rc = counters_reset(set, sandbox->id);

	rc = rc ?: sl_mount_ns(0, &no_policy.mnt_ns);
	if (rc)
		return rc;
	/*
	 * Ids are used again: what the last one left must not hold for this one. The mount
	 * namespace is known from the start: what members execute in another one before there
	 * is a policy must not match it either.
	 */
	if (bpf_map_update_elem(set->maps[SL_MAP_GUARDS], &sandbox->id, &no_policy, BPF_ANY))
		return -errno;
	if (bpf_map_update_elem(set->maps[SL_MAP_SANDBOXES], &sandbox->id, sandbox, BPF_NOEXIST))
		return -errno;
	if (bpf_map_update_elem(set->maps[SL_MAP_CGROUPS], &cgroup_id, &sandbox->id, BPF_NOEXIST))
		return -errno;
	return sl_iter_run(set, "seed_tasks");
}

int sl_attach_pinned(const struct sl_set *set, const struct sl_cgroup_prog *prog, const char *pin,
		     int cgroup)
{
	_cleanup_fd_ int link = -1, fd = -1;
	char path[PATH_MAX];
	int rc;

	rc = sl_set_path(path, set->dir, SL_SET_PROGS, prog->name);
	if (rc)
		return rc;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	link = bpf_link_create(fd, cgroup, prog->type, NULL);
	if (link < 0)
		return -errno;
	return bpf_obj_pin(link, pin) ? -errno : 0;
}

int sl_attach_program(const struct sl_set *set, const struct sl_cgroup_prog *prog, const char *dir,
		      int cgroup)
{
	char pin[PATH_MAX];

	if (snprintf(pin, sizeof(pin), "%s/%s", dir, prog->name) >= (int)sizeof(pin))
		return -ENAMETOOLONG;
	return sl_attach_pinned(set, prog, pin, cgroup);
}

static int attach_programs(const struct sl_set *set, unsigned int id, int cgroup,
			   struct sl_err *err)
{
	char dir[PATH_MAX];
	int rc = sl_sandbox_dir(dir, set, id);

	if (rc)
		return sl_err_sys(err, -rc, "'%s'", set->dir);
	rc = sl_bpffs_mkdirs(dir, err);
	for (unsigned int i = 0; !rc && i < sl_cgroup_prog_count; i++) {
		enum sl_prog_when when = sl_cgroup_progs[i].when;

		if (when != SL_PROG_ALWAYS && (when != SL_PROG_COUNT_SKB || !set->count_skb))
			continue;
		rc = sl_attach_program(set, &sl_cgroup_progs[i], dir, cgroup);
		if (rc)
			sl_err_sys(err, -rc, "can't attach %s to the cgroup",
				   sl_cgroup_progs[i].name);
	}
	return rc;
}

static int sandbox_describe(struct sl_sandbox *sandbox, int *cgroup, const char *path,
			    const char *name, struct sl_err *err)
{
	char mount[PATH_MAX], real[PATH_MAX];
	unsigned long long cgroup_id;
	const char *last;
	int rc;

	rc = sl_cgroup_mount(mount, sizeof(mount), err);
	rc = rc ?: sl_cgroup_resolve(real, sizeof(real), path, err);
	rc = rc ?: sl_cgroup_open(cgroup, real, err);
	if (rc)
		return rc;
	rc = sl_cgroup_id(&cgroup_id, *cgroup);
	if (rc)
		return sl_err_sys(err, -rc, "can't tell the id of cgroup '%s'", real);
	last = strrchr(real, '/');
	sandbox->cgroup_id = cgroup_id;
	sandbox->attached_ns = sl_boottime_ns();
	snprintf(sandbox->cgroup, sizeof(sandbox->cgroup), "%s", sl_cgroup_relative(real, mount));
	snprintf(sandbox->name, sizeof(sandbox->name), "%.*s", SL_SANDBOX_NAME_MAX - 1,
		 name ? name : last + 1);
	return 0;
}

/* What only the hooks would have ended: membership, records, rows. */
static int sandbox_forget(struct sl_set *set, __u32 id)
{
	int rc;

	/* Twice: a fork under way during the first pass is over by the second. */
	for (int pass = 0; pass < 2; pass++) {
		rc = sl_iter_run(set, "unseed_tasks");
		if (rc)
			return rc;
	}
	rc = sl_adopt_by_fd(set) ? sl_adopt_unseed(set) : sl_iter_run(set, "unseed_socks");
	rc = rc
		     ?: sl_map_delete_rows(set->maps[SL_MAP_PROCS], true,
					   offsetof(struct sl_process, sandbox), id);
	rc = rc
		     ?: sl_map_delete_rows(set->maps[SL_MAP_OWNERS], true,
					   offsetof(struct sl_owner, sandbox), id);
	rc = rc ?: sl_socks_forget(set, id);
	rc = rc ?: sl_decisions_forget(set, id);
	rc = rc ?: sl_name_forget(set, id);
	return rc
		       ?: sl_map_delete_rows(set->maps[SL_MAP_PACKETS], true,
					     offsetof(struct sl_sock, owner.sandbox), id);
}

/*
 * Ends what somebody who was killed has begun: while the directory of an id is there and no
 * sandbox has it, rows of the one before are left, and tasks that count as its members.
 */
static int finish_detach(struct sl_set *set, __u32 id, struct sl_err *err)
{
	char dir[PATH_MAX];
	int rc = sl_sandbox_dir(dir, set, id);

	if (rc)
		return sl_err_sys(err, -rc, "'%s'", set->dir);
	if (access(dir, F_OK))
		return 0;
	rc = sandbox_forget(set, id);
	return rc ? sl_err_sys(err, -rc, "rows of an earlier sandbox %u are left", id)
		  : sl_bpffs_remove(dir, err);
}

int sl_sandbox_attach(struct sl_set *set, const char *cgroup, const char *name, unsigned int *id,
		      struct sl_err *err)
{
	_cleanup_free_ struct sl_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	_cleanup_fd_ int cgroup_fd = -1, lock = -1;
	struct nest_search search = { sandbox, err };
	int rc;

	if (!sandbox)
		return sl_err_sys(err, ENOMEM, "can't attach");
	rc = sandbox_describe(sandbox, &cgroup_fd, cgroup, name, err);
	if (rc)
		return rc;
	rc = sandboxes_lock(set, &lock);
	if (rc)
		return sl_err_sys(err, -rc, "can't lock the set at '%s'", set->dir);
	rc = sl_sandbox_each(set, refuse_nested, &search);
	if (rc)
		return rc;
	rc = free_id(set, &sandbox->id);
	if (rc) {
		sl_err_sys(err, -rc, "the set at '%s' has no room for another sandbox", set->dir);
		return sl_err_hint(err, "detach one, or detach all and attach with a larger "
					"--max-sandboxes");
	}
	rc = finish_detach(set, sandbox->id, err);
	if (rc)
		return rc;
	rc = sandbox_publish(set, sandbox);
	if (rc)
		sl_err_sys(err, -rc, "can't register the sandbox");
	rc = rc ?: attach_programs(set, sandbox->id, cgroup_fd, err);
	if (!rc) {
		rc = sl_adopt_by_fd(set) ? sl_adopt_seed(set) : sl_iter_run(set, "seed_socks");
		if (rc)
			sl_err_sys(err, -rc, "can't look for the sockets that are there");
	}
	if (rc) {
		close(lock);
		lock = -1;
		sl_sandbox_detach(set, sandbox->id, NULL);
		return rc;
	}
	*id = sandbox->id;
	return 0;
}

/*
 * Ends the links now: a pin that is removed gives its link back some time later (after a
 * grace period, by a worker), and until then calls of members would still come to the
 * programs, which by then no longer know them. What can't be detached goes with its pin.
 */
static void detach_programs(const char *dir)
{
	char path[PATH_MAX];
	int fd;

	for (unsigned int i = 0; i < sl_cgroup_prog_count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", dir, sl_cgroup_progs[i].name) >=
		    (int)sizeof(path))
			continue;
		fd = bpf_obj_get(path);
		if (fd < 0)
			continue;
		bpf_link_detach(fd);
		close(fd);
	}
	/* Those that run on another CPU just now. */
	(void)sl_grace_period();
}

int sl_sandbox_detach(struct sl_set *set, unsigned int id, struct sl_err *err)
{
	_cleanup_free_ struct sl_sandbox *sandbox = malloc(sizeof(*sandbox));
	_cleanup_fd_ int lock = -1;
	char dir[PATH_MAX];
	__u64 cgroup_id;
	__u32 key = id;
	int rc;

	if (!sandbox)
		return sl_err_sys(err, ENOMEM, "can't detach");
	rc = sandboxes_lock(set, &lock);
	if (rc)
		return sl_err_sys(err, -rc, "can't lock the set at '%s'", set->dir);
	if (bpf_map_lookup_elem(set->maps[SL_MAP_SANDBOXES], &key, sandbox))
		return sl_err_set(err, ENOENT, "there is no sandbox %u", id);
	rc = sl_sandbox_dir(dir, set, id);
	if (rc)
		return sl_err_sys(err, -rc, "'%s'", set->dir);
	sl_steer_detach(set, id);
	detach_programs(dir);
	sl_ring_forget_own(set, id);
	rc = sl_bpffs_remove(dir, err);
	/* It stays until nothing of the sandbox is left: see finish_detach(). */
	rc = rc ?: sl_bpffs_mkdirs(dir, err);
	if (rc)
		return rc;
	cgroup_id = sandbox->cgroup_id;
	bpf_map_delete_elem(set->maps[SL_MAP_CGROUPS], &cgroup_id);
	bpf_map_delete_elem(set->maps[SL_MAP_SANDBOXES], &key);
	rc = sandbox_forget(set, id);
	return rc ? sl_err_sys(err, -rc, "detached, but rows of sandbox %u are left", id)
		  : sl_bpffs_remove(dir, err);
}
