/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verbs of a process that tries to leave its sandbox, or to use processes outside of it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "do.h"
#include "proc.h"

static long result(long rc)
{
	return rc < 0 ? -errno : rc;
}

static long number(const char *arg, uint64_t *out)
{
	return sl_number(arg, INT_MAX, out) < 0 ? sl_usage("do: no number '%s'", arg) : 0;
}

static long do_cgroup(struct sl_doer *doer, const char *arg)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];

	(void)doer;
	snprintf(path, sizeof(path), "%s/cgroup.procs", arg);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, "0", 1) < 0 ? -errno : 0;
}

static long do_netns(struct sl_doer *doer, const char *arg)
{
	(void)doer, (void)arg;
	return result(unshare(CLONE_NEWNET));
}

static long do_userns(struct sl_doer *doer, const char *arg)
{
	(void)doer, (void)arg;
	return result(unshare(CLONE_NEWUSER | CLONE_NEWNET));
}

static long do_setns(struct sl_doer *doer, const char *arg)
{
	_cleanup_fd_ int fd = open(arg, O_RDONLY | O_CLOEXEC);

	(void)doer;
	return fd < 0 ? -errno : result(setns(fd, 0));
}

/* The rest is the child's; the parent ends as it does. */
static long do_fork(struct sl_doer *doer, const char *arg)
{
	pid_t pid = sl_fork();

	(void)doer, (void)arg;
	if (pid > 0)
		sl_exit(sl_wait(pid));
	return pid;
}

static long do_setuid(struct sl_doer *doer, const char *arg)
{
	uint64_t id;
	long rc = number(arg, &id);

	(void)doer;
	if (rc < 0)
		return rc;
	if (setgroups(0, NULL) < 0 || setgid((gid_t)id) < 0)
		return -errno;
	return result(setuid((uid_t)id));
}

/* Detaches every link that there is; how many. */
static long do_detach(struct sl_doer *doer, const char *arg)
{
	union bpf_attr attr = { 0 };
	long detached = 0, fd;

	(void)doer, (void)arg;
	for (;;) {
		attr.next_id = 0;
		if (syscall(SYS_bpf, BPF_LINK_GET_NEXT_ID, &attr, sizeof(attr)) < 0)
			break;
		attr.start_id = attr.next_id;
		attr.link_id = attr.next_id;
		fd = syscall(SYS_bpf, BPF_LINK_GET_FD_BY_ID, &attr, sizeof(attr));
		if (fd < 0)
			break;
		memset(&attr, 0, sizeof(attr));
		attr.link_detach.link_fd = (uint32_t)fd;
		if (syscall(SYS_bpf, BPF_LINK_DETACH, &attr, sizeof(attr)) < 0)
			break;
		detached++;
	}
	return detached ?: -errno;
}

/* Memory of another process: where does not matter, EFAULT says that it may. */
static long do_poke(struct sl_doer *doer, const char *arg)
{
	char byte = 0;
	struct iovec local = { &byte, 1 }, remote = { NULL, 1 };
	uint64_t pid;
	long rc = number(arg, &pid);

	(void)doer;
	return rc < 0 ? rc : result(process_vm_writev((pid_t)pid, &local, 1, &remote, 1, 0));
}

static long do_mem(struct sl_doer *doer, const char *arg)
{
	_cleanup_fd_ int fd = -1;
	char path[64];
	uint64_t pid;
	long rc = number(arg, &pid);

	(void)doer;
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "/proc/%u/mem", (unsigned int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

/* "PID.FD": a descriptor of another process becomes the current socket. */
static long do_getfd(struct sl_doer *doer, const char *arg)
{
	_cleanup_fd_ int pidfd = -1;
	int pid, fd;

	if (sscanf(arg, "%d.%d", &pid, &fd) != 2)
		return sl_usage("getfd: no PID.FD '%s'", arg);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pidfd < 0 ? -errno : sl_do_use(doer, result(syscall(SYS_pidfd_getfd, pidfd, fd, 0)));
}

static long do_attach(struct sl_doer *doer, const char *arg)
{
	uint64_t pid;
	long rc = number(arg, &pid);

	(void)doer;
	if (rc < 0)
		return rc;
	if (ptrace(PTRACE_SEIZE, (pid_t)pid, 0, 0) < 0)
		return -errno;
	ptrace(PTRACE_INTERRUPT, (pid_t)pid, 0, 0);
	waitpid((pid_t)pid, NULL, __WALL);
	return result(ptrace(PTRACE_DETACH, (pid_t)pid, 0, 0));
}

/* What a debugger does: traces a child to its end; how many system calls it saw. */
static long do_trace(struct sl_doer *doer, const char *arg)
{
	pid_t pid = sl_fork();
	long stops = 0;
	int status;

	(void)doer, (void)arg;
	if (pid < 0)
		return pid;
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(getppid() ? 0 : 1);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		stops++;
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? stops : -EPERM;
}

const struct sl_verb sl_leave_verbs[] = {
	{ "cgroup", do_cgroup },
	{ "netns", do_netns },
	{ "userns", do_userns },
	{ "setns", do_setns },
	{ "fork", do_fork },
	{ "setuid", do_setuid },
	{ "detach", do_detach },
	{ "poke", do_poke },
	{ "mem", do_mem },
	{ "getfd", do_getfd },
	{ "attach", do_attach },
	{ "trace", do_trace },
	{ 0 },
};
