// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#define ACCESS_TRUNCATE (1ULL << 14) /* LANDLOCK_ACCESS_FS_TRUNCATE, ABI 3 */
#define SCOPE_SIGNAL (1ULL << 1)     /* LANDLOCK_SCOPE_SIGNAL, ABI 6 */

#define MAKE_ANY                                                        \
	(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |   \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |   \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)
#define CHANGE_DIR (MAKE_ANY | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define CHANGE_FILE LANDLOCK_ACCESS_FS_WRITE_FILE

/* struct landlock_ruleset_attr as of ABI 6. */
struct ruleset_attr {
	__u64 access_fs;
	__u64 access_net;
	__u64 scoped;
};

int sl_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

static int new_ruleset(int *out, __u64 access_fs, __u64 scoped, struct sl_err *err)
{
	struct ruleset_attr attr = { .access_fs = access_fs, .scoped = scoped };
	size_t size = scoped ? sizeof(attr) : sizeof(attr.access_fs);
	long fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);

	if (fd < 0)
		return sl_err_sys(err, errno, "can't make a Landlock ruleset");
	*out = (int)fd;
	return 0;
}

static int enter(int ruleset, struct sl_err *err)
{
	if (syscall(SYS_landlock_restrict_self, ruleset, 0))
		return sl_err_sys(err, errno, "can't enter the Landlock domain");
	return 0;
}

int sl_landlock_scope(struct sl_err *err)
{
	_cleanup_fd_ int ruleset = -1;
	int ret = new_ruleset(&ruleset, 0, SCOPE_SIGNAL, err);

	return ret ? ret : enter(ruleset, err);
}

/* Rules being made: what is handled, and the paths that get no rule. */
struct rules {
	int ruleset;
	__u64 dir, file; /* rights of a directory, and of what is none */
	const char *const *paths;
	unsigned int count;
};

static int allow(const struct rules *rules, int fd, __u64 access)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = access, .parent_fd = fd };

	if (!access)
		return 0;
	return syscall(SYS_landlock_add_rule, rules->ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0)
		       ? -errno
		       : 0;
}

/* Whether `path` is one of the paths, or (*above) on the way to one. */
static bool is_protected(const struct rules *rules, const char *path, bool *above)
{
	size_t len = strlen(path);

	*above = false;
	for (unsigned int i = 0; i < rules->count; i++) {
		if (!strcmp(rules->paths[i], path))
			return true;
		*above |= !strncmp(rules->paths[i], path, len) && rules->paths[i][len] == '/';
	}
	return false;
}

static int allow_below(const struct rules *rules, const char *dir);

static int allow_entry(const struct rules *rules, const char *path)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	bool above;

	if (is_protected(rules, path, &above))
		return 0;
	if (above)
		return allow_below(rules, path);
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	/* It may be gone meanwhile. A link has no rights of its own. */
	if (fd < 0 || fstat(fd, &st) || S_ISLNK(st.st_mode))
		return 0;
	return allow(rules, fd, S_ISDIR(st.st_mode) ? rules->dir | rules->file : rules->file);
}

/* Landlock has no exceptions: everything beside the way to a protected path is allowed. */
static int allow_below(const struct rules *rules, const char *dir)
{
	_cleanup_dir_ DIR *d = opendir(dir);
	struct dirent *entry;
	char path[PATH_MAX];
	int ret = 0;

	if (!d)
		return -errno;
	while (!ret && (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir[1] ? dir : "", entry->d_name) >=
		    (int)sizeof(path))
			return -ENAMETOOLONG;
		ret = allow_entry(rules, path);
	}
	return ret;
}

int sl_landlock_read_only(const char *const paths[], unsigned int count, struct sl_err *err)
{
	struct rules rules = { .paths = paths, .count = count };
	_cleanup_fd_ int ruleset = -1, root = -1;
	int abi = sl_landlock_abi(), ret;

	if (abi < SL_LANDLOCK_REFER)
		return sl_err_set(err, ENOTSUP, "Landlock of this kernel (ABI %d) is too old", abi);
	/* Without paths: rights that are all granted, for the sake of the domain. */
	rules.dir = LANDLOCK_ACCESS_FS_REFER | (count ? CHANGE_DIR : LANDLOCK_ACCESS_FS_MAKE_BLOCK);
	rules.file = count ? CHANGE_FILE | (abi >= 3 ? ACCESS_TRUNCATE : 0) : 0;
	ret = new_ruleset(&ruleset, rules.dir | rules.file,
			  abi >= SL_LANDLOCK_SCOPES ? SCOPE_SIGNAL : 0, err);
	if (ret)
		return ret;
	rules.ruleset = ruleset;
	root = open("/", O_PATH | O_CLOEXEC);
	if (root < 0)
		ret = -errno;
	else
		ret = count ? allow_below(&rules, "/") : allow(&rules, root, rules.dir);
	if (ret)
		return sl_err_sys(err, -ret, "can't add a Landlock rule");
	return enter(ruleset, err);
}
