/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* N13: workers that are killed at any instant, and every call answered all the same. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "broker/keeper.h"
#include "broker/listener.h"
#include "broker/loop.h"
#include "system/held.h"

#define CALLS 1000
#define IN_HAND 32
#define GENERATIONS 40

TestSuite(broker_keeper, .timeout = 240);

struct shared {
	atomic_uint started, in_hand, recovered, answered, worker, generation, end, faults;
	bool random;           /* workers die by a timer, not by the test */
	int listener_handed;   /* errno */
	atomic_uint got[4096]; /* by errno: what the calls returned */
};

static struct shared *shared;
static struct sl_handoff handoff = { -1, -1 };

static void on_held(void *ctx, const struct sl_call *call, struct sl_answer *answer)
{
	(void)ctx;
	(void)call;
	/* The first worker hangs in every decision, until it is killed. */
	if (!shared->random && !shared->generation) {
		atomic_fetch_add(&shared->in_hand, 1);
		for (;;)
			pause();
	}
	atomic_fetch_add(&shared->answered, 1);
	answer->code = ENOTBLK;
}

static void on_fault(void *ctx, enum sl_broker_kind kind, uint64_t tag, pid_t tid, int code)
{
	(void)ctx;
	(void)tag;
	atomic_fetch_add(&shared->faults, 1);
	fprintf(stderr, "fault %s, task %d: %s\n", sl_broker_kind_name(kind), tid, strerror(code));
}

/* Takes the listener from the child that the test forked, and lets it go on. */
static int take(struct sl_broker *broker, struct sl_keeper_link *link)
{
	int listener;

	if (sl_handoff_take(&handoff, 10000, &listener, NULL) ||
	    sl_keeper_hold(link, listener, 7) || sl_broker_add(broker, listener, 7, NULL))
		return -1;
	/* The same again is refused, another can come and go. */
	if (sl_keeper_hold(link, listener, 7) != -EEXIST || sl_keeper_hold(link, listener, 8) ||
	    sl_keeper_drop(link, 8) || sl_keeper_drop(link, 8) != -ENOENT)
		return -1;
	return sl_handoff_release(&handoff, NULL);
}

static int worker(struct sl_keeper_link *link, void *ctx)
{
	struct sl_broker_options options = {
		.ops = { .held = on_held, .fault = on_fault },
		.inflight = sl_keeper_inflight(link),
		.threads = IN_HAND,
		.per_listener = IN_HAND,
	};
	struct itimerval timer = { .it_value = { 0, 300 + rand() % 5000 } };
	struct sl_broker *broker;
	uint64_t tag;
	size_t at = 0;
	int fd;

	(void)ctx;
	if (sl_broker_new(&broker, &options, NULL))
		return 3;
	atomic_store(&shared->generation, sl_keeper_generation(link));
	while (sl_keeper_inherited(link, &at, &fd, &tag)) {
		if (tag != 7 || sl_broker_add(broker, fd, tag, NULL))
			return 4;
	}
	if (sl_broker_start(broker, NULL))
		return 5;
	if (!shared->generation && take(broker, link))
		return 6;
	atomic_store(&shared->worker, getpid());
	/* Its default action ends the process in whatever instant. */
	if (shared->random && shared->generation < GENERATIONS)
		setitimer(ITIMER_REAL, &timer, NULL);
	while (!atomic_load(&shared->end))
		sched_yield();
	atomic_fetch_add(&shared->recovered, sl_broker_count(broker, SL_BROKER_RECOVERED));
	sl_broker_free(&broker);
	return 0;
}

static _Noreturn void keeper(void)
{
	static const struct sl_keeper_options options = { .worker = worker,
							  .restart_max_ms = 20,
							  .slots = IN_HAND + 1 };
	struct sl_err err = {};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(sl_keeper_run(&options, &err) ? 1 : 0);
}

/* Many processes, each in a call of its own. */
static int call_all(void)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid) {
			atomic_fetch_add(&shared->started, 1);
			atomic_fetch_add(&shared->got[held_connect(1)], 1);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

static void run(bool random)
{
	struct sl_filter filter;
	pid_t keeper_pid, child;

	shared = held_share(sizeof(*shared));
	shared->random = random;
	cr_assert_eq(sl_filter_make(&filter, &hold_connect, NULL), 0);
	cr_assert_eq(sl_handoff_new(&handoff, NULL), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(sl_handoff_give(&handoff, &filter, 0, NULL) ? 99 : call_all());
	}
	keeper_pid = fork();
	if (!keeper_pid)
		keeper();
	sl_handoff_end(&handoff);
	if (!random) {
		cr_assert(held_reached(&shared->started, CALLS));
		cr_assert(held_reached(&shared->in_hand, IN_HAND));
		cr_assert_eq(kill(shared->worker, SIGKILL), 0);
	}
	cr_expect_eq(held_wait(child), 0);
	atomic_store(&shared->end, 1);
	cr_expect_eq(held_wait(keeper_pid), 0);
	cr_expect_eq(atomic_load(&shared->faults), 0);
	for (unsigned int code = 0; code < ARRAY_SIZE(shared->got); code++)
		cr_expect_eq(atomic_load(&shared->got[code]), code == ENOTBLK ? CALLS : 0,
			     "%u calls: %s", atomic_load(&shared->got[code]), strerror(code));
}

Test(broker_keeper, killed_with_calls_in_hand)
{
	run(false);
	cr_expect_eq(atomic_load(&shared->recovered), IN_HAND);
	cr_expect_eq(atomic_load(&shared->generation), 1);
}

Test(broker_keeper, killed_at_random)
{
	run(true);
	cr_expect_gt(atomic_load(&shared->generation), 0);
}

static int fail_always(struct sl_keeper_link *link, void *ctx)
{
	(void)link;
	(void)ctx;
	return 1;
}

static atomic_uint pauses[8];

static void on_crash(void *ctx, int status, unsigned int pause_ms)
{
	static unsigned int n;

	(void)ctx;
	cr_assert(WIFEXITED(status));
	pauses[n++] = pause_ms;
	/* The keeper's own end. */
	if (n == ARRAY_SIZE(pauses))
		raise(SIGTERM);
}

Test(broker_keeper, restarts_with_growing_pauses)
{
	static const struct sl_keeper_options options = {
		.worker = fail_always, .crashed = on_crash, .restart_max_ms = 16, .slots = 2
	};
	static const unsigned int want[] = { 0, 1, 2, 4, 8, 16, 16, 16 };
	struct sl_err err = {};

	cr_expect_eq(sl_keeper_run(&options, &err), 0, "%s", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect_eq(atomic_load(&pauses[i]), want[i], "pause %zu", i);
}

static _Noreturn int tell_and_wait(struct sl_keeper_link *link, void *ctx)
{
	(void)link;
	(void)ctx;
	atomic_store(&shared->worker, getpid());
	for (;;)
		pause();
}

Test(broker_keeper, worker_dies_with_its_keeper)
{
	static const struct sl_keeper_options options = { .worker = tell_and_wait, .slots = 2 };
	pid_t pid;

	shared = held_share(sizeof(*shared));
	/* An orphan is to come to us, so that its end is seen. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid = fork();
	if (!pid)
		_exit(sl_keeper_run(&options, NULL));
	while (!atomic_load(&shared->worker))
		sched_yield();
	kill(pid, SIGKILL);
	cr_expect_eq(held_wait(pid), 128 + SIGKILL);
	cr_expect_eq(held_wait(shared->worker), 128 + SIGKILL);
}
