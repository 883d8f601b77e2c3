/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "kernel/proxy.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "kernel/bpffs.h"
#include "kernel/cgroup.h"
#include "kernel/set_private.h"

const char *const sl_proxy_state_names[SL_PROXY_STATE_MAX] = { "attached", "gone", "other" };

static const struct sl_cgroup_prog program = { SL_PROG_PROXY, BPF_CGROUP_GETSOCKOPT,
					       SL_PROG_ALWAYS };

static int pin_path(char out[PATH_MAX], const struct sl_set *set, unsigned long long cgroup_id)
{
	char name[32];

	snprintf(name, sizeof(name), "%llu", cgroup_id);
	return sl_set_path(out, set->dir, SL_SET_PROXIES, name);
}

int sl_proxy_attach(struct sl_set *set, const char *cgroup, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	unsigned long long id = 0;
	char real[PATH_MAX], path[PATH_MAX];
	int rc = sl_cgroup_resolve(real, sizeof(real), cgroup, err);

	rc = rc ?: sl_cgroup_open(&fd, real, err);
	if (rc)
		return rc;
	rc = sl_cgroup_id(&id, fd);
	if (rc)
		return sl_err_sys(err, -rc, "can't tell the id of cgroup '%s'", real);
	rc = sl_set_path(path, set->dir, SL_SET_PROXIES, NULL);
	rc = rc ?: sl_bpffs_mkdirs(path, err);
	rc = rc ?: pin_path(path, set, id);
	if (rc)
		return rc;
	if (!access(path, F_OK)) {
		sl_err_set(err, EEXIST, "cgroup '%s' is a proxy's already", real);
		return sl_err_hint(err, "'sluice proxy list' shows its state");
	}
	rc = sl_attach_pinned(set, &program, path, fd);
	return rc ? sl_err_sys(err, -rc, "can't attach to cgroup '%s'", real) : 0;
}

int sl_proxy_detach(struct sl_set *set, unsigned long long cgroup_id, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	int rc = pin_path(path, set, cgroup_id);

	if (rc)
		return sl_err_sys(err, -rc, "'%s'", set->dir);
	fd = bpf_obj_get(path);
	if (fd < 0 && errno == ENOENT) {
		sl_err_set(err, ENOENT, "cgroup %llu is no proxy's", cgroup_id);
		return sl_err_hint(err, "see 'sluice proxy list'");
	}
	if (fd >= 0)
		bpf_link_detach(fd);
	return unlink(path) ? sl_err_sys(err, errno, "can't remove '%s'", path) : 0;
}

static unsigned int state_of(const struct sl_set *set, const char *path, unsigned long long id)
{
	struct bpf_link_info info = {};
	__u32 expected = 0;

	if (sl_link_info(path, &info) || info.type != BPF_LINK_TYPE_CGROUP ||
	    info.cgroup.attach_type != program.type)
		return SL_PROXY_OTHER;
	if (!info.cgroup.cgroup_id)
		return SL_PROXY_GONE;
	if (info.cgroup.cgroup_id != id || sl_program_id(set, program.name, &expected) ||
	    expected != info.prog_id)
		return SL_PROXY_OTHER;
	return SL_PROXY_ATTACHED;
}

/* What has another name than an id is nobody's of ours. */
static int describe(struct sl_proxy_info *info, const struct sl_set *set, const char *name)
{
	char path[PATH_MAX];
	uint64_t id;
	int rc;

	if (sl_parse_u64(name, 0, UINT64_MAX, &id))
		return -ENOENT;
	rc = pin_path(path, set, id);
	if (rc)
		return rc;
	info->cgroup_id = id;
	info->state = state_of(set, path, id);
	if (!sl_cgroup_path_of(info->cgroup, sizeof(info->cgroup), id, NULL))
		return 0;
	info->cgroup[0] = '\0';
	/* The link lets go of a cgroup that was removed some time later. */
	if (info->state == SL_PROXY_ATTACHED)
		info->state = SL_PROXY_GONE;
	return 0;
}

static void cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

int sl_proxy_each(struct sl_set *set, int (*fn)(const struct sl_proxy_info *info, void *arg),
		  void *arg)
{
	_cleanup_free_ struct sl_proxy_info *info = malloc(sizeof(*info));
	_cleanup_(cleanup_dir) DIR *dir = NULL;
	struct dirent *entry;
	char path[PATH_MAX];
	int rc = sl_set_path(path, set->dir, SL_SET_PROXIES, NULL);

	if (rc || !info)
		return rc ?: -ENOMEM;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && (entry = readdir(dir)))
		if (!describe(info, set, entry->d_name))
			rc = fn(info, arg);
	return rc;
}
