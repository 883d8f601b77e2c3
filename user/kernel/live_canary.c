/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The canary: a child enters the sandbox's cgroup, connects over loopback to a listener of
 * its own, which every policy allows, sends one byte, closes, and exits. Its record must
 * appear twice: as the owner of the live tuple, and among the closed sockets with the byte
 * counted.
 *
 *	this process              child (in the sandbox from here)
 *	fork, cgroup.procs  ->
 *	"go"                ->    listen, socket, connect, send
 *	                    <-    report: error, own pid, both ends
 *	look up
 *	"close"             ->    close
 *	                    <-    report
 *	look up                   _exit
 *
 * Every wait has the same deadline. A child that is stuck, or frozen, is killed; SIGKILL
 * reaches a frozen task of cgroup2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/cgroup.h"
#include "kernel/live_private.h"
#include "kernel/set_private.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define CANARY_COMM "sluice-canary"
#define REAP_MS 1000

/* What the child tells. */
struct report {
	int error; /* positive errno of the first step that failed, 0 */
	int pid;   /* in its own pid namespace */
	struct sockaddr_in local, remote;
};

struct canary {
	struct sl_set *set;
	const struct sl_sandbox *sandbox;
	struct sl_condition *condition;
	long long deadline_ms; /* CLOCK_MONOTONIC */
	int control;           /* SEQPACKET to the child */
	pid_t pid;
	unsigned long long start_ticks;
	struct report report;
	char made[2 * PATH_MAX]; /* cgroup to remove, or "" */
};

/* Waits until `fd` is readable. 0, -ETIMEDOUT, or another -errno. */
static int wait_readable(const struct canary *canary, int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	long long left;
	int n;

	do {
		left = canary->deadline_ms - sl_monotonic_ms();
		if (left < 0)
			return -ETIMEDOUT;
		n = poll(&poll_fd, 1, (int)left);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

/* --- in the child --- */

static void child_report(int control, int error, int fd)
{
	struct report report = { .error = error, .pid = getpid() };
	socklen_t len = sizeof(report.local);

	if (fd >= 0 && (getsockname(fd, (struct sockaddr *)&report.local, &len) ||
			getpeername(fd, (struct sockaddr *)&report.remote, &len)))
		report.error = errno;
	if (send(control, &report, sizeof(report), MSG_NOSIGNAL) < 0)
		_exit(1);
}

static void child_wait(int control)
{
	char word;

	if (recv(control, &word, 1, 0) != 1)
		_exit(1);
}

/* A connection to itself, and a byte on its way; -1 with errno. */
static int child_connect(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(to);

	if (listener < 0 || fd < 0 || bind(listener, (struct sockaddr *)&to, len) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&to, &len) ||
	    connect(fd, (struct sockaddr *)&to, len) || send(fd, "c", 1, MSG_NOSIGNAL) != 1)
		return -1;
	return fd;
}

static void __attribute__((noreturn)) child_run(int control)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, CANARY_COMM);
	child_wait(control);
	fd = child_connect();
	if (fd < 0) {
		child_report(control, errno, -1);
		_exit(1);
	}
	child_report(control, 0, fd);
	child_wait(control);
	close(fd);
	child_report(control, 0, -1);
	_exit(0);
}

/* --- in this process --- */

static int canary_fork(struct canary *canary)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	canary->pid = fork();
	if (canary->pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return -errno;
	}
	if (!canary->pid) {
		close(pair[0]);
		child_run(pair[1]);
	}
	close(pair[1]);
	canary->control = pair[0];
	return 0;
}

/* Field 22 of /proc/PID/stat: start time in clock ticks. */
static int read_start(struct canary *canary)
{
	_cleanup_file_ FILE *file = NULL;
	char path[32], line[512];
	char *rest;

	snprintf(path, sizeof(path), "/proc/%d/stat", canary->pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (!fgets(line, sizeof(line), file))
		return -ESRCH;
	/* The name in parentheses may hold anything. */
	rest = strrchr(line, ')');
	if (!rest || sscanf(rest,
			    ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			    "%*s %*s %*s %*s %llu",
			    &canary->start_ticks) != 1)
		return -EPROTO;
	return 0;
}

/*
 * A cgroup that hands controllers to its children takes no process itself (EBUSY, "no
 * internal processes"): a child cgroup is a part of the sandbox as well.
 */
static int canary_enter(struct canary *canary, const char *path)
{
	int rc = sl_cgroup_enter(path, canary->pid, NULL);

	if (rc != -EBUSY)
		return rc;
	snprintf(canary->made, sizeof(canary->made), "%.4096s/" CANARY_COMM ".%d", path,
		 canary->pid);
	rc = sl_cgroup_create(canary->made, NULL);
	if (rc) {
		canary->made[0] = '\0';
		return rc;
	}
	return sl_cgroup_enter(canary->made, canary->pid, NULL);
}

/* Sends a word and waits for the report that answers it. */
static int canary_step(struct canary *canary, struct report *report)
{
	int rc;

	if (send(canary->control, "g", 1, MSG_NOSIGNAL) != 1)
		return -errno;
	rc = wait_readable(canary, canary->control);
	if (rc)
		return rc;
	return recv(canary->control, report, sizeof(*report), 0) == sizeof(*report) ? 0
										    : -ECONNRESET;
}

static bool is_canary(const struct canary *canary, const struct sl_owner *owner)
{
	/* As proc(5) makes ticks of nanoseconds: rounded down. */
	unsigned long long ns_per_tick = 1000000000ULL / (unsigned long long)sysconf(_SC_CLK_TCK);

	return owner->sandbox == canary->sandbox->id &&
	       owner->ns_pid == (__u32)canary->report.pid &&
	       owner->start_ns / ns_per_tick == canary->start_ticks;
}

static struct sl_endpoint endpoint_of(const struct sockaddr_in *address)
{
	struct sl_endpoint endpoint = {
		.addr_be = { 0, 0, htonl(0xffff), address->sin_addr.s_addr },
		.port_be = address->sin_port,
	};

	return endpoint;
}

/* The owner of the live connection, by its two ends. Fills the condition on failure. */
static bool check_live(struct canary *canary, struct sl_sock *found)
{
	struct sl_endpoint local = endpoint_of(&canary->report.local);
	struct sl_endpoint remote = endpoint_of(&canary->report.remote);
	unsigned long long netns = 0;
	socklen_t len = sizeof(netns);
	int rc;

	getsockopt(canary->control, SOL_SOCKET, SO_NETNS_COOKIE, &netns, &len);
	rc = sl_tuple_resolve(canary->set, &local, &remote, netns, found);
	if (rc) {
		sl_condition_set(
			canary->condition, SL_CONDITION_FALSE, "NotRecorded",
			"a connection from inside left no record (%s): what the sandbox does "
			"is not seen; detach it and attach again",
			strerror(-rc));
		return false;
	}
	if (is_canary(canary, &found->owner))
		return true;
	sl_condition_set(
		canary->condition, SL_CONDITION_FALSE, "WrongOwner",
		"a connection of process %d is recorded as of %u in sandbox %u; detach and "
		"attach again",
		canary->report.pid, found->owner.ns_pid, found->owner.sandbox);
	return false;
}

static void check_closed(struct canary *canary, __u64 cookie)
{
	struct sl_sock sock;
	int rc = sl_sock_by_cookie(canary->set, cookie, &sock);
	bool closed = !rc && sock.flags & SL_SOCK_RELEASED && is_canary(canary, &sock.owner);

	if (rc && rc != -ENOENT)
		sl_condition_set(canary->condition, SL_CONDITION_UNKNOWN, "ClosedUnreadable",
				 "can't read the closed sockets: %s", strerror(-rc));
	else if (!closed)
		sl_condition_set(canary->condition, SL_CONDITION_FALSE, "CloseNotRecorded",
				 "a socket closed inside is not among the closed ones; unless "
				 "thousands were closed meanwhile, detach and attach again");
	else if (!(sock.flags & SL_SOCK_CONNECTED))
		sl_condition_set(canary->condition, SL_CONDITION_FALSE, "ConnectNotRecorded",
				 "a connect made inside was not seen, only what followed; detach "
				 "and attach again");
	else if (sock.bytes_sent != 1)
		sl_condition_set(canary->condition, SL_CONDITION_FALSE, "WrongBytes",
				 "of 1 byte sent, %llu were counted",
				 (unsigned long long)sock.bytes_sent);
	else
		sl_condition_set(
			canary->condition, SL_CONDITION_TRUE, "CanaryRecorded",
			"a connection made inside was recorded with its process and bytes");
}

/* Frozen itself, or by a cgroup above ("frozen" of cgroup.events). */
static bool cgroup_frozen(const char *path)
{
	_cleanup_file_ FILE *file = NULL;
	char name[2 * PATH_MAX + 16], key[64];
	int value;

	snprintf(name, sizeof(name), "%s/cgroup.events", path);
	file = fopen(name, "re");
	while (file && fscanf(file, "%63s %d", key, &value) == 2)
		if (!strcmp(key, "frozen"))
			return value;
	return false;
}

/* A step failed on the way: says what stood in it. */
static void failed(struct canary *canary, const char *path, const char *what, int rc)
{
	if (cgroup_frozen(path))
		sl_condition_set(canary->condition, SL_CONDITION_UNKNOWN, "Frozen",
				 "the cgroup is frozen: a canary can't run in it; thaw it first");
	else if (rc == -ETIMEDOUT)
		sl_condition_set(canary->condition, SL_CONDITION_UNKNOWN, "TimedOut",
				 "%s: no answer in time; the cgroup may have no CPU (cpu.max) or "
				 "loopback drops packets",
				 what);
	else
		sl_condition_set(canary->condition, SL_CONDITION_UNKNOWN, "CanaryFailed", "%s: %s",
				 what, strerror(-rc));
}

static void connect_failed(struct canary *canary, int error)
{
	const bool loopback = error == ENETUNREACH || error == ENETDOWN || error == EADDRNOTAVAIL ||
			      error == EHOSTUNREACH;

	sl_condition_set(canary->condition, SL_CONDITION_UNKNOWN,
			 loopback ? "LoopbackDown" : "ConnectFailed",
			 "the canary's connect over loopback failed: %s%s", strerror(error),
			 loopback ? "; ip link set lo up" : "");
}

static void canary_run(struct canary *canary, const char *path)
{
	struct sl_sock owner;
	struct report done;
	int rc;

	rc = read_start(canary);
	if (rc)
		return failed(canary, path, "reading the canary's start time", rc);
	rc = canary_enter(canary, path);
	if (rc)
		return failed(canary, path, "entering the cgroup", rc);
	rc = canary_step(canary, &canary->report);
	if (rc)
		return failed(canary, path, "connecting from inside", rc);
	if (canary->report.error)
		return connect_failed(canary, canary->report.error);
	if (!check_live(canary, &owner))
		return;
	rc = canary_step(canary, &done);
	if (rc)
		return failed(canary, path, "closing inside", rc);
	check_closed(canary, owner.cookie);
}

/* Makes sure that nothing stays: the child, and the cgroup made for it. */
static void canary_end(struct canary *canary)
{
	_cleanup_fd_ int pidfd = -1;
	struct pollfd poll_fd;

	if (canary->control >= 0)
		close(canary->control);
	if (canary->pid > 0) {
		kill(canary->pid, SIGKILL);
		pidfd = (int)syscall(SYS_pidfd_open, canary->pid, 0);
		poll_fd = (struct pollfd){ .fd = pidfd, .events = POLLIN };
		if (pidfd >= 0)
			poll(&poll_fd, 1, REAP_MS);
		waitpid(canary->pid, NULL, pidfd >= 0 ? WNOHANG : 0);
	}
	if (canary->made[0])
		(void)sl_cgroup_destroy(canary->made, REAP_MS);
}

static bool guard_frozen(struct sl_set *set, __u32 sandbox)
{
	struct sl_guard guard;

	return !sl_map_lookup(sl_set_map_fd(set, SL_MAP_GUARDS), &sandbox, &guard) &&
	       guard.mode == SL_GUARD_FROZEN;
}

void sl_live_canary(struct sl_set *set, const struct sl_sandbox *sandbox, const char *path,
		    int timeout_ms, struct sl_condition *condition)
{
	struct canary canary = {
		.set = set,
		.sandbox = sandbox,
		.condition = condition,
		.deadline_ms = sl_monotonic_ms() + timeout_ms,
		.control = -1,
	};
	int rc;

	if (cgroup_frozen(path))
		return failed(&canary, path, "", 0);
	if (guard_frozen(set, sandbox->id)) {
		sl_condition_set(condition, SL_CONDITION_UNKNOWN, "Frozen",
				 "the sandbox is frozen: a canary would be denied; thaw it first");
		return;
	}
	rc = canary_fork(&canary);
	if (rc)
		failed(&canary, path, "starting a canary", rc);
	else
		canary_run(&canary, path);
	canary_end(&canary);
}
