/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server of the resolve benchmark, which asks and judges the answers. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench.h"
#include "resolve.h"

/* Without any client for this long, the run has failed. */
#define STALL_NS 10000000000ULL
#define SAMPLES_AT_ONCE 5
#define BACKLOG 4096

struct server {
	struct resolve *resolve;
	struct pollfd polls[RESOLVE_LISTENERS];
	uint64_t interval;     /* clients between two pauses for /proc */
	uint64_t next_pause;   /* in clients served */
	unsigned int good_exe; /* executable id known to be ours; 0: none yet */
	uint64_t tick_ns;
};

/* In the server itself, inside the sandbox: accepted sockets belong to it. */
static int listen_all(struct resolve *resolve)
{
	struct timeval timeout = { .tv_sec = 5 };

	for (unsigned int i = 0; i < RESOLVE_LISTENERS; i++) {
		union resolve_addr addr = { .in6.sin6_family = AF_INET6,
					    .in6.sin6_addr = IN6ADDR_LOOPBACK_INIT };
		socklen_t len = sizeof(addr.in6);
		_cleanup_fd_ int fd = -1;

		if (i % 2 == 0) {
			addr.in = (struct sockaddr_in){ .sin_family = AF_INET,
							.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
			len = sizeof(addr.in);
		}
		fd = socket(addr.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0 && errno == EAFNOSUPPORT && i % 2)
			continue; /* no IPv6 here */
		if (fd < 0 || bind(fd, &addr.sa, len))
			return -errno;
		/* Accepted sockets inherit the timeout. */
		if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
		    listen(fd, BACKLOG) || getsockname(fd, &addr.sa, &len))
			return -errno;
		resolve->addrs[resolve->listener_count] = addr;
		resolve->listeners[resolve->listener_count++] = TAKE_FD(fd);
	}
	return 0;
}

/* Asks by descriptor. The time is that of the question alone. */
static int ask_fd(struct resolve *resolve, int fd, struct sl_sock *sock, enum resolve_method method)
{
	struct resolve_result *result = &resolve->results[method];
	uint64_t start = sl_bench_now_ns(), ns;
	int rc = sl_sock_by_fd(resolve->set, fd, sock);

	ns = sl_bench_now_ns() - start;
	if (result->asked < result->room)
		result->times[result->asked] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	result->asked++;
	if (!rc && !(sock->flags & SL_SOCK_PEER_KNOWN))
		rc = -ENOENT;
	return rc;
}

/* All clients run this program's image: the answer must name it. */
static bool exe_right(struct server *server, unsigned int id)
{
	struct resolve *resolve = server->resolve;
	static struct sl_exe exe;

	if (id == server->good_exe)
		return true;
	if (sl_exe_by_id(resolve->set, id, &exe) || strcmp(exe.path, resolve->exe) != 0)
		return false;
	server->good_exe = id;
	return true;
}

static void judge_fd(struct server *server, enum resolve_method method, int rc,
		     const struct sl_sock *sock, const struct resolve_truth *truth)
{
	struct resolve_result *result = &server->resolve->results[method];

	/* Without its image, the answer says too little. */
	if (rc || !sock->peer.exe || !sock->peer.lineage)
		result->unresolved++;
	else if (sock->peer.ns_pid != truth->pid ||
		 sock->peer.start_ns / server->tick_ns != truth->start_ticks ||
		 !exe_right(server, sock->peer.exe))
		result->wrong++;
}

/* Reads what the client said; -EIO when it said nothing whole. */
static int read_truth(int fd, struct resolve_truth *truth)
{
	return recv(fd, truth, sizeof(*truth), MSG_WAITALL) == sizeof(*truth) ? 0 : -EIO;
}

static void serve(struct server *server, int fd)
{
	struct resolve *resolve = server->resolve;
	static struct sl_sock at_accept, exited;
	struct resolve_truth truth;
	int first, second;
	char byte;

	first = ask_fd(resolve, fd, &at_accept, RESOLVE_ACCEPT);
	if (read_truth(fd, &truth)) {
		/* Counted, so that no client drops out of the sum. */
		resolve->results[RESOLVE_ACCEPT].unresolved++;
	} else {
		judge_fd(server, RESOLVE_ACCEPT, first, &at_accept, &truth);
		if (recv(fd, &byte, 1, 0) == 0) {
			second = ask_fd(resolve, fd, &exited, RESOLVE_EXITED);
			judge_fd(server, RESOLVE_EXITED, second, &exited, &truth);
		}
	}
	__atomic_store_n(&resolve->served, resolve->served + 1, __ATOMIC_RELEASE);
}

/* Waits for a connection on any listener. -EAGAIN: none within the time. */
static int wait_ready(struct server *server, int timeout_ms)
{
	int rc = poll(server->polls, server->resolve->listener_count, timeout_ms);

	return rc > 0 ? 0 : rc < 0 && errno != EINTR ? -errno : -EAGAIN;
}

static int accept_one(const struct server *server, unsigned int listener)
{
	return accept4(server->resolve->listeners[listener], NULL, NULL, SOCK_CLOEXEC);
}

/* Accepts and serves all that wait; returns how many. */
static unsigned int serve_ready(struct server *server)
{
	unsigned int count = 0;
	int fd;

	for (unsigned int i = 0; i < server->resolve->listener_count; i++) {
		if (!server->polls[i].revents)
			continue;
		while ((fd = accept_one(server, i)) >= 0) {
			serve(server, fd);
			close(fd);
			count++;
		}
	}
	return count;
}

static void sample(struct server *server, int fd, enum resolve_method method)
{
	struct resolve *resolve = server->resolve;
	struct resolve_result *result = &resolve->results[method];
	struct resolve_truth truth, found = { 0 };
	static struct sl_sock sock;
	uint64_t start, ns;
	int quiet = ask_fd(resolve, fd, &sock, RESOLVE_QUIET), rc;

	start = sl_bench_now_ns();
	rc = resolve_proc(fd, &found, &resolve->proc_entries);
	ns = sl_bench_now_ns() - start;
	if (result->asked < result->room)
		result->times[result->asked] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	result->asked++;
	if (read_truth(fd, &truth)) {
		/* Counted, so that no client drops out of the sum. */
		resolve->results[RESOLVE_QUIET].unresolved++;
		result->unresolved++;
		return;
	}
	judge_fd(server, RESOLVE_QUIET, quiet, &sock, &truth);
	if (rc)
		result->unresolved++;
	else if (found.pid != truth.pid || found.start_ticks != truth.start_ticks)
		result->wrong++;
}

/* Asks the sampler for one client, and /proc for its owner. */
static int sample_client(struct server *server, char command, enum resolve_method method)
{
	int fd, rc;

	if (write(server->resolve->command[1], &command, 1) != 1)
		return -errno;
	rc = wait_ready(server, 5000);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < server->resolve->listener_count; i++) {
		if (!server->polls[i].revents)
			continue;
		fd = accept_one(server, i);
		if (fd < 0)
			continue;
		sample(server, fd, method);
		close(fd);
		return 0;
	}
	return -EAGAIN;
}

static uint64_t started(const struct resolve *resolve)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < resolve->jobs; i++)
		sum += __atomic_load_n(&resolve->started[i], __ATOMIC_ACQUIRE);
	return sum;
}

static uint64_t failed(const struct resolve *resolve)
{
	return __atomic_load_n(&resolve->failed, __ATOMIC_ACQUIRE);
}

static bool stopping(const struct resolve *resolve)
{
	return __atomic_load_n(&resolve->stop, __ATOMIC_ACQUIRE);
}

/* Serves until `target` clients, or all that were started when that is 0, are done. */
static int serve_until(struct server *server, uint64_t target)
{
	struct resolve *resolve = server->resolve;
	uint64_t last = sl_bench_now_ns();
	int rc;

	while (resolve->served + failed(resolve) < (target ?: started(resolve)) &&
	       !stopping(resolve)) {
		rc = wait_ready(server, 20);
		if (rc && rc != -EAGAIN)
			return rc;
		if (!rc && serve_ready(server))
			last = sl_bench_now_ns();
		else if (sl_bench_now_ns() - last > STALL_NS)
			return -ETIMEDOUT;
	}
	return 0;
}

static int pause_for_proc(struct server *server)
{
	struct resolve *resolve = server->resolve;
	struct resolve_result *result = &resolve->results[RESOLVE_PROC];
	uint64_t start;
	int rc;

	__atomic_store_n(&resolve->paused, 1, __ATOMIC_RELEASE);
	/* A job may just have seen that it may go on: let that client start. */
	usleep(2000);
	rc = serve_until(server, 0);
	start = sl_bench_now_ns();
	for (int i = 0; i < SAMPLES_AT_ONCE && !rc && result->asked < resolve->proc_samples; i++)
		rc = sample_client(server, RESOLVE_GO, RESOLVE_PROC);
	if (!rc)
		rc = sample_client(server, RESOLVE_WAIT, RESOLVE_PROC_ALIVE);
	resolve->elapsed_ns -= sl_bench_now_ns() - start;
	__atomic_store_n(&resolve->paused, 0, __ATOMIC_RELEASE);
	return rc;
}

int resolve_server(void *arg)
{
	struct resolve *resolve = arg;
	struct server server = {
		.resolve = resolve,
		.tick_ns = 1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK),
	};
	uint64_t pauses = (resolve->proc_samples + SAMPLES_AT_ONCE - 1) / SAMPLES_AT_ONCE, start;
	int rc = listen_all(resolve);

	if (rc)
		return -rc & 0xff;
	for (unsigned int i = 0; i < resolve->listener_count; i++)
		server.polls[i] = (struct pollfd){ .fd = resolve->listeners[i], .events = POLLIN };
	server.interval = pauses ? resolve->clients / pauses ?: 1 : resolve->clients;
	__atomic_store_n(&resolve->ready, 1, __ATOMIC_RELEASE);
	start = sl_bench_now_ns();
	while (resolve->served + failed(resolve) < resolve->clients && !rc && !stopping(resolve)) {
		server.next_pause += server.interval;
		if (server.next_pause > resolve->clients)
			server.next_pause = resolve->clients;
		rc = serve_until(&server, server.next_pause);
		if (!rc && !stopping(resolve) &&
		    resolve->results[RESOLVE_PROC].asked < resolve->proc_samples)
			rc = pause_for_proc(&server);
	}
	resolve->elapsed_ns += sl_bench_now_ns() - start;
	__atomic_store_n(&resolve->stop, 1, __ATOMIC_RELEASE);
	return rc ? -rc & 0xff : 0;
}
