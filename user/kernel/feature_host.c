/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Probes that read procfs and sysfs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "kernel/feature_private.h"

#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

/* First bytes of a BTF blob, in this machine's byte order (include/uapi/linux/btf.h). */
#define BTF_MAGIC_NUMBER 0xeb9f

static int feature_path(char out[PATH_MAX], const struct sl_feature_env *env, const char *path)
{
	return snprintf(out, PATH_MAX, "%s%s", env->root, path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static FILE *feature_open(const struct sl_feature_env *env, const char *path)
{
	char full[PATH_MAX];

	if (feature_path(full, env, path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return fopen(full, "re");
}

int sl_feature_read(const struct sl_feature_env *env, const char *path, char *out, size_t size)
{
	_cleanup_file_ FILE *file = feature_open(env, path);

	if (!file)
		return -errno;
	if (!fgets(out, (int)size, file))
		return ferror(file) ? -EIO : -ENODATA;
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

bool sl_feature_exists(const struct sl_feature_env *env, const char *path)
{
	char full[PATH_MAX];

	return !feature_path(full, env, path) && !access(full, F_OK);
}

int sl_feature_mount(const struct sl_feature_env *env, const char *type, const char *at,
		     char point[SL_FEATURE_VALUE_MAX], char root[SL_FEATURE_VALUE_MAX])
{
	_cleanup_file_ FILE *file = feature_open(env, "/proc/self/mountinfo");
	_cleanup_free_ char *line = NULL;
	char mount_root[PATH_MAX], mount_point[PATH_MAX], found[32];
	size_t cap = 0;
	char *sep;

	if (!file)
		return -errno;
	while (getline(&line, &cap, file) > 0) {
		/* proc(5): ID PARENT MAJ:MIN ROOT POINT OPTIONS [OPTIONAL…] - TYPE … */
		sep = strstr(line, " - ");
		if (!sep || sscanf(sep, " - %31s", found) != 1 || strcmp(found, type) != 0 ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", mount_root, mount_point) != 2)
			continue;
		if (at && strcmp(mount_point, at) != 0)
			continue;
		sl_escape_again(point, SL_FEATURE_VALUE_MAX, mount_point, strlen(mount_point));
		if (root)
			sl_escape_again(root, SL_FEATURE_VALUE_MAX, mount_root, strlen(mount_root));
		return 0;
	}
	return -ENODEV;
}

static int effective_caps(const struct sl_feature_env *env, unsigned long long *caps)
{
	_cleanup_file_ FILE *file = feature_open(env, "/proc/self/status");
	char line[256];

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", caps) == 1)
			return 0;
	return -ENODATA;
}

int sl_feature_caps_missing(const struct sl_feature_env *env, unsigned long long *missing)
{
	const unsigned long long needed = 1ULL << CAP_BPF | 1ULL << CAP_NET_ADMIN |
					  1ULL << CAP_PERFMON | 1ULL << CAP_SYS_ADMIN;
	unsigned long long caps = 0;
	int rc = effective_caps(env, &caps);

	if (!rc)
		*missing = needed & ~caps;
	return rc;
}

enum sl_feature_state sl_probe_kernel(const struct sl_feature_run *run, const char *arg,
				      char value[SL_FEATURE_VALUE_MAX])
{
	unsigned int major, minor;

	(void)arg;
	if (sl_feature_read(run->env, "/proc/sys/kernel/osrelease", value, SL_FEATURE_VALUE_MAX))
		return SL_FEATURE_UNKNOWN;
	if (sscanf(value, "%u.%u", &major, &minor) != 2)
		return SL_FEATURE_UNKNOWN;
	return major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
}

enum sl_feature_state sl_probe_capability(const struct sl_feature_run *run, const char *arg,
					  char value[SL_FEATURE_VALUE_MAX])
{
	static const struct {
		const char *name;
		int cap;
	} known[] = { { "cap_bpf", CAP_BPF },
		      { "cap_net_admin", CAP_NET_ADMIN },
		      { "cap_perfmon", CAP_PERFMON },
		      { "cap_sys_admin", CAP_SYS_ADMIN } };
	unsigned long long caps = 0;
	int rc = effective_caps(run->env, &caps);

	if (rc) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "/proc/self/status: %s", strerror(-rc));
		return SL_FEATURE_UNKNOWN;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, arg))
			return caps >> known[i].cap & 1;
	return SL_FEATURE_UNKNOWN;
}

/* The initial user namespace maps every id to itself (user_namespaces(7)). */
enum sl_feature_state sl_probe_user_ns(const struct sl_feature_run *run, const char *arg,
				       char value[SL_FEATURE_VALUE_MAX])
{
	unsigned int inside, outside, count;
	char map[64];

	(void)arg;
	/* No file: a kernel without user namespaces. */
	if (!sl_feature_exists(run->env, "/proc/self/uid_map"))
		return SL_FEATURE_YES;
	if (sl_feature_read(run->env, "/proc/self/uid_map", map, sizeof(map)) ||
	    sscanf(map, "%u %u %u", &inside, &outside, &count) != 3) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "no ids are mapped");
		return SL_FEATURE_NO;
	}
	if (inside || outside || count != UINT_MAX) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "root here is user %u outside", outside);
		return SL_FEATURE_NO;
	}
	snprintf(value, SL_FEATURE_VALUE_MAX, "initial");
	return SL_FEATURE_YES;
}

enum sl_feature_state sl_probe_btf(const struct sl_feature_run *run, const char *arg,
				   char value[SL_FEATURE_VALUE_MAX])
{
	static const char place[] = "/sys/kernel/btf/vmlinux";
	_cleanup_file_ FILE *file = feature_open(run->env, place);
	unsigned short magic;

	(void)arg;
	if (!file) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "%s: %s", place, strerror(errno));
		return SL_FEATURE_NO;
	}
	/* A page of a huge blob would be read for two bytes. */
	setvbuf(file, NULL, _IONBF, 0);
	if (fread(&magic, sizeof(magic), 1, file) != 1 || magic != BTF_MAGIC_NUMBER) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "%s: no BTF in it", place);
		return SL_FEATURE_NO;
	}
	snprintf(value, SL_FEATURE_VALUE_MAX, "%s", place);
	return SL_FEATURE_YES;
}

enum sl_feature_state sl_probe_cgroup2(const struct sl_feature_run *run, const char *arg,
				       char value[SL_FEATURE_VALUE_MAX])
{
	char point[SL_FEATURE_VALUE_MAX], other[SL_FEATURE_VALUE_MAX];
	bool v1 = !sl_feature_mount(run->env, "cgroup", NULL, other, NULL);

	(void)arg;
	if (sl_feature_mount(run->env, "cgroup2", NULL, point, NULL)) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "%s", v1 ? "cgroup v1 only" : "");
		return SL_FEATURE_NO;
	}
	snprintf(value, SL_FEATURE_VALUE_MAX, "%.100s (%s)", point, v1 ? "hybrid" : "unified");
	return SL_FEATURE_YES;
}

/*
 * In a cgroup namespace of its own a process sees its cgroup as the root, and a mount
 * made outside of it shows as mounted from "/..".
 */
enum sl_feature_state sl_probe_cgroup_ns(const struct sl_feature_run *run, const char *arg,
					 char value[SL_FEATURE_VALUE_MAX])
{
	char point[SL_FEATURE_VALUE_MAX], root[SL_FEATURE_VALUE_MAX], path[PATH_MAX];
	char link[64] = "";
	/* PROC_CGROUP_INIT_INO of include/linux/proc_ns.h: the initial one, on every kernel. */
	static const char initial[] = "cgroup:[4026531835]";

	(void)arg;
	if (feature_path(path, run->env, "/proc/self/ns/cgroup") ||
	    readlink(path, link, sizeof(link) - 1) < 0) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "/proc/self/ns/cgroup: %s", strerror(errno));
		return SL_FEATURE_UNKNOWN;
	}
	if (!strcmp(link, initial)) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "the host's");
		return SL_FEATURE_YES;
	}
	if (sl_feature_mount(run->env, "cgroup2", NULL, point, root))
		strcpy(root, "/");
	snprintf(value, SL_FEATURE_VALUE_MAX, "private%s",
		 strcmp(root, "/") ? ", cgroup2 mounted from outside of it" : "");
	return SL_FEATURE_NO;
}

/* Mounted, or the kernel knows it and there is a place for it. */
enum sl_feature_state sl_probe_bpffs(const struct sl_feature_run *run, const char *arg,
				     char value[SL_FEATURE_VALUE_MAX])
{
	_cleanup_file_ FILE *file = NULL;
	char line[80], type[64];

	(void)arg;
	if (!sl_feature_mount(run->env, "bpf", "/sys/fs/bpf", value, NULL))
		return SL_FEATURE_YES;
	if (!sl_feature_exists(run->env, "/sys/fs/bpf")) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "there is no /sys/fs/bpf");
		return SL_FEATURE_NO;
	}
	file = feature_open(run->env, "/proc/filesystems");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "nodev %63s", type) == 1 && !strcmp(type, "bpf")) {
			snprintf(value, SL_FEATURE_VALUE_MAX, "will be mounted at /sys/fs/bpf");
			return SL_FEATURE_YES;
		}
	}
	snprintf(value, SL_FEATURE_VALUE_MAX, "the kernel has no bpf file system");
	return SL_FEATURE_NO;
}

enum sl_feature_state sl_probe_lockdown(const struct sl_feature_run *run, const char *arg,
					char value[SL_FEATURE_VALUE_MAX])
{
	char modes[64];
	char *begin, *end;

	(void)arg;
	/* "none [integrity] confidentiality"; no file: no lockdown, or securityfs not mounted. */
	if (sl_feature_read(run->env, "/sys/kernel/security/lockdown", modes, sizeof(modes))) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "not in use");
		return SL_FEATURE_YES;
	}
	begin = strchr(modes, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end)
		return SL_FEATURE_UNKNOWN;
	*end = '\0';
	snprintf(value, SL_FEATURE_VALUE_MAX, "%s", begin + 1);
	return strcmp(begin + 1, "confidentiality") != 0;
}

enum sl_feature_state sl_probe_jit(const struct sl_feature_run *run, const char *arg,
				   char value[SL_FEATURE_VALUE_MAX])
{
	char text[16];
	int rc = sl_feature_read(run->env, "/proc/sys/net/core/bpf_jit_enable", text, sizeof(text));

	(void)arg;
	/* Only the initial network namespace has the file. */
	if (rc == -ENOENT) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "can't be seen in this network namespace");
		return SL_FEATURE_YES;
	}
	if (rc)
		return SL_FEATURE_UNKNOWN;
	snprintf(value, SL_FEATURE_VALUE_MAX, "bpf_jit_enable=%s", text);
	return atoi(text) > 0;
}

enum sl_feature_state sl_probe_lsm(const struct sl_feature_run *run, const char *arg,
				   char value[SL_FEATURE_VALUE_MAX])
{
	char list[256];
	char *name, *rest = list;

	if (sl_feature_read(run->env, "/sys/kernel/security/lsm", list, sizeof(list))) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "securityfs is not mounted");
		return SL_FEATURE_UNKNOWN;
	}
	while ((name = strsep(&rest, ",")))
		if (!strcmp(name, arg))
			return SL_FEATURE_YES;
	snprintf(value, SL_FEATURE_VALUE_MAX, "not among the active security modules");
	return SL_FEATURE_NO;
}

enum sl_feature_state sl_probe_kprobes(const struct sl_feature_run *run, const char *arg,
				       char value[SL_FEATURE_VALUE_MAX])
{
	(void)arg;
	(void)value;
	return sl_feature_exists(run->env, "/sys/bus/event_source/devices/kprobe");
}
