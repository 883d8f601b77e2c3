/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"

#define THREADS_MAX 8

TAILQ_HEAD(job_list, sl_job);

struct sl_work {
	int event;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job_list waiting, running, ended;
	bool stop;
	unsigned int threads;
	pthread_t thread[THREADS_MAX];
};

static bool is_running(const struct sl_work *work, unsigned int key)
{
	const struct sl_job *job;

	TAILQ_FOREACH(job, &work->running, entry)
	{
		if (job->key == key)
			return true;
	}
	return false;
}

/* With the lock held: the first one whose key has nothing running. */
static struct sl_job *next_job(struct sl_work *work)
{
	struct sl_job *job;

	TAILQ_FOREACH(job, &work->waiting, entry)
	{
		if (!is_running(work, job->key))
			return job;
	}
	return NULL;
}

static void *thread_main(void *arg)
{
	struct sl_work *work = arg;
	struct sl_job *job;

	pthread_mutex_lock(&work->lock);
	while (!work->stop) {
		job = next_job(work);
		if (!job) {
			pthread_cond_wait(&work->wake, &work->lock);
			continue;
		}
		TAILQ_REMOVE(&work->waiting, job, entry);
		TAILQ_INSERT_TAIL(&work->running, job, entry);
		pthread_mutex_unlock(&work->lock);
		job->run(job);
		pthread_mutex_lock(&work->lock);
		TAILQ_REMOVE(&work->running, job, entry);
		TAILQ_INSERT_TAIL(&work->ended, job, entry);
		/* One that waited for this key may be another thread's to take. */
		pthread_cond_signal(&work->wake);
		eventfd_write(work->event, 1);
	}
	pthread_mutex_unlock(&work->lock);
	return NULL;
}

static int start_threads(struct sl_work *work, unsigned int threads)
{
	sigset_t all, old;
	int ret = 0;

	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (!ret && work->threads < threads && work->threads < THREADS_MAX) {
		ret = pthread_create(&work->thread[work->threads], NULL, thread_main, work);
		work->threads += !ret;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* Fewer are slower, no more. */
	return work->threads ? 0 : -ret;
}

int sl_work_new(struct sl_work **out, unsigned int threads)
{
	_cleanup_(sl_work_free) struct sl_work *work = calloc(1, sizeof(*work));
	int ret;

	if (!work)
		return -ENOMEM;
	TAILQ_INIT(&work->waiting);
	TAILQ_INIT(&work->running);
	TAILQ_INIT(&work->ended);
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->wake, NULL);
	work->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (work->event < 0)
		return -errno;
	ret = start_threads(work, threads);
	if (ret)
		return ret;
	*out = TAKE_PTR(work);
	return 0;
}

int sl_work_fd(const struct sl_work *work)
{
	return work->event;
}

void sl_work_add(struct sl_work *work, struct sl_job *job)
{
	job->dropped = false;
	pthread_mutex_lock(&work->lock);
	TAILQ_INSERT_TAIL(&work->waiting, job, entry);
	pthread_cond_signal(&work->wake);
	pthread_mutex_unlock(&work->lock);
}

/* The first of a list, taken out; NULL: it is empty. */
static struct sl_job *take(struct sl_work *work, struct job_list *list)
{
	struct sl_job *job;

	pthread_mutex_lock(&work->lock);
	job = TAILQ_FIRST(list);
	if (job)
		TAILQ_REMOVE(list, job, entry);
	pthread_mutex_unlock(&work->lock);
	return job;
}

void sl_work_finish(struct sl_work *work)
{
	struct sl_job *job;
	eventfd_t count;

	(void)eventfd_read(work->event, &count);
	while ((job = take(work, &work->ended)))
		job->done(job);
}

void sl_work_free(struct sl_work **out)
{
	struct sl_work *work = *out;
	struct sl_job *job;

	if (!work)
		return;
	pthread_mutex_lock(&work->lock);
	work->stop = true;
	pthread_cond_broadcast(&work->wake);
	pthread_mutex_unlock(&work->lock);
	while (work->threads)
		pthread_join(work->thread[--work->threads], NULL);
	sl_work_finish(work);
	while ((job = take(work, &work->waiting))) {
		job->dropped = true;
		job->done(job);
	}
	sl_cleanup_fd(&work->event);
	pthread_cond_destroy(&work->wake);
	pthread_mutex_destroy(&work->lock);
	free(work);
	*out = NULL;
}
