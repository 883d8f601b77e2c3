/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Process shapes made of threads. */
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "proc.h"
#include "tail.h"
#include "truth.h"

#define JOBS_MAX 256

struct job {
	const struct sl_opts *o;
	int rc;
};

static int run_in_thread(const struct sl_opts *o, void *(*fn)(void *job))
{
	struct job job = { .o = o, .rc = -EIO };
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, fn, &job);

	if (rc)
		return sl_fail("pthread_create", rc);
	pthread_join(thread, NULL);
	return job.rc;
}

static void *rename_and_connect(void *arg)
{
	struct job *job = arg;

	if (job->o->name && prctl(PR_SET_NAME, job->o->name) < 0)
		job->rc = sl_fail("prctl", errno);
	else
		job->rc = sl_tail(job->o);
	return NULL;
}

static int thread_connect(const struct sl_opts *o)
{
	sl_tail_step("leader");
	return run_in_thread(o, rename_and_connect);
}

/* A thread's exec ends the others and takes the leader's place and pid. */
static void *exec_copy(void *arg)
{
	static struct sl_argv argv;
	struct job *job = arg;
	char path[PATH_MAX];
	int rc = sl_self_path(job->o, job->o->name ? job->o->name : "sl-load-thread", path);

	if (rc < 0) {
		job->rc = sl_fail("copy", -rc);
		return NULL;
	}
	sl_tail_step("thread");
	sl_tail_argv(&argv, path, job->o);
	job->rc = sl_exec(path, &argv);
	return NULL;
}

static int thread_exec(const struct sl_opts *o)
{
	sl_tail_step("leader");
	return run_in_thread(o, exec_copy);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Creates and joins `n` threads at once. */
static int batch(unsigned int n)
{
	pthread_t threads[JOBS_MAX];
	unsigned int made = 0;
	int rc = 0;

	while (rc == 0 && made < n) {
		rc = pthread_create(&threads[made], NULL, nothing, NULL);
		made += rc == 0;
	}
	for (unsigned int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	return -rc;
}

static int threads(const struct sl_opts *o)
{
	uint64_t count = sl_or(o->count, 100), jobs = sl_or(o->jobs, 1), done = 0;
	uint64_t limit_ns = sl_or(o->seconds, 86400) * 1000000000ULL, start = sl_now_ns();
	struct sl_line line;
	int rc = 0;

	if (jobs == 0)
		return sl_usage("--jobs: at least 1");
	while (rc == 0 && done < count && sl_now_ns() - start < limit_ns) {
		uint64_t n = count - done < jobs ? count - done : jobs;

		rc = batch((unsigned int)n);
		done += rc == 0 ? n : 0;
	}
	sl_line_start(&line, "total");
	sl_line_self(&line);
	sl_line_u64(&line, "threads", done);
	sl_line_end(&line);
	return rc < 0 ? sl_fail("pthread_create", -rc) : 0;
}

const struct sl_cmd sl_thread_cmds[] = {
	{ .name = "thread-connect",
	  .run = thread_connect,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "a second thread, renamed to NAME, does the tail" },
	{ .name = "thread-exec",
	  .run = thread_exec,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "a second thread executes itself or, with --dir, a copy, which does the tail" },
	{ .name = "threads",
	  .run = threads,
	  .options = "count jobs seconds",
	  .help = "creates and joins COUNT (100) threads, JOBS at once, for SECONDS at most" },
	{ 0 },
};
