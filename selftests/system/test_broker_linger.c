/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that go on at once, and the thread that stays with their listener: it must hold up
 * neither the end of the listener, nor a freeze, nor other listeners.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/held.h"
#include "system/scale.h"

#define REFUSED 1 /* a port where nobody listens */
#define KILLS SCALED(2000)
#define LISTENERS SCALED(500)

static void down(void)
{
	held_down();
}

static void up(void)
{
	marks = held_share(sizeof(*marks));
	held.at_once = true;
}

TestSuite(broker_linger, .init = up, .fini = down, .timeout = 120);

/* Calls as often as marks->go says, and tells each. */
static int call_when_told(void *arg)
{
	(void)arg;
	for (unsigned int n = 0;; n++) {
		while (atomic_load(&marks->go) == n)
			sched_yield();
		if (atomic_load(&marks->go) == UINT32_MAX)
			return 0;
		if (held_connect(REFUSED) != ECONNREFUSED)
			return 1;
		atomic_fetch_add(&marks->ack, 1);
	}
}

static void expect_next_call(void)
{
	unsigned int n = atomic_fetch_add(&marks->go, 1) + 1;

	cr_assert(held_reached(&marks->ack, n), "call %u", n);
}

/* Until the child is in a call; before that it runs all the time. */
static void await_sleep(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'S') {
		file = fopen(path, "re");
		cr_assert_not_null(file);
		cr_assert_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
	}
}

static int connect_often(void *arg)
{
	for (unsigned int i = 0; i < *(unsigned int *)arg; i++)
		if (held_connect(REFUSED) != ECONNREFUSED)
			return 1;
	return 0;
}

Test(broker_linger, nothing_is_read_or_decided)
{
	unsigned int count = 1000;

	held_up(NULL);
	cr_expect_eq(held_call(&hold_connect, connect_often, &count), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), count);
	cr_expect_eq(atomic_load(&held.decided), 0);
	cr_expect(held_reached(&held.ended, 1));
}

/* A call behind the drain waits unreceived, also from a thread that stayed. */
Test(broker_linger, drained)
{
	pid_t pid;

	held_up(NULL);
	pid = held_run(1, &hold_connect, call_when_told, NULL);
	expect_next_call();
	/* The call is out of its hand, and there was nothing to leave for. */
	while (sl_broker_running(held.broker))
		sched_yield();
	cr_expect_eq(sl_broker_drain(held.broker, 1, 10000, EAGAIN), 0);
	atomic_store(&marks->go, 2);
	await_sleep(pid);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	cr_expect_eq(atomic_load(&marks->ack), 1);
	cr_expect_eq(held_count(SL_BROKER_RECEIVED), 1);
	cr_expect_eq(sl_broker_resume(held.broker, 1), 0);
	cr_assert(held_reached(&marks->ack, 2));
	expect_next_call();
	atomic_store(&marks->go, UINT32_MAX);
	cr_expect_eq(held_wait(pid), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 3);
}

/* Drained and resumed with no call between: the thread may be there still, or not. */
Test(broker_linger, drained_between_calls)
{
	pid_t pid;

	held_up(NULL);
	pid = held_run(1, &hold_connect, call_when_told, NULL);
	for (int i = 0; i < 50; i++) {
		expect_next_call();
		while (i & 1 && sl_broker_running(held.broker))
			sched_yield();
		cr_expect_eq(sl_broker_drain(held.broker, 1, 10000, EAGAIN), 0);
		cr_expect_eq(sl_broker_resume(held.broker, 1), 0);
	}
	expect_next_call();
	atomic_store(&marks->go, UINT32_MAX);
	cr_expect_eq(held_wait(pid), 0);
	held_balance();
	cr_expect(held_reached(&held.ended, 1));
}

/* A call that comes when nobody stays any more, or is about to leave. */
Test(broker_linger, calls_far_apart)
{
	static const struct sl_broker_options options = { .linger_ms = 1 };
	pid_t pid;

	held_up(&options);
	pid = held_run(1, &hold_connect, call_when_told, NULL);
	for (int i = 0; i < 100; i++) {
		int64_t end = sl_monotonic_ms() + i % 4;

		expect_next_call();
		while (sl_monotonic_ms() < end)
			sched_yield();
	}
	atomic_store(&marks->go, UINT32_MAX);
	cr_expect_eq(held_wait(pid), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 100);
}

/* As many listeners as there may be threads call for ever; one more is served all the same. */
static void expect_served(unsigned int threads)
{
	const struct sl_broker_options options = { .threads = threads };
	unsigned int count = 100;
	pid_t pids[8];

	held_up(&options);
	atomic_store(&marks->go, UINT32_MAX - 1);
	for (unsigned int i = 0; i < threads; i++)
		pids[i] = held_run(i + 1, &hold_connect, call_when_told, NULL);
	cr_assert(held_reached(&marks->ack, 100 * threads));
	cr_expect_eq(held_call(&hold_connect, connect_often, &count), 0);
	for (unsigned int i = 0; i < threads; i++) {
		kill(pids[i], SIGKILL);
		cr_expect_eq(held_wait(pids[i]), 128 + SIGKILL);
	}
	held_balance();
}

Test(broker_linger, one_thread)
{
	expect_served(1);
}

Test(broker_linger, three_threads)
{
	expect_served(3);
}

Test(broker_linger, killed)
{
	unsigned int seen = 0;

	held_up(NULL);
	for (unsigned int i = 0; i < KILLS / 100; i++) {
		unsigned int before = atomic_load(&marks->ack);
		pid_t pid = held_run(i, &hold_connect, call_when_told, NULL);

		atomic_store(&marks->go, UINT32_MAX - 1);
		while (atomic_load(&marks->ack) < before + i % 100)
			sched_yield();
		kill(pid, SIGKILL);
		cr_expect_eq(held_wait(pid), 128 + SIGKILL);
		atomic_store(&marks->go, 0);
		cr_assert(held_reached(&held.ended, ++seen), "listener %u never ended", i);
	}
	held_balance();
	cr_expect_eq(sl_broker_running(held.broker), 0);
}

/* N10: many sandboxes, each with a thread that stayed when its last task goes. */
Test(broker_linger, listeners_come_and_go)
{
	unsigned int count = 3;

	held_up(NULL);
	for (unsigned int i = 0; i < LISTENERS; i++)
		cr_assert_eq(held_wait(held_run(i, &hold_connect, connect_often, &count)), 0);
	cr_expect(held_reached(&held.ended, LISTENERS));
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), LISTENERS * count);
	cr_expect_eq(sl_broker_running(held.broker), 0);
}
