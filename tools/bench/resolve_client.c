/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clients of the resolve benchmark and the processes that make them. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "resolve.h"

#define STACK_SIZE (64 * 1024)

struct client {
	struct resolve *resolve;
	uint32_t seq;
	bool wait; /* for the server to close, before it ends */
};

int resolve_start_ticks(const char *path, uint64_t *ticks)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024], *at;
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	/* The comm in field 2 may hold anything: count from the last ')', after field 2. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -EPROTO;
	*ticks = strtoull(at + 1, NULL, 10);
	return 0;
}

static int client_connect(const struct client *client)
{
	const struct resolve *resolve = client->resolve;
	const union resolve_addr *addr = &resolve->addrs[client->seq % resolve->listener_count];
	struct resolve_truth truth = { .pid = (uint32_t)getpid(), .seq = client->seq };
	socklen_t len = addr->sa.sa_family == AF_INET ? sizeof(addr->in) : sizeof(addr->in6);
	int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;
	char byte;

	if (fd < 0)
		return -errno;
	if (connect(fd, &addr->sa, len))
		return -errno;
	rc = resolve_start_ticks("/proc/self/stat", &truth.start_ticks);
	if (rc)
		return rc;
	if (send(fd, &truth, sizeof(truth), MSG_NOSIGNAL) != sizeof(truth))
		return -errno;
	if (client->wait && read(fd, &byte, 1) < 0)
		return -errno;
	return 0; /* the descriptor is left to exit */
}

/*
 * Ends by the bare system call: the process runs in its parent's memory, where exit
 * handlers and stream buffers are not its own. Nor is errno: the parent is suspended.
 */
static int client_main(void *arg)
{
	struct client *client = arg;
	int rc = client_connect(client);

	if (rc) {
		__atomic_store_n(&client->resolve->failed_errno, -rc, __ATOMIC_RELAXED);
		__atomic_fetch_add(&client->resolve->failed, 1, __ATOMIC_RELEASE);
	}
	syscall(SYS_exit_group, 0);
	return 0;
}

/* A process of its own that shares memory, as vfork(2): cheaper than fork, still a client. */
static int client_spawn(struct client *client, char *stack)
{
	pid_t pid =
		clone(client_main, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, client);

	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static char *stack_new(void)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	return stack == MAP_FAILED ? NULL : stack;
}

static bool may_start(const struct resolve *resolve, uint64_t done)
{
	uint64_t served = __atomic_load_n(&resolve->served, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&resolve->paused, __ATOMIC_ACQUIRE))
		return false;
	/* Each job assumes that the server takes from all of them alike. */
	return done <= served / resolve->jobs + RESOLVE_WINDOW / resolve->jobs;
}

int resolve_crowd(void *arg)
{
	const struct resolve_job *job = arg;
	struct resolve *resolve = job->resolve;
	struct client client = { .resolve = resolve };
	char *stack = stack_new();
	uint64_t share =
		resolve->clients / resolve->jobs + (job->index < resolve->clients % resolve->jobs);

	if (!stack)
		return 1;
	for (uint64_t i = 0; i < share; i++) {
		while (!may_start(resolve, i)) {
			if (__atomic_load_n(&resolve->stop, __ATOMIC_ACQUIRE))
				return 0;
			usleep(50);
		}
		client.seq = (uint32_t)(i * resolve->jobs + job->index);
		__atomic_fetch_add(&resolve->started[job->index], 1, __ATOMIC_ACQ_REL);
		if (client_spawn(&client, stack))
			return 1;
	}
	return 0;
}

int resolve_sampler(void *arg)
{
	struct resolve *resolve = arg;
	struct client client = { .resolve = resolve };
	char *stack = stack_new();
	char command;

	if (!stack)
		return 1;
	while (read(resolve->command[0], &command, 1) == 1) {
		client.wait = command == RESOLVE_WAIT;
		if (client_spawn(&client, stack))
			return 1;
		client.seq++;
	}
	return 0;
}
