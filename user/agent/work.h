/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What may take long, done beside the loop: a few threads, and a way back into the loop.
 *
 *	sl_work_new(&work, threads);
 *	sl_work_add(work, job);			job->run(job) in a thread
 *	poll sl_work_fd(work), then sl_work_finish(work);	job->done(job) in the caller
 *	sl_work_free(&work);			waits for what runs, drops the rest
 *
 * Rules
 * 1. A job belongs to the pool from add to done, which may free it. Dropped ones get
 *    `dropped` set and done called.
 * 2. Jobs of one key run one at a time and in their order; those of different keys in any.
 * 3. add, finish and free are for one thread.
 */
#ifndef SLUICE_USER_AGENT_WORK_H
#define SLUICE_USER_AGENT_WORK_H

#include <stdbool.h>
#include <sys/queue.h>

struct sl_work;

/* Embedded in what it is about. */
struct sl_job {
	TAILQ_ENTRY(sl_job) entry;
	unsigned int key;
	bool dropped;
	void (*run)(struct sl_job *job);
	void (*done)(struct sl_job *job);
};

/* -ENOMEM, -EAGAIN (threads), -errno of eventfd(2). */
int sl_work_new(struct sl_work **out, unsigned int threads);
void sl_work_free(struct sl_work **out);

int sl_work_fd(const struct sl_work *work);
void sl_work_add(struct sl_work *work, struct sl_job *job);
void sl_work_finish(struct sl_work *work);

#endif
