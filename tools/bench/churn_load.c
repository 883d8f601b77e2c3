/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makers and takers of short connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "churn.h"

/* Connections that one process makes before it ends and another takes over. */
#define PER_PROCESS 500
/* Of this many connections, one goes to the port that refuses. */
#define REFUSED_OF 8
#define BACKLOG 4096

static bool stopping(const struct churn *churn)
{
	return __atomic_load_n(&churn->stop, __ATOMIC_ACQUIRE);
}

uint64_t churn_done(const struct churn *churn)
{
	return __atomic_load_n(&churn->connected, __ATOMIC_ACQUIRE) +
	       __atomic_load_n(&churn->refused, __ATOMIC_ACQUIRE) +
	       __atomic_load_n(&churn->failed, __ATOMIC_ACQUIRE);
}

int churn_server(void *arg)
{
	struct churn *churn = arg;
	_cleanup_fd_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd poller = { .fd = listener, .events = POLLIN };
	socklen_t len = sizeof(churn->open);
	int fd;

	churn->open = (struct sockaddr_in){ .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (listener < 0 || bind(listener, (struct sockaddr *)&churn->open, len) ||
	    listen(listener, BACKLOG) ||
	    getsockname(listener, (struct sockaddr *)&churn->open, &len))
		return 1;
	__atomic_store_n(&churn->ready, 1, __ATOMIC_RELEASE);
	while (!stopping(churn)) {
		poll(&poller, 1, 20);
		while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
			close(fd);
	}
	return 0;
}

/* Closes with RST, so that ports are free again at once. */
static void connect_once(struct churn *churn, bool refuse)
{
	const struct linger linger = { .l_onoff = 1 };
	const struct sockaddr_in *to = refuse ? &churn->closed : &churn->open;
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t *sum = &churn->connected;

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	if (fd < 0)
		sum = &churn->failed;
	else if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		sum = errno == ECONNREFUSED ? &churn->refused : &churn->failed;
	__atomic_fetch_add(sum, 1, __ATOMIC_RELEASE);
}

static void one_process(struct churn *churn, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (unsigned int i = 0; i < PER_PROCESS && !stopping(churn); i++)
		connect_once(churn, i % REFUSED_OF == 0);
	_exit(0);
}

int churn_worker(void *arg)
{
	struct churn *churn = arg;
	pid_t self = getpid(), pid;

	while (!stopping(churn) && churn_done(churn) < churn->target) {
		pid = fork();
		if (pid < 0)
			return 1;
		if (!pid)
			one_process(churn, self);
		__atomic_fetch_add(&churn->processes, 1, __ATOMIC_RELEASE);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return 0;
}
