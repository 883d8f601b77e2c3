/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Process shapes made of forks: namespaces, credentials, daemons, reuse of a pid, storms. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc.h"
#include "tail.h"

#define LAST_PID "/proc/sys/kernel/ns_last_pid"
#define REUSE_TRIES 200

static void tell_child(pid_t pid, const char *name)
{
	struct sl_line line;
	uint64_t ticks = 0;

	(void)sl_start_ticks(pid, &ticks);
	sl_line_start(&line, "step");
	sl_line_add(&line, "pid", "%d", pid);
	sl_line_start_time(&line, ticks);
	sl_line_add(&line, "name", "%s", name);
	sl_line_end(&line);
}

/* The tail in a child; waits for it. */
static int tail_in_child(const struct sl_opts *o, const char *name)
{
	pid_t pid = sl_fork();

	if (pid < 0)
		return sl_fail("fork", -pid);
	if (pid == 0)
		sl_exit(sl_tail(o));
	if (name)
		tell_child(pid, name);
	return sl_wait(pid);
}

static int ns_pid(const struct sl_opts *o)
{
	if (unshare(CLONE_NEWPID) < 0)
		return errno == EINVAL ? sl_skip("pid namespaces", errno)
				       : sl_fail("unshare", errno);
	return tail_in_child(o, "host-pid");
}

static int set_uid(const struct sl_opts *o)
{
	uint64_t id;

	if (sl_number(o->args[0], 4294967294ULL, &id) < 0)
		return sl_usage("%s: not a user id", o->cmd);
	if (setgroups(0, NULL) < 0 || setgid((gid_t)id) < 0 || setuid((uid_t)id) < 0)
		return sl_fail("setuid", errno);
	return sl_tail(o);
}

/* Nobody waits for a detached child's output: a test that reads to the end must not either. */
static int leave_stdout(void)
{
	_cleanup_fd_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return dup2(fd, STDOUT_FILENO) < 0 ? -errno : 0;
}

static int double_fork(const struct sl_opts *o)
{
	_cleanup_fd_ int read_end = -1, write_end = -1;
	unsigned char code = SL_EXIT_FAIL;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return sl_fail("pipe2", errno);
	read_end = ends[0];
	write_end = ends[1];
	pid = sl_fork();
	if (pid < 0)
		return sl_fail("fork", -pid);
	if (pid == 0) {
		if (setsid() < 0 || (pid = sl_fork()) < 0)
			_exit(SL_EXIT_FAIL);
		if (pid > 0)
			_exit(SL_EXIT_OK);
		if (o->detach && leave_stdout() < 0)
			_exit(SL_EXIT_FAIL);
		code = (unsigned char)sl_exit_code(sl_tail(o));
		_exit(write(write_end, &code, 1) == 1 ? code : SL_EXIT_FAIL);
	}
	if (sl_wait(pid) < 0)
		return sl_fail("the daemon's parent", EIO);
	sl_cleanup_fd(&write_end);
	if (o->detach)
		return 0;
	/* A tail command closes the pipe at its exec: its result is its own. */
	if (read(read_end, &code, 1) != 1)
		return o->tail ? 0 : -EIO;
	return code == SL_EXIT_OK ? 0 : -EIO;
}

static int orphan(const struct sl_opts *o)
{
	uint64_t seconds = 1;
	pid_t pid;

	if (o->n_args > 0 && sl_number(o->args[0], 3600, &seconds) < 0)
		return sl_usage("%s: not a number of seconds", o->cmd);
	pid = sl_fork();
	if (pid < 0)
		return sl_fail("fork", -pid);
	if (pid > 0) {
		tell_child(pid, "orphan");
		return 0;
	}
	if (o->detach && leave_stdout() < 0)
		_exit(SL_EXIT_FAIL);
	sl_sleep_ms((unsigned int)seconds * 1000);
	sl_exit(sl_tail(o));
}

/* Has the next fork of this pid namespace get `pid`, if nobody forks in between. */
static int set_next_pid(pid_t pid)
{
	_cleanup_fd_ int fd = open(LAST_PID, O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", pid - 1);

	if (fd < 0)
		return -errno;
	return write(fd, text, (size_t)n) < 0 ? -errno : 0;
}

/* Forks until the child has `pid`; children with another one end without a tail. */
static int fork_as(const struct sl_opts *o, pid_t pid)
{
	for (int i = 0; i < REUSE_TRIES; i++) {
		int rc = set_next_pid(pid), gate[2];
		char go = 0;
		pid_t got;

		if (rc < 0)
			return sl_skip(LAST_PID, -rc);
		if (pipe2(gate, O_CLOEXEC) < 0)
			return sl_fail("pipe2", errno);
		got = sl_fork();
		if (got == 0) {
			close(gate[1]);
			sl_exit(read(gate[0], &go, 1) == 1 ? sl_tail(o) : 0);
		}
		close(gate[0]);
		rc = got == pid && write(gate[1], &go, 1) != 1 ? errno : 0;
		close(gate[1]);
		if (rc)
			return sl_fail("telling the child to go on", rc);
		if (got < 0)
			return sl_fail("fork", -got);
		if (got == pid)
			return sl_wait(got);
		(void)sl_wait(got);
	}
	return sl_skip("the same pid again (others fork too)", EBUSY);
}

static int pid_reuse(const struct sl_opts *o)
{
	pid_t pid = sl_fork();
	int rc;

	if (pid < 0)
		return sl_fail("fork", -pid);
	if (pid == 0)
		sl_exit(sl_tail(o));
	rc = sl_wait(pid);
	/* Two ticks, so that the start times in /proc differ as well. */
	sl_sleep_ms(20);
	return rc < 0 ? rc : fork_as(o, pid);
}

/* One child of the storm. */
static void storm_child(const struct sl_opts *o, struct sl_argv *argv) __attribute__((noreturn));

static void storm_child(const struct sl_opts *o, struct sl_argv *argv)
{
	if (o->tail)
		execvp(o->tail[0], o->tail);
	else
		execv(argv->v[0], argv->v);
	_exit(127);
}

static int storm_argv(const struct sl_opts *o, struct sl_argv *argv)
{
	struct sl_opts child = *o;
	char path[PATH_MAX];
	int rc;

	/* count is the storm's; a child connects once, or is true. */
	child.count = SL_UNSET;
	if (!o->dir && o->n_servers == 0) {
		argv->n = 0;
		argv->used = 0;
		argv->full = false;
		sl_argv_add(argv, "/bin/true");
		return 0;
	}
	rc = sl_self_path(o, o->name ? o->name : "sl-load-storm", path);
	if (rc == 0)
		sl_tail_argv(argv, path, &child);
	return rc < 0 ? rc : argv->full ? -E2BIG : 0;
}

static void tell_storm(uint64_t count, uint64_t ok)
{
	struct sl_line line;

	sl_line_start(&line, "total");
	sl_line_self(&line);
	sl_line_u64(&line, "tried", count);
	sl_line_u64(&line, "ok", ok);
	sl_line_u64(&line, "failed", count - ok);
	sl_line_end(&line);
}

static int spawn_storm(const struct sl_opts *o)
{
	uint64_t count = sl_or(o->count, 100), jobs = sl_or(o->jobs, 1);
	uint64_t started = 0, running = 0, ok = 0, start = sl_now_ns();
	static struct sl_argv argv;
	int rc = storm_argv(o, &argv);

	if (rc < 0 || jobs == 0)
		return sl_fail("prepare", rc < 0 ? -rc : EINVAL);
	while (started < count || running > 0) {
		pid_t pid;

		if (started == count || running == jobs) {
			ok += sl_reap_one(o->quiet) == 0;
			running--;
			continue;
		}
		sl_pace(start, started, sl_or(o->rate, 0));
		pid = sl_fork();
		if (pid == 0)
			storm_child(o, &argv);
		if (pid < 0)
			return sl_fail("fork", -pid);
		started++;
		running++;
	}
	tell_storm(count, ok);
	return ok == count ? 0 : -ECHILD;
}

const struct sl_cmd sl_fork_cmds[] = {
	{ .name = "ns-pid",
	  .run = ns_pid,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS,
	  .help = "the tail in a new pid namespace; what=step has the pid outside, what=proc "
		  "ns_pid=1" },
	{ .name = "setuid",
	  .run = set_uid,
	  .args = "UID",
	  .min_args = 1,
	  .max_args = 1,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS,
	  .help = "drops to UID (and the group of that number), then the tail" },
	{ .name = "double-fork",
	  .run = double_fork,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "detach",
	  .help = "a daemon does the tail; waits for it without --detach" },
	{ .name = "orphan",
	  .run = orphan,
	  .args = "[SECONDS]",
	  .max_args = 1,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "detach",
	  .help = "ends at once; its child does the tail SECONDS (1) later" },
	{ .name = "pid-reuse",
	  .run = pid_reuse,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS,
	  .help = "the tail in two children, one after the other, with the same pid (by "
		  "ns_last_pid; 77 when that can't be done)" },
	{ .name = "spawn-storm",
	  .run = spawn_storm,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name jobs rate quiet",
	  .help = "COUNT (100) times fork and exec, JOBS at once: the command; with --server or "
		  "--dir itself or a copy; else /bin/true" },
	{ 0 },
};
