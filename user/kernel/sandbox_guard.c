/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs of a sandbox that has a policy: on its packets, and at the root. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "kernel/set_private.h"

static bool pinned(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

/* Attaches what is not attached yet of one kind. */
static int attach_kind(const struct sl_set *set, enum sl_prog_when when, const char *dir,
		       int cgroup, struct sl_err *err)
{
	for (unsigned int i = 0; i < sl_cgroup_prog_count; i++) {
		const struct sl_cgroup_prog *prog = &sl_cgroup_progs[i];
		int rc;

		if (prog->when != when || pinned(dir, prog->name))
			continue;
		rc = sl_attach_program(set, prog, dir, cgroup);
		if (rc)
			return sl_err_sys(err, -rc, "can't attach %s to the cgroup", prog->name);
	}
	return 0;
}

/* Ends the links of one kind now, and their pins. */
static void detach_kind(const char *set_dir, const char *sub, enum sl_prog_when when)
{
	char path[PATH_MAX];

	for (unsigned int i = 0; i < sl_cgroup_prog_count; i++) {
		_cleanup_fd_ int fd = -1;

		if (sl_cgroup_progs[i].when != when ||
		    sl_set_path(path, set_dir, sub, sl_cgroup_progs[i].name))
			continue;
		fd = bpf_obj_get(path);
		if (fd < 0)
			continue;
		bpf_link_detach(fd);
		unlink(path);
	}
}

void sl_root_detach(const char *set_dir)
{
	detach_kind(set_dir, SL_SET_LINKS, SL_PROG_ROOT);
}

void sl_sandbox_unguard(struct sl_set *set, unsigned int id)
{
	char sub[32];

	snprintf(sub, sizeof(sub), SL_SET_SANDBOXES "/%u", id);
	detach_kind(set->dir, sub, SL_PROG_GUARD);
}

/*
 * A fault in a program at the root would cut off the host: this process, which is in no
 * sandbox, must be able to do what the programs see. Nothing is sent.
 */
static int root_self_test(void)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(9),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		return -errno;
	return 0;
}

static int attach_root(const struct sl_set *set, struct sl_err *err)
{
	_cleanup_fd_ int root = -1;
	char path[PATH_MAX], dir[PATH_MAX];
	int before = root_self_test(), rc;

	rc = sl_cgroup_mount(path, sizeof(path), err);
	rc = rc ?: sl_cgroup_open(&root, path, err);
	if (rc)
		return rc;
	rc = sl_set_path(dir, set->dir, SL_SET_LINKS, NULL);
	if (rc)
		return sl_err_sys(err, -rc, "'%s'", set->dir);
	rc = attach_kind(set, SL_PROG_ROOT, dir, root, err);
	if (!rc && root_self_test() != before) {
		sl_root_detach(set->dir);
		sl_err_set(err, EPROTO,
			   "the programs at the root of cgroup2 changed what a "
			   "process outside may do: taken off again");
		return sl_err_hint(err, "this is a fault of sluice: please report it");
	}
	return rc;
}

/* Opens the sandbox's cgroup, still the same one. */
static int open_cgroup(const struct sl_set *set, unsigned int id, int *out, struct sl_err *err)
{
	_cleanup_free_ struct sl_sandbox *sandbox = malloc(sizeof(*sandbox));
	char path[2 * PATH_MAX], mount[PATH_MAX];
	_cleanup_fd_ int cgroup = -1;
	unsigned long long cgroup_id = 0;
	__u32 key = id;
	int rc;

	if (!sandbox)
		return sl_err_sys(err, ENOMEM, "can't attach the guard");
	rc = sl_map_lookup(set->maps[SL_MAP_SANDBOXES], &key, sandbox);
	if (rc)
		return sl_err_set(err, ENOENT, "there is no sandbox %u", id);
	rc = sl_cgroup_mount(mount, sizeof(mount), err);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s%.*s", mount, (int)sizeof(sandbox->cgroup),
		 sandbox->cgroup);
	rc = sl_cgroup_open(&cgroup, path, err);
	if (rc)
		return rc;
	if (sl_cgroup_id(&cgroup_id, cgroup) || cgroup_id != sandbox->cgroup_id)
		return sl_err_set(err, ESTALE, "the cgroup of sandbox %u was replaced", id);
	*out = TAKE_FD(cgroup);
	return 0;
}

static int attach_to(const struct sl_set *set, unsigned int id, enum sl_prog_when when,
		     struct sl_err *err)
{
	_cleanup_fd_ int cgroup = -1;
	char dir[PATH_MAX];
	int rc = open_cgroup(set, id, &cgroup, err);

	if (rc)
		return rc;
	rc = sl_sandbox_dir(dir, set, id);
	if (rc)
		return sl_err_sys(err, -rc, "'%s'", set->dir);
	return attach_kind(set, when, dir, cgroup, err);
}

int sl_sandbox_guard(struct sl_set *set, unsigned int id, struct sl_err *err)
{
	return attach_to(set, id, SL_PROG_GUARD, err) ?: attach_root(set, err);
}

int sl_sandbox_redirect(struct sl_set *set, unsigned int id, bool on, struct sl_err *err)
{
	char sub[32];

	if (on)
		return attach_to(set, id, SL_PROG_REDIRECT, err);
	snprintf(sub, sizeof(sub), SL_SET_SANDBOXES "/%u", id);
	detach_kind(set->dir, sub, SL_PROG_REDIRECT);
	return 0;
}
