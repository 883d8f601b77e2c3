/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "child.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "bench.h"
#include "kernel/cgroup.h"

/* Never returns: the child must not run its parent's clean-up. */
static void child_main(const struct sl_child_spec *spec, pid_t parent)
{
	struct sl_err err = { 0 };
	cpu_set_t cpus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(SL_CHILD_LOST);
	/* A terminal's interrupt goes to all: the parent ends its children in order. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	if (spec->cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(spec->cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus))
			sl_log_warning("can't pin to CPU %d", spec->cpu);
	}
	if (spec->cgroup && sl_cgroup_enter(spec->cgroup, 0, &err)) {
		sl_log_err(SL_LOG_ERROR, &err);
		_exit(SL_CHILD_LOST);
	}
	_exit(spec->run(spec->arg));
}

int sl_child_start(struct sl_child *child, const struct sl_child_spec *spec, struct sl_err *err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return sl_err_sys(err, errno, "can't fork");
	if (!pid)
		child_main(spec, parent);
	child->pid = pid;
	return 0;
}

int sl_child_wait(struct sl_child *child, int timeout_ms, int *status)
{
	uint64_t deadline = sl_bench_now_ns() + (uint64_t)timeout_ms * 1000000ULL;
	pid_t pid;

	if (!child->pid)
		return -ECHILD;
	for (;;) {
		pid = waitpid(child->pid, status, WNOHANG);
		if (pid == child->pid) {
			child->pid = 0;
			return 0;
		}
		if (pid < 0 && errno != EINTR)
			return -errno;
		if (sl_bench_now_ns() >= deadline)
			return -ETIMEDOUT;
		poll(NULL, 0, 2);
	}
}

void sl_child_stop(struct sl_child *child)
{
	if (!child->pid)
		return;
	kill(child->pid, SIGKILL);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
	child->pid = 0;
}

int sl_shared_new(void **out, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	*out = memory;
	return 0;
}

void sl_shared_free(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}
