/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/world.h"

#define DESTROY_MS 5000

struct world world;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	remove(path);
	return 0;
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static bool is_left_over(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);
	int pid;

	if (strncmp(name, prefix, len) != 0 || sscanf(name + len, "%d-", &pid) != 1 || pid <= 0)
		return false;
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* Calls `fn` with the path of each entry that a runner which died has left. */
static void each_left_over(const char *dir, const char *prefix, void (*fn)(const char *path))
{
	_cleanup_dir_ DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char path[PATH_MAX];

		if (!is_left_over(entry->d_name, prefix))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) < (int)sizeof(path))
			fn(path);
	}
}

static void destroy_set(const char *path)
{
	sl_set_destroy(path, NULL);
}

static void destroy_cgroup(const char *path)
{
	sl_cgroup_destroy(path, DESTROY_MS);
}

void world_attach(void)
{
	struct sl_err err = {};

	cr_assert_eq(sl_sandbox_attach(world.set, world.cgroup, NULL, &world.sandbox, &err), 0,
		     "attach: %s", err.text);
}

char *world_load(void)
{
	char *path = getenv("SL_LOAD");

	cr_assert_not_null(path, "SL_LOAD names the workload");
	return path;
}

void world_make(const struct sl_set_options *options, bool attach)
{
	static unsigned int n;
	char mount[PATH_MAX / 2];
	struct sl_err err = {};

	cr_assert_null(world.set, "the suite's .init runs as well as the test's own");
	world_load();
	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), &err), 0, "%s", err.text);
	each_left_over(SL_SET_ROOT, "test-", destroy_set);
	each_left_over(mount, "sl-test-", destroy_cgroup);
	each_left_over("/tmp", "sl-test-", remove_tree);

	n++;
	snprintf(world.dir, sizeof(world.dir), SL_SET_ROOT "/test-%d-%u", getpid(), n);
	snprintf(world.cgroup, sizeof(world.cgroup), "%s/sl-test-%d-%u", mount, getpid(), n);
	snprintf(world.scratch, sizeof(world.scratch), "/tmp/sl-test-%d-%u", getpid(), n);
	cr_assert_eq(mkdir(world.scratch, 0755), 0);
	cr_assert_eq(sl_cgroup_create(world.cgroup, &err), 0, "%s", err.text);
	cr_assert_eq(sl_set_create(&world.set, world.dir, options, &err), 0, "create: %s (%s)",
		     err.text, err.hint);
	if (attach)
		world_attach();
}

void world_up(void)
{
	world_make(NULL, true);
}

/* A new file in the scratch directory, open for writing. */
static int scratch_file(const char *name, char path[PATH_MAX])
{
	int fd;

	snprintf(path, PATH_MAX, "%s/%s", world.scratch, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	return fd;
}

const char *world_copy(const char *name, char path[PATH_MAX])
{
	return world_copy_of(world_load(), name, path);
}

const char *world_copy_of(const char *program, const char *name, char path[PATH_MAX])
{
	_cleanup_fd_ int in = open(program, O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int out = scratch_file(name, path);
	ssize_t n;

	cr_assert_geq(in, 0);
	while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
		;
	cr_assert_eq(n, 0);
	return path;
}

void world_sha256(const char *path, char hex[65])
{
	char cmd[PATH_MAX + 16];
	FILE *pipe;

	snprintf(cmd, sizeof(cmd), "sha256sum %s", path);
	pipe = popen(cmd, "re");
	cr_assert_not_null(pipe);
	cr_assert_eq(fread(hex, 1, 64, pipe), 64);
	hex[64] = '\0';
	pclose(pipe);
}

const char *world_script(const char *name, const char *text, char path[PATH_MAX])
{
	_cleanup_fd_ int fd = scratch_file(name, path);

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return path;
}

void world_down(void)
{
	if (world.cgroup[0])
		sl_cgroup_kill(world.cgroup);
	sl_set_free(&world.set);
	if (world.dir[0])
		sl_set_destroy(world.dir, NULL);
	if (world.cgroup[0])
		sl_cgroup_destroy(world.cgroup, DESTROY_MS);
	if (world.scratch[0])
		remove_tree(world.scratch);
	memset(&world, 0, sizeof(world));
}
