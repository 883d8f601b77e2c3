// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "broker/parse.h"

#define NS_PER_S 1000000000ULL
#define PAGE 4096UL

uint64_t sl_start_ticks(uint64_t start_ns)
{
	return start_ns / (NS_PER_S / sysconf(_SC_CLK_TCK));
}

/* A short file of /proc, terminated. */
static int read_proc(pid_t pid, const char *name, char *out, size_t size)
{
	_cleanup_fd_ int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, out, size - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

static int find_tgid(pid_t tid, pid_t *out)
{
	static const char key[] = "\nTgid:\t";
	char text[1024], *p;
	uint32_t tgid;
	int ret = read_proc(tid, "status", text, sizeof(text));

	if (ret)
		return ret;
	/* The name comes first, but with its newline escaped. */
	p = strstr(text, key);
	if (!p)
		return -ESRCH;
	p += strlen(key);
	p[strcspn(p, "\n")] = '\0';
	ret = sl_parse_u32(p, 1, INT32_MAX, &tgid);
	if (!ret)
		*out = (pid_t)tgid;
	return ret;
}

int sl_task_find(struct sl_task *out, pid_t tid)
{
	struct sl_task task = { .tid = tid };
	char text[1024];
	int ret = find_tgid(tid, &task.tgid);

	if (!ret)
		ret = read_proc(task.tgid, "stat", text, sizeof(text));
	if (!ret)
		ret = sl_parse_start_ticks(text, &task.start_ticks);
	if (!ret)
		*out = task;
	return ret;
}

int sl_task_read(pid_t tid, uint64_t addr, void *out, size_t len)
{
	struct iovec local = { .iov_base = out, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	ssize_t n;

	if (!len)
		return 0;
	n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

int sl_task_read_string(pid_t tid, uint64_t addr, char *out, size_t size)
{
	size_t done = 0;

	while (done < size) {
		/* Up to the end of a page: what follows need not be mapped. */
		size_t n = PAGE - ((addr + done) & (PAGE - 1));
		int ret;

		if (n > size - done)
			n = size - done;
		ret = sl_task_read(tid, addr + done, out + done, n);
		if (ret)
			return ret;
		if (memchr(out + done, '\0', n))
			return 0;
		done += n;
	}
	return -ENAMETOOLONG;
}

int sl_task_check_access(struct sl_err *err)
{
	static const uint32_t want = 0x51d0cafe;
	uint32_t got = 0;
	pid_t pid, self = getpid();
	int fds[2], ret;
	char byte;

	if (pipe2(fds, O_CLOEXEC))
		return sl_err_sys(err, errno, "can't make a pipe");
	pid = fork();
	if (!pid) {
		/* Who is killed meanwhile must not leave one behind that has all its listeners. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != self)
			_exit(1);
		/* As a program of another user, or one that gained privilege. */
		if (prctl(PR_SET_DUMPABLE, 0) || write(fds[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return sl_err_sys(err, errno, "can't fork");
	}
	ret = read(fds[0], &byte, 1) == 1 ? sl_task_read(pid, (uintptr_t)&want, &got, sizeof(got))
					  : -ECHILD;
	close(fds[0]);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!ret && got == want)
		return 0;
	sl_err_sys(err, ret ? -ret : EIO, "can't read the memory of the tasks to be held");
	return sl_err_hint(err,
			   "the broker needs CAP_SYS_PTRACE, and no Yama or LSM rule against it");
}
