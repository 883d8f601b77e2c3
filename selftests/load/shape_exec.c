/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Process shapes made of execs: chains, copies that vanish, memfd, chroot. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc.h"
#include "tail.h"

extern char **environ;

/* Goes on as the first of the names: its copy runs exec-chain with the others. */
static int chain_step(const struct sl_opts *o)
{
	static struct sl_argv argv;
	char path[PATH_MAX];
	pid_t pid = 0;
	int n = snprintf(path, sizeof(path), "%s/%s", o->dir, o->args[0]);

	if (n < 0 || n >= (int)sizeof(path))
		return sl_fail("path", ENAMETOOLONG);
	sl_argv_start(&argv, path, o->cmd);
	for (int i = 1; i < o->n_args; i++)
		sl_argv_add(&argv, "%s", o->args[i]);
	sl_argv_add(&argv, "--copied");
	if (o->fork)
		sl_argv_add(&argv, "--fork");
	sl_argv_tail(&argv, o);
	if (o->fork) {
		pid = sl_fork();
		if (pid < 0)
			return sl_fail("fork", -pid);
		if (pid > 0)
			return sl_wait(pid);
	}
	n = sl_exec(path, &argv);
	if (o->fork)
		sl_exit(n);
	return n;
}

static int exec_chain(const struct sl_opts *o)
{
	char path[PATH_MAX];

	if (o->copied && o->n_args == 0)
		return sl_tail(o);
	if (!o->dir || o->n_args == 0)
		return sl_usage("%s needs --dir and a name", o->cmd);
	for (int i = 0; !o->copied && i < o->n_args; i++) {
		int rc;

		if (strchr(o->args[i], '/'))
			return sl_usage("%s: a name, not a path", o->cmd);
		rc = sl_copy_self(o->dir, o->args[i], path);
		if (rc < 0)
			return sl_fail("copy", -rc);
	}
	sl_tail_step(o->args[0]);
	return chain_step(o);
}

static int self_exec_loop(const struct sl_opts *o)
{
	static struct sl_argv argv;
	char path[PATH_MAX];
	uint64_t left;
	int rc;

	if (sl_number(o->args[0], 1000000, &left) < 0)
		return sl_usage("%s: not a number", o->cmd);
	if (left == 0)
		return sl_tail(o);
	rc = sl_self_path(&(struct sl_opts){ 0 }, NULL, path);
	if (rc < 0)
		return sl_fail("readlink", -rc);
	sl_argv_start(&argv, path, o->cmd);
	sl_argv_add(&argv, "%llu", (unsigned long long)left - 1);
	sl_argv_tail(&argv, o);
	return sl_exec(path, &argv);
}

static int unlink_self(const struct sl_opts *o)
{
	static struct sl_argv argv;
	char path[PATH_MAX];
	int rc;

	if (o->copied) {
		rc = sl_self_path(&(struct sl_opts){ 0 }, NULL, path);
		if (rc == 0 && unlink(path) < 0)
			rc = -errno;
		return rc < 0 ? sl_fail("unlink", -rc) : sl_tail(o);
	}
	if (!o->dir)
		return sl_usage("%s needs --dir", o->cmd);
	rc = sl_copy_self(o->dir, o->name ? o->name : "sl-load-unlinked", path);
	if (rc < 0)
		return sl_fail("copy", -rc);
	sl_argv_start(&argv, path, o->cmd);
	sl_argv_add(&argv, "--copied");
	sl_argv_tail(&argv, o);
	return sl_exec(path, &argv);
}

static int memfd_exec(const struct sl_opts *o)
{
	static struct sl_argv argv;
	_cleanup_fd_ int fd = memfd_create(o->name ? o->name : "sl-load-memfd", MFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return errno == ENOSYS ? sl_skip("memfd_create", errno)
				       : sl_fail("memfd_create", errno);
	rc = sl_copy_self_to(fd);
	if (rc < 0)
		return sl_fail("copy", -rc);
	sl_tail_argv(&argv, "memfd", o);
	if (!argv.full)
		fexecve(fd, argv.v, environ);
	return sl_fail("fexecve", argv.full ? E2BIG : errno);
}

/* fexecve() is execveat() with an empty path: no name is looked up. */
static int fd_exec(const struct sl_opts *o)
{
	static struct sl_argv argv;
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	int rc = sl_self_path(o, o->name ? o->name : "sl-load-fd", path);

	if (rc < 0)
		return sl_fail("copy", -rc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return sl_fail("open", errno);
	sl_tail_argv(&argv, path, o);
	if (!argv.full)
		fexecve(fd, argv.v, environ);
	return sl_fail("fexecve", argv.full ? E2BIG : errno);
}

static int chroot_exec(const struct sl_opts *o)
{
	static struct sl_argv argv;
	const char *name = o->name ? o->name : "sl-load";
	/* On purpose not close-on-exec: the copy has no other way to /proc. */
	int proc = open("/proc", O_RDONLY | O_DIRECTORY);
	char path[PATH_MAX];
	int rc;

	if (proc < 0)
		return sl_fail("/proc", errno);
	rc = sl_copy_self(o->args[0], name, path);
	if (rc < 0)
		return sl_fail("copy", -rc);
	if (chroot(o->args[0]) < 0 || chdir("/") < 0)
		return sl_fail("chroot", errno);
	snprintf(path, sizeof(path), "/%s", name);
	sl_argv_start(&argv, path, "tail");
	sl_argv_add(&argv, "--fd");
	sl_argv_add(&argv, "%d", proc);
	sl_argv_tail(&argv, o);
	if (argv.full)
		return sl_fail("exec", E2BIG);
	execv(path, argv.v);
	/* A dynamic build has no loader there; nothing a kernel or policy did. */
	return errno == ENOENT ? sl_skip("a static build of sl-load", errno)
			       : sl_fail("exec", errno);
}

static int vfork_exec(const struct sl_opts *o)
{
	static struct sl_argv argv;
	char path[PATH_MAX];
	pid_t pid;
	int rc = sl_self_path(o, o->name ? o->name : "sl-load-vfork", path);

	if (rc < 0)
		return sl_fail("copy", -rc);
	sl_tail_argv(&argv, path, o);
	if (argv.full)
		return sl_fail("exec", E2BIG);
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): the shape it is */
	if (pid == 0) {
		execv(path, argv.v);
		_exit(SL_EXIT_FAIL);
	}
	return pid < 0 ? sl_fail("vfork", errno) : sl_wait(pid);
}

static int spawn_exec(const struct sl_opts *o)
{
	static struct sl_argv argv;
	char path[PATH_MAX];
	pid_t pid;
	int rc = sl_self_path(o, o->name ? o->name : "sl-load-spawn", path);

	if (rc < 0)
		return sl_fail("copy", -rc);
	sl_tail_argv(&argv, path, o);
	if (argv.full)
		return sl_fail("exec", E2BIG);
	rc = posix_spawn(&pid, path, NULL, NULL, argv.v, environ);
	return rc ? sl_fail("posix_spawn", rc) : sl_wait(pid);
}

const struct sl_cmd sl_exec_cmds[] = {
	{ .name = "exec-chain",
	  .run = exec_chain,
	  .args = "NAME...",
	  .max_args = -1,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "fork copied",
	  .help = "copies itself to DIR under each NAME, then executes them in turn, the last one "
		  "does the tail; --fork: each in a child of the one before" },
	{ .name = "self-exec-loop",
	  .run = self_exec_loop,
	  .args = "N",
	  .min_args = 1,
	  .max_args = 1,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS,
	  .help = "executes itself N times, then the tail" },
	{ .name = "unlink-self",
	  .run = unlink_self,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name copied",
	  .help = "executes a copy in DIR that unlinks itself before the tail" },
	{ .name = "memfd-exec",
	  .run = memfd_exec,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "executes a copy in a memfd, which does the tail" },
	{ .name = "fd-exec",
	  .run = fd_exec,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "executes itself or, with --dir, a copy by its descriptor (execveat)" },
	{ .name = "chroot-exec",
	  .run = chroot_exec,
	  .args = "ROOT",
	  .min_args = 1,
	  .max_args = 1,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "copies itself into ROOT, changes root, executes /NAME (sl-load)" },
	{ .name = "vfork-exec",
	  .run = vfork_exec,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "vfork, then exec of itself or, with --dir, of a copy" },
	{ .name = "posix-spawn",
	  .run = spawn_exec,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "the same by posix_spawn" },
	{ 0 },
};
