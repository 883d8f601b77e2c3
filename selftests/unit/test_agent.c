/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the agent that need no root: its interface's text, and work beside the loop. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/work.h"
#include "base/cleanup.h"

/* --- the interface --- */

static unsigned int count_of(const char *text, const char *what)
{
	unsigned int n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

Test(agent, interface_has_the_methods_that_there_are)
{
	const struct sl_interface *interface = &sl_agent_interface;
	char line[64];

	cr_expect(strstr(interface->description, "\ninterface io.sluice\n"));
	for (size_t i = 0; i < interface->count; i++) {
		snprintf(line, sizeof(line), "\nmethod %s(", interface->methods[i].name);
		cr_expect_eq(count_of(interface->description, line), 1, "%s", line);
	}
	cr_expect_eq(count_of(interface->description, "\nmethod "), interface->count);
	/* The one that everybody may call. */
	for (size_t i = 0; i < interface->count; i++)
		cr_expect_eq(!(interface->methods[i].flags & SL_METHOD_ROOT),
			     !strcmp(interface->methods[i].name, "ResolveFd"), "%s",
			     interface->methods[i].name);
}

/* --- work --- */

struct task {
	struct sl_job job;
	unsigned int number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static unsigned int ran, overlapping, most, last_of[4], done_count, dropped;
static bool out_of_order, held;

/* Holds its thread until all that may run at once do, or the gate is open. */
static void run(struct sl_job *job)
{
	const struct task *task = (const struct task *)job;

	pthread_mutex_lock(&lock);
	out_of_order |= task->number < last_of[job->key];
	last_of[job->key] = task->number;
	overlapping++;
	most = overlapping > most ? overlapping : most;
	pthread_cond_broadcast(&moved);
	while (held)
		pthread_cond_wait(&moved, &lock);
	overlapping--;
	ran++;
	pthread_mutex_unlock(&lock);
}

static void done(struct sl_job *job)
{
	done_count++;
	dropped += job->dropped;
	free(job);
}

static void add(struct sl_work *work, unsigned int key, unsigned int number)
{
	struct task *task = calloc(1, sizeof(*task));

	cr_assert_not_null(task);
	*task = (struct task){ { .key = key, .run = run, .done = done }, number };
	sl_work_add(work, &task->job);
}

static void finish(struct sl_work *work, unsigned int count)
{
	struct pollfd fd = { .fd = sl_work_fd(work), .events = POLLIN };

	while (done_count < count) {
		cr_assert_eq(poll(&fd, 1, 10000), 1);
		sl_work_finish(work);
	}
}

Test(agent, work_of_a_key_is_in_order_and_of_others_at_once)
{
	struct sl_work *work;

	cr_assert_eq(sl_work_new(&work, 3), 0);
	held = true;
	for (unsigned int i = 1; i <= 30; i++)
		add(work, i % 3, i);
	/* One of each key, and no other, whatever waits before it. */
	pthread_mutex_lock(&lock);
	while (overlapping < 3)
		pthread_cond_wait(&moved, &lock);
	held = false;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
	finish(work, 30);
	cr_expect_eq(ran, 30);
	cr_expect_eq(most, 3);
	cr_expect_not(out_of_order);
	sl_work_free(&work);
}

Test(agent, work_that_was_not_begun_is_dropped)
{
	struct sl_work *work;

	cr_assert_eq(sl_work_new(&work, 1), 0);
	held = true;
	add(work, 0, 1);
	pthread_mutex_lock(&lock);
	while (!overlapping)
		pthread_cond_wait(&moved, &lock);
	pthread_mutex_unlock(&lock);
	add(work, 0, 2);
	add(work, 1, 3);
	pthread_mutex_lock(&lock);
	held = false;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
	sl_work_free(&work);
	cr_expect_eq(done_count, 3);
	cr_expect_eq(ran + dropped, 3);
	cr_expect_geq(ran, 1);
}
