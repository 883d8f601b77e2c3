/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decisions that take their time: freezing, draining, overload. Numbers are the scenarios'. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/cgroup.h"
#include "system/held.h"

static void down(void)
{
	held_down();
}

TestSuite(broker_wait, .fini = down, .timeout = 120);

/* N9 */
static char cgroup[PATH_MAX];

static void freeze(bool on)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/cgroup.freeze", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(write(fd, on ? "1" : "0", 1), 1);
}

static bool is_frozen(void)
{
	char path[PATH_MAX + 32], text[64] = "";
	_cleanup_fd_ int fd = -1;

	snprintf(path, sizeof(path), "%s/cgroup.events", cgroup);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	return strstr(text, "frozen 1");
}

static void make_cgroup(void)
{
	char mount[PATH_MAX / 2];
	struct sl_err err = {};

	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), &err), 0, "%s", err.text);
	snprintf(cgroup, sizeof(cgroup), "%s/sl-test-%d-freeze", mount, getpid());
	cr_assert_eq(sl_cgroup_create(cgroup, &err), 0, "%s", err.text);
}

static void wait_for_go(const struct sl_call *call, struct sl_answer *answer)
{
	(void)call;
	atomic_fetch_add(&marks->calls, 1);
	while (!atomic_load(&marks->go))
		sched_yield();
	answer->go_on = true;
}

static int enter_and_connect(void *arg)
{
	(void)arg;
	if (sl_cgroup_enter(cgroup, 0, NULL))
		return 90;
	return held_connect(marks->port);
}

Test(broker_wait, frozen_while_held)
{
	_cleanup_fd_ int server = -1;
	pid_t pid;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	make_cgroup();
	held.decide = wait_for_go;
	held_up(NULL);
	pid = held_run(1, &hold_connect, enter_and_connect, NULL);
	cr_assert(held_reached(&marks->calls, 1));
	freeze(true);
	freeze(false);
	atomic_store(&marks->go, 1);
	cr_expect_eq(held_wait(pid), 0);
	held_balance();
	cr_expect_eq(held_accepted(server), 1);
	/* A freeze that came while connect() itself ran makes the kernel restart it. */
	cr_expect_leq(held_count(SL_BROKER_CONTINUED), 2);
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), held_count(SL_BROKER_RECEIVED));
	sl_cgroup_destroy(cgroup, 5000);
}

static int connect_twice(void *arg)
{
	int first;

	(void)arg;
	if (sl_cgroup_enter(cgroup, 0, NULL))
		return 90;
	first = held_connect(marks->port);
	atomic_store(&marks->ack, 1);
	return first == EAGAIN ? held_connect(marks->port) : 91;
}

Test(broker_wait, drained_before_a_freeze)
{
	_cleanup_fd_ int server = -1;
	int64_t end;
	pid_t pid;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	make_cgroup();
	held.decide = wait_for_go;
	held_up(NULL);
	pid = held_run(1, &hold_connect, connect_twice, NULL);
	cr_assert(held_reached(&marks->calls, 1));
	cr_expect_eq(sl_broker_drain(held.broker, 2, 0, EAGAIN), -ENOENT);
	cr_expect_eq(sl_broker_drain(held.broker, 1, 20, EAGAIN), 1);
	cr_assert(held_reached(&marks->ack, 1));
	freeze(true);
	/* With its second call pending, not received, the task freezes. */
	for (end = sl_monotonic_ms() + 10000; !is_frozen() && sl_monotonic_ms() < end;)
		sched_yield();
	cr_expect(is_frozen());
	freeze(false);
	cr_expect_eq(atomic_load(&marks->calls), 1);
	atomic_store(&marks->go, 1);
	cr_expect_eq(sl_broker_resume(held.broker, 1), 0);
	cr_expect_eq(held_wait(pid), 0);
	held_balance();
	cr_expect_eq(held_accepted(server), 1);
	cr_expect_eq(held_count(SL_BROKER_DRAINED), 1);
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 1);
	sl_cgroup_destroy(cgroup, 5000);
}

static int retry_connect(void *arg)
{
	int ret = held_connect(marks->port);

	(void)arg;
	return ret == EAGAIN ? held_connect(marks->port) : ret;
}

/* Listeners of one sandbox, also one that is added meanwhile; those of others go on. */
Test(broker_wait, group_is_drained_as_one)
{
	const uint64_t second = 1 | SL_BROKER_TAG_MEMBER, third = second + SL_BROKER_TAG_MEMBER;
	_cleanup_fd_ int server = -1;
	pid_t pids[3], other;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held.decide = wait_for_go;
	held_up(NULL);
	pids[0] = held_run(1, &hold_connect, retry_connect, NULL);
	pids[1] = held_run(second, &hold_connect, retry_connect, NULL);
	cr_assert(held_reached(&marks->calls, 2));
	cr_expect_eq(sl_broker_drain_begin(held.broker, second), 2);
	cr_expect_eq(sl_broker_drain(held.broker, 1, 0, EAGAIN), 2);
	pids[2] = held_run(third, &hold_connect, retry_connect, NULL);
	other = held_run(2, &hold_connect, held_port_connect, NULL);
	cr_assert(held_reached(&marks->calls, 3));
	atomic_store(&marks->go, 1);
	cr_expect_eq(held_wait(other), 0);
	/* The calls after those that were denied, and the third's first, wait unreceived. */
	cr_expect_eq(held_count(SL_BROKER_RECEIVED), 3);
	cr_expect_eq(held_accepted(server), 1);
	cr_expect_eq(sl_broker_resume(held.broker, 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		cr_expect_eq(held_wait(pids[i]), 0, "%zu", i);
	held_balance();
	cr_expect_eq(held_accepted(server), 3);
	cr_expect_eq(held_count(SL_BROKER_DRAINED), 2);
}

static void *drain(void *arg)
{
	atomic_store(&marks->ack, 1);
	*(int *)arg = sl_broker_drain(held.broker, 1, 60000, EAGAIN);
	return NULL;
}

/* A decision that comes in time is the answer. */
Test(broker_wait, drain_waits_for_decisions)
{
	_cleanup_fd_ int server = -1;
	pthread_t thread;
	int denied = -7;
	pid_t pid;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held.decide = wait_for_go;
	held_up(NULL);
	pid = held_run(1, &hold_connect, held_port_connect, NULL);
	cr_assert(held_reached(&marks->calls, 1));
	cr_assert_eq(pthread_create(&thread, NULL, drain, &denied), 0);
	cr_assert(held_reached(&marks->ack, 1));
	for (int i = 0; i < 1000; i++)
		sched_yield();
	atomic_store(&marks->go, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(denied, 0);
	cr_expect_eq(held_wait(pid), 0);
	held_balance();
	cr_expect_eq(held_accepted(server), 1);
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 1);
}

/* One task's decision hangs; another's of the same sandbox, and of another, does not. */
static void hang_first(const struct sl_call *call, struct sl_answer *answer)
{
	if (!atomic_fetch_add(&marks->calls, 1))
		while (!atomic_load(&marks->go))
			sched_yield();
	(void)call;
	answer->go_on = true;
}

static int fork_connecting(void *arg)
{
	unsigned int *count = arg, bad = 0;
	int status;

	for (unsigned int i = 0; i < *count; i++)
		if (!fork())
			_exit(held_connect(marks->port));
	while (wait(&status) > 0)
		bad += WEXITSTATUS(status) != EACCES;
	return bad;
}

Test(broker_wait, slow_decision_delays_nobody)
{
	_cleanup_fd_ int server = -1;
	pid_t slow, other;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held.decide = hang_first;
	held_up(NULL);
	slow = held_run(1, &hold_connect, held_port_connect, NULL);
	cr_assert(held_reached(&marks->calls, 1));
	other = held_run(2, &hold_connect, held_port_connect, NULL);
	cr_expect_eq(held_wait(other), 0);
	cr_expect_eq(held_accepted(server), 1);
	atomic_store(&marks->go, 1);
	cr_expect_eq(held_wait(slow), 0);
	held_balance();
}

/* All of a listener's decisions hang: they and those behind them are denied. */
Test(broker_wait, overload_denies)
{
	static const struct sl_broker_options options = { .per_listener = 4, .deadline_ms = 50 };
	unsigned int count = 20;
	_cleanup_fd_ int server = -1;
	pid_t pid;
	int status;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held.decide = wait_for_go;
	held_up(&options);
	pid = held_run(1, &hold_connect, fork_connecting, &count);
	while (!waitpid(pid, &status, WNOHANG))
		sl_broker_tick(held.broker);
	cr_expect_eq(status, 0);
	cr_expect_eq(held_accepted(server), 0);
	/* On a slow machine a call may be overdue before its decision has begun. */
	cr_expect_geq(held_count(SL_BROKER_OVERDUE), 4);
	cr_expect_gt(held_count(SL_BROKER_OVERLOAD), 0);
	cr_expect_eq(held_count(SL_BROKER_OVERDUE) + held_count(SL_BROKER_OVERLOAD), count);
	cr_expect_eq(atomic_load(&marks->calls), 4);
	atomic_store(&marks->go, 1);
	held_balance();
}
