/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/listener.h"
#include "broker/probe.h"
#include "system/held.h"

#define TAKE_MS 10000
#define REACH_MS 60000

struct held held;
struct held_marks *marks;
const struct sl_filter_options hold_exec = { .hold = SL_HOLD_EXEC };
const struct sl_filter_options hold_connect = { .hold = SL_HOLD_CONNECT };

static bool at_once(void *ctx, uint64_t tag, enum sl_call_kind kind)
{
	(void)ctx;
	(void)tag;
	(void)kind;
	return held.at_once;
}

static void on_held(void *ctx, const struct sl_call *call, struct sl_answer *answer)
{
	(void)ctx;
	atomic_fetch_add(&held.decided, 1);
	if (held.decide)
		held.decide(call, answer);
	else
		answer->go_on = true;
}

static void on_fault(void *ctx, enum sl_broker_kind kind, uint64_t tag, pid_t tid, int code)
{
	(void)ctx;
	atomic_fetch_add(&held.faults, 1);
	fprintf(stderr, "fault %s of listener %lu, task %d: %s\n", sl_broker_kind_name(kind),
		(unsigned long)tag, tid, strerror(code));
}

static void on_ended(void *ctx, uint64_t tag)
{
	(void)ctx;
	(void)tag;
	atomic_fetch_add(&held.ended, 1);
}

static void on_race(void *ctx, const struct sl_race_line *line)
{
	(void)ctx;
	(void)line;
	atomic_fetch_add(&held.lines, 1);
}

void held_up(const struct sl_broker_options *options)
{
	struct sl_broker_options all = options ? *options : (struct sl_broker_options){ 0 };
	struct sl_err err = {};

	all.ops = (struct sl_broker_ops){ .at_once = at_once,
					  .held = on_held,
					  .fault = on_fault,
					  .ended = on_ended,
					  .races = on_race };
	cr_assert_eq(sl_broker_new(&held.broker, &all, &err), 0, "%s", err.text);
	held.started = false;
}

void held_start(void)
{
	struct sl_err err = {};

	if (!held.started)
		cr_assert_eq(sl_broker_start(held.broker, &err), 0, "%s", err.text);
	held.started = true;
}

void held_down(void)
{
	sl_broker_free(&held.broker);
}

pid_t held_run(uint64_t tag, const struct sl_filter_options *options, int (*fn)(void *arg),
	       void *arg)
{
	struct sl_handoff h = { -1, -1 };
	struct sl_filter filter;
	struct sl_err err = {};
	unsigned long flags;
	const char *why;
	int listener;
	pid_t pid;

	sl_probe_listener_flags(&flags, &why);
	cr_assert_eq(sl_filter_make(&filter, options, &err), 0, "%s", err.text);
	cr_assert_eq(sl_handoff_new(&h, &err), 0, "%s", err.text);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(sl_handoff_give(&h, &filter, flags, NULL) ? 99 : fn(arg));
	}
	held_start();
	cr_assert_eq(sl_handoff_take(&h, TAKE_MS, &listener, &err), 0, "%s", err.text);
	if (listener >= 0)
		cr_assert_eq(sl_broker_add(held.broker, listener, tag, &err), 0, "%s", err.text);
	cr_assert_eq(sl_handoff_release(&h, &err), 0, "%s", err.text);
	sl_handoff_end(&h);
	return pid;
}

int held_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		cr_assert_eq(errno, EINTR);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int held_call(const struct sl_filter_options *options, int (*fn)(void *arg), void *arg)
{
	/* Another each time: that of a listener is free some time after its tasks have gone. */
	static uint64_t tag = 1000;

	return held_wait(held_run(tag++, options, fn, arg));
}

uint64_t held_count(enum sl_broker_kind kind)
{
	return sl_broker_count(held.broker, kind);
}

static bool is_balanced(uint64_t *ends)
{
	*ends = 0;
	for (int kind = 0; kind < SL_BROKER_KIND_MAX; kind++) {
		if (sl_broker_kind_class(kind) == SL_OUTCOME_FLOW ||
		    !strncmp(sl_broker_kind_help(kind), "also:", 5))
			continue;
		*ends += held_count(kind);
	}
	return *ends == held_count(SL_BROKER_RECEIVED);
}

void held_balance(void)
{
	int64_t end = sl_monotonic_ms() + REACH_MS;
	uint64_t ends;

	/* A child may be gone before its last answer is counted. */
	while (!is_balanced(&ends) && sl_monotonic_ms() < end)
		sched_yield();
	cr_expect_eq(ends, held_count(SL_BROKER_RECEIVED));
	for (int kind = 0; kind < SL_BROKER_KIND_MAX; kind++) {
		if (sl_broker_kind_class(kind) == SL_OUTCOME_FAULT)
			cr_expect_eq(held_count(kind), 0, "%s", sl_broker_kind_name(kind));
	}
	cr_expect_eq(atomic_load(&held.faults), 0);
}

void *held_share(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(mem, MAP_FAILED);
	return mem;
}

int held_server(unsigned int *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(addr);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(fd, 4096), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*port = ntohs(addr.sin_port);
	return fd;
}

unsigned int held_accepted(int server)
{
	unsigned int n = 0;
	int fd;

	while ((fd = accept4(server, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		close(fd);
		n++;
	}
	return n;
}

int held_connect(unsigned int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? errno : 0;
}

int held_port_connect(void *arg)
{
	(void)arg;
	return held_connect(marks->port);
}

bool held_reached(atomic_uint *number, unsigned int want)
{
	int64_t end = sl_monotonic_ms() + REACH_MS;

	while (atomic_load(number) < want) {
		if (sl_monotonic_ms() > end)
			return false;
		sched_yield();
	}
	return true;
}
