/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A workload that does nothing but what fails, races, or is denied. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "storm.h"

/* Above the largest pid there can be (PID_MAX_LIMIT, include/linux/threads.h). */
#define NOBODY ((1 << 22) + 1)

static void fail_calls(struct storm *storm)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in peer;
	socklen_t len;

	for (uint64_t i = 0; i < storm->calls; i++) {
		len = sizeof(peer);
		if (i % 2 && (!kill(NOBODY, 0) || errno != ESRCH))
			storm->wrong++;
		if (i % 2 == 0 &&
		    (!getpeername(fd, (struct sockaddr *)&peer, &len) || errno != ENOTCONN))
			storm->wrong++;
	}
}

static void denied_calls(struct storm *storm)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (uint64_t i = 0; i < storm->denied; i++) {
		if (sendto(fd, "", 1, 0, (struct sockaddr *)&storm->to, sizeof(storm->to)) >= 0 ||
		    errno != EACCES)
			storm->wrong++;
	}
}

/* The answerer kills each of them while it waits for its answer. */
static void killed_targets(struct storm *storm)
{
	int status, fd;
	pid_t pid;

	for (uint64_t i = 0; i < storm->targets; i++) {
		pid = fork();
		if (!pid) {
			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			_exit(connect(fd, (struct sockaddr *)&storm->to, sizeof(storm->to)) < 0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
		    WTERMSIG(status) != SIGKILL)
			storm->wrong++;
	}
}

int storm_workload(void *arg)
{
	struct storm_work *work = arg;
	struct sl_err err = { 0 };

	if (sl_handoff_give(work->handoff, work->filter, work->flags, &err)) {
		sl_log_err(SL_LOG_ERROR, &err);
		return 1;
	}
	fail_calls(work->storm);
	denied_calls(work->storm);
	killed_targets(work->storm);
	return 0;
}
