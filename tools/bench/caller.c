/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "caller.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "bench.h"
#include "world.h"

#define IDLE_MS 2
#define BACKLOG 1024

/* Exit statuses of `once`. */
enum { ONCE_RIGHT, ONCE_USAGE = 100, ONCE_NOT_ALLOWED, ONCE_NOT_DENIED };

/* --- once --- */

static int connect_errno(uint32_t port)
{
	const struct linger linger = { .l_onoff = 1 };
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(SL_WORLD_ADDR),
					.sin_port = htons((uint16_t)port) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* Ended by RST: nothing stays in TIME_WAIT. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		return errno;
	return connect(fd, (const struct sockaddr *)&to, sizeof(to)) ? errno : 0;
}

static int once(int argc, char **argv)
{
	uint32_t port, denied;

	if (argc != 4 || sl_parse_u32(argv[2], 1, 65534, &port) ||
	    sl_parse_u32(argv[3], 0, 1, &denied))
		return ONCE_USAGE;
	if (connect_errno(port))
		return ONCE_NOT_ALLOWED;
	/* Nobody listens there. */
	return connect_errno(port + 1) == (denied ? EACCES : ECONNREFUSED) ? ONCE_RIGHT
									   : ONCE_NOT_DENIED;
}

void sl_caller_once(struct sl_caller_args *args, uint16_t port, bool denied)
{
	snprintf(args->text[0], sizeof(args->text[0]), "%u", port);
	snprintf(args->text[1], sizeof(args->text[1]), "%d", denied);
	args->argv[0] = SL_CALLER_ARGV0;
	args->argv[1] = "once";
	args->argv[2] = args->text[0];
	args->argv[3] = args->text[1];
	args->argv[4] = NULL;
}

/* --- loop --- */

unsigned int sl_hist_bucket(uint64_t us)
{
	unsigned int power, bucket;

	if (us < 16)
		return (unsigned int)us;
	power = 63 - (unsigned int)__builtin_clzll(us);
	bucket = 16 + (power - 4) * 8 + (unsigned int)(us >> (power - 3) & 7);
	return bucket < SL_HIST ? bucket : SL_HIST - 1;
}

uint32_t sl_hist_end(unsigned int bucket)
{
	unsigned int power = 4 + (bucket - 16) / 8;

	if (bucket < 16)
		return bucket;
	return (uint32_t)((8ULL + (bucket - 16) % 8 + 1) << (power - 3)) - 1;
}

/* 0, or why it was wrong. */
static int spawn_once(const struct sl_caller_args *args)
{
	char *const environment[] = { NULL };
	int status, rc;
	pid_t pid;

	rc = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char *const *)args->argv,
			 environment);
	if (rc)
		return rc;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void measure(struct sl_caller_slot *slot, const struct sl_caller_args *args)
{
	uint64_t start_us = sl_bench_now_ns() / 1000, us;
	int why;

	__atomic_store_n(&slot->since_us, start_us, __ATOMIC_RELAXED);
	__atomic_add_fetch(&slot->begun, 1, __ATOMIC_RELAXED);
	why = spawn_once(args);
	us = sl_bench_now_ns() / 1000 - start_us;
	slot->hist[sl_hist_bucket(us)]++;
	if (us > slot->max_us)
		slot->max_us = us;
	if (why) {
		slot->why = why;
		slot->wrong++;
	}
	__atomic_add_fetch(&slot->done, 1, __ATOMIC_RELEASE);
}

/* In each copy: until it is told to stop. */
static void run_loop(struct sl_callers *callers, const struct sl_caller_loop *loop)
{
	const struct timespec pause = { .tv_nsec = loop->pause_us * 1000L };
	struct sl_caller_args args;

	sl_caller_once(&args, loop->port, loop->denied);
	__atomic_add_fetch(&callers->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&callers->stop, __ATOMIC_ACQUIRE)) {
		if (!(__atomic_load_n(&callers->groups, __ATOMIC_ACQUIRE) & 1U << loop->group)) {
			poll(NULL, 0, IDLE_MS);
			continue;
		}
		measure(&callers->slot[loop->slot], &args);
		if (loop->pause_us)
			nanosleep(&pause, NULL);
	}
}

static int loop(int argc, char **argv)
{
	static const uint32_t max[] = { INT32_MAX, SL_CALLERS_MAX - 1, 31, 65534, 1,
					999999,    SL_CALLERS_MAX };
	uint32_t n[ARRAY_SIZE(max)];
	struct sl_caller_loop loop;
	struct sl_callers *callers;
	uint32_t first;

	if (argc != 2 + (int)ARRAY_SIZE(n))
		return ONCE_USAGE;
	for (size_t i = 0; i < ARRAY_SIZE(n); i++) {
		if (sl_parse_u32(argv[2 + i], 0, max[i], &n[i]))
			return ONCE_USAGE;
	}
	loop = (struct sl_caller_loop){ (int)n[0], n[1], n[2], (uint16_t)n[3], n[4], n[5], n[6] };
	callers = mmap(NULL, sizeof(*callers), PROT_READ | PROT_WRITE, MAP_SHARED, loop.fd, 0);
	if (callers == MAP_FAILED)
		return ONCE_USAGE;
	close(loop.fd);
	first = loop.slot;
	while (loop.slot + 1 < first + loop.copies && loop.slot + 1 < SL_CALLERS_MAX && !fork())
		loop.slot++;
	run_loop(callers, &loop);
	return 0;
}

void sl_caller_loop(struct sl_caller_args *args, const struct sl_caller_loop *loop)
{
	const unsigned int numbers[] = {
		(unsigned int)loop->fd, loop->slot,     loop->group, loop->port,
		loop->denied,           loop->pause_us, loop->copies
	};

	args->argv[0] = SL_CALLER_ARGV0;
	args->argv[1] = "loop";
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		snprintf(args->text[i], sizeof(args->text[i]), "%u", numbers[i]);
		args->argv[2 + i] = args->text[i];
	}
	args->argv[2 + ARRAY_SIZE(numbers)] = NULL;
}

static int exec_main(void *arg)
{
	const struct sl_caller_loop *loop = arg;
	struct sl_caller_args args;

	sl_caller_loop(&args, loop);
	if (fcntl(loop->fd, F_SETFD, 0))
		return 1;
	execv("/proc/self/exe", (char *const *)args.argv);
	return 127;
}

int sl_caller_start(struct sl_child *child, const char *cgroup, const struct sl_caller_loop *loop,
		    struct sl_err *err)
{
	struct sl_caller_loop copy = *loop;
	const struct sl_child_spec spec = {
		.cgroup = cgroup, .cpu = -1, .run = exec_main, .arg = &copy
	};

	return sl_child_start(child, &spec, err);
}

int sl_caller_main(int argc, char **argv)
{
	/* A workload's program: no sanitizer is to look for leaks from within the sandbox. */
	if (argc > 1 && !strcmp(argv[1], "once"))
		_exit(once(argc, argv));
	return argc > 1 && !strcmp(argv[1], "loop") ? loop(argc, argv) : ONCE_USAGE;
}

/* --- what they share --- */

int sl_callers_new(struct sl_callers **out, int *fd, struct sl_err *err)
{
	_cleanup_fd_ int memory = memfd_create("callers", MFD_CLOEXEC);
	struct sl_callers *callers;

	if (memory < 0 || ftruncate(memory, sizeof(*callers)))
		return sl_err_sys(err, errno, "shared memory");
	callers = mmap(NULL, sizeof(*callers), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (callers == MAP_FAILED)
		return sl_err_sys(err, errno, "shared memory");
	*out = callers;
	*fd = TAKE_FD(memory);
	return 0;
}

void sl_callers_free(struct sl_callers **callers, int *fd)
{
	sl_shared_free(*callers, sizeof(**callers));
	*callers = NULL;
	sl_cleanup_fd(fd);
}

void sl_callers_reset(struct sl_callers *callers)
{
	memset(callers->slot, 0, sizeof(callers->slot));
}

static uint32_t rank(const uint64_t *hist, uint64_t count, double p)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < SL_HIST; i++) {
		sum += hist[i];
		if (sum && (double)sum >= p * (double)count)
			return sl_hist_end(i);
	}
	return 0;
}

void sl_callers_sum(const struct sl_callers *callers, unsigned int first, unsigned int count,
		    struct sl_callers_sum *out)
{
	uint64_t hist[SL_HIST] = { 0 }, in_hist = 0;

	*out = (struct sl_callers_sum){ 0 };
	for (unsigned int i = first; i < first + count; i++) {
		const struct sl_caller_slot *slot = &callers->slot[i];

		out->begun += __atomic_load_n(&slot->begun, __ATOMIC_ACQUIRE);
		out->done += __atomic_load_n(&slot->done, __ATOMIC_ACQUIRE);
		out->wrong += slot->wrong;
		out->why = slot->why ? slot->why : out->why;
		out->max_us = slot->max_us > out->max_us ? slot->max_us : out->max_us;
		for (unsigned int b = 0; b < SL_HIST; b++) {
			hist[b] += slot->hist[b];
			in_hist += slot->hist[b];
		}
	}
	out->p50_us = rank(hist, in_hist, 0.5);
	out->p99_us = rank(hist, in_hist, 0.99);
}

/* --- the server --- */

struct server {
	int fd;
};

static int server_main(void *arg)
{
	const struct server *server = arg;

	for (;;) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			close(fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			return 1;
	}
}

int sl_caller_server(struct sl_child *child, uint16_t *port, struct sl_err *err)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	struct server server = { fd };
	const struct sl_child_spec spec = { .cpu = -1, .run = server_main, .arg = &server };

	addr.sin_addr.s_addr = htonl(SL_WORLD_ADDR);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		return sl_err_sys(err, errno, "can't listen");
	*port = ntohs(addr.sin_port);
	return sl_child_start(child, &spec, err);
}
