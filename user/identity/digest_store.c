/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The asynchronous side of digest.h. An entry is in flight from the request until its
 * answer: then it has a job, belongs to whoever works on the job, and is never evicted.
 * `lock` covers all of the store and its entries, but no system call that may block.
 */
#include "identity/digest.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/htab.h"
#include "identity/hash_file.h"

/* Enough for libcrypto, and not the 8 MiB a thread gets otherwise. */
#define WORKER_STACK_BYTES (256 * 1024)

struct job {
	struct sl_exe_ref ref;
	int pin_fd; /* -1: the worker looks for the file */
	int pid;
};

struct entry {
	unsigned int exe_id;
	bool in_flight;
	bool undelivered;
	struct sl_digest digest;
	struct job *job;
	TAILQ_ENTRY(entry) age;
	TAILQ_ENTRY(entry) queue;
	TAILQ_ENTRY(entry) answer;
};

TAILQ_HEAD(entries, entry);

struct sl_digest_store {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t answered;
	pthread_t worker;
	atomic_bool stop;
	int event_fd;
	struct sl_hasher *hasher;
	struct sl_digest_stats stats;
	unsigned int undelivered;
	struct sl_htab *by_id;  /* exe id -> struct entry * */
	struct entries ages;    /* all, oldest first */
	struct entries queue;   /* those that wait for the worker */
	struct entries answers; /* those not delivered yet */
};

static struct entry *find(struct sl_digest_store *store, unsigned int exe_id)
{
	struct entry **slot = sl_htab_get(store->by_id, &exe_id);

	return slot ? *slot : NULL;
}

static void job_free(struct job **job)
{
	if (!*job)
		return;
	if ((*job)->pin_fd >= 0)
		close((*job)->pin_fd);
	sl_exe_ref_clear(&(*job)->ref);
	free(*job);
	*job = NULL;
}

static void forget_answer(struct sl_digest_store *store, struct entry *entry)
{
	if (!entry->undelivered)
		return;
	TAILQ_REMOVE(&store->answers, entry, answer);
	entry->undelivered = false;
	store->undelivered--;
}

static void entry_drop(struct sl_digest_store *store, struct entry *entry)
{
	forget_answer(store, entry);
	sl_htab_del(store->by_id, &entry->exe_id);
	TAILQ_REMOVE(&store->ages, entry, age);
	store->stats.cached--;
	job_free(&entry->job);
	free(entry);
}

/* Those in flight are few (the queue's limit), so this looks at few. */
static void evict_oldest(struct sl_digest_store *store)
{
	struct entry *entry;

	TAILQ_FOREACH(entry, &store->ages, age)
	{
		if (entry->in_flight)
			continue;
		entry_drop(store, entry);
		store->stats.evicted++;
		return;
	}
}

static struct entry *entry_add(struct sl_digest_store *store, unsigned int exe_id)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct entry **slot;

	if (!entry)
		return NULL;
	if (store->stats.cached >= SL_DIGEST_CACHE_MAX)
		evict_oldest(store);
	slot = sl_htab_add(store->by_id, &exe_id, NULL);
	if (!slot) {
		free(entry);
		return NULL;
	}
	*slot = entry;
	entry->exe_id = exe_id;
	TAILQ_INSERT_TAIL(&store->ages, entry, age);
	store->stats.cached++;
	return entry;
}

static void event_signal(const struct sl_digest_store *store)
{
	const uint64_t one = 1;
	ssize_t n;

	/* Fails only when the counter is at its maximum, and then it is readable already. */
	n = write(store->event_fd, &one, sizeof(one));
	(void)n;
}

static void entry_answer(struct sl_digest_store *store, struct entry *entry,
			 const struct sl_digest *digest)
{
	job_free(&entry->job);
	entry->in_flight = false;
	entry->digest = *digest;
	entry->undelivered = true;
	TAILQ_INSERT_TAIL(&store->answers, entry, answer);
	if (store->undelivered++ == 0)
		event_signal(store);
	pthread_cond_broadcast(&store->answered);
}

/* Whether asking again could give another answer. */
static bool is_final(enum sl_digest_error error)
{
	return error == SL_DIGEST_NONE || error == SL_DIGEST_TOO_LARGE ||
	       error == SL_DIGEST_NO_FILE;
}

/* The entry to work on, marked in flight; NULL when nothing is to be done, or -ENOMEM. */
static int begin(struct sl_digest_store *store, unsigned int exe_id, struct entry **out)
{
	struct entry *entry = find(store, exe_id);

	*out = NULL;
	store->stats.requested++;
	if (entry && (entry->in_flight || is_final(entry->digest.error)))
		return 0;
	if (entry) {
		forget_answer(store, entry);
		TAILQ_REMOVE(&store->ages, entry, age);
		TAILQ_INSERT_TAIL(&store->ages, entry, age);
	} else {
		entry = entry_add(store, exe_id);
		if (!entry)
			return -ENOMEM;
	}
	entry->in_flight = true;
	entry->digest = (struct sl_digest){ .error = SL_DIGEST_PENDING };
	*out = entry;
	return 0;
}

/*
 * Finds the file as far as that can't block. SL_DIGEST_PENDING when it is the worker's
 * turn: with the file pinned, or to look for it where a walk may block.
 */
static enum sl_digest_error job_prepare(struct job **out, const struct sl_exe *exe, int pid)
{
	struct job *job = calloc(1, sizeof(*job));
	enum sl_digest_error error;
	bool nomem = !job;

	if (!job)
		return SL_DIGEST_ERROR_MAX;
	job->pin_fd = -1;
	job->pid = pid;
	error = sl_exe_ref_init(&job->ref, exe, &nomem);
	if (nomem)
		error = SL_DIGEST_ERROR_MAX;
	if (!error) {
		error = sl_exe_pin(&job->ref, pid, true, &job->pin_fd);
		if (!error || job->ref.path)
			error = SL_DIGEST_PENDING;
	}
	if (error == SL_DIGEST_PENDING)
		*out = TAKE_PTR(job);
	job_free(&job);
	return error;
}

int sl_digest_request(struct sl_digest_store *store, const struct sl_exe *exe, int pid)
{
	struct sl_digest digest = { 0 };
	struct job *job = NULL;
	struct entry *entry;
	int ret;

	if (!exe->id)
		return -EINVAL;
	pthread_mutex_lock(&store->lock);
	ret = begin(store, exe->id, &entry);
	pthread_mutex_unlock(&store->lock);
	if (ret || !entry)
		return ret;

	digest.error = job_prepare(&job, exe, pid);

	pthread_mutex_lock(&store->lock);
	if (digest.error == SL_DIGEST_PENDING && store->stats.queued >= SL_DIGEST_QUEUE_MAX)
		digest.error = SL_DIGEST_BUSY;
	if (digest.error == SL_DIGEST_ERROR_MAX) {
		entry_drop(store, entry);
		pthread_cond_broadcast(&store->answered);
		ret = -ENOMEM;
	} else if (digest.error == SL_DIGEST_PENDING) {
		entry->job = TAKE_PTR(job);
		TAILQ_INSERT_TAIL(&store->queue, entry, queue);
		store->stats.queued++;
		pthread_cond_signal(&store->work);
	} else {
		entry_answer(store, entry, &digest);
	}
	pthread_mutex_unlock(&store->lock);
	job_free(&job);
	return ret;
}

int sl_digest_get(struct sl_digest_store *store, unsigned int exe_id, struct sl_digest *out)
{
	struct entry *entry;
	int ret = -ENOENT;

	pthread_mutex_lock(&store->lock);
	entry = find(store, exe_id);
	if (entry) {
		*out = entry->digest;
		ret = 0;
	}
	pthread_mutex_unlock(&store->lock);
	return ret;
}

static void deadline_after(struct timespec *deadline, int timeout_ms)
{
	clock_gettime(CLOCK_MONOTONIC, deadline);
	deadline->tv_sec += timeout_ms / 1000;
	deadline->tv_nsec += (timeout_ms % 1000) * 1000000L;
	if (deadline->tv_nsec >= 1000000000L) {
		deadline->tv_sec++;
		deadline->tv_nsec -= 1000000000L;
	}
}

int sl_digest_wait(struct sl_digest_store *store, unsigned int exe_id, int timeout_ms,
		   struct sl_digest *out)
{
	struct timespec deadline;
	struct entry *entry;
	int ret = 0;

	deadline_after(&deadline, timeout_ms < 0 ? 0 : timeout_ms);
	pthread_mutex_lock(&store->lock);
	/* Looked up anew each time: it may be evicted while this thread sleeps. */
	while ((entry = find(store, exe_id)) && entry->in_flight && !ret)
		ret = timeout_ms < 0
			      ? pthread_cond_wait(&store->answered, &store->lock)
			      : pthread_cond_timedwait(&store->answered, &store->lock, &deadline);
	if (!entry)
		ret = ENOENT;
	else if (!entry->in_flight)
		ret = 0;
	if (!ret)
		*out = entry->digest;
	pthread_mutex_unlock(&store->lock);
	return -ret;
}

int sl_digest_fd(const struct sl_digest_store *store)
{
	return store->event_fd;
}

int sl_digest_drain(struct sl_digest_store *store, sl_digest_fn fn, void *arg)
{
	unsigned int count, left;
	uint64_t unused;
	ssize_t n;

	n = read(store->event_fd, &unused, sizeof(unused));
	(void)n; /* EAGAIN: nothing was signalled */
	pthread_mutex_lock(&store->lock);
	/* No more than are there now: `fn` may ask again and get its answer at once. */
	count = left = store->undelivered;
	for (; left && store->undelivered; left--) {
		struct entry *entry = TAILQ_FIRST(&store->answers);
		struct sl_digest digest = entry->digest;
		unsigned int exe_id = entry->exe_id;

		forget_answer(store, entry);
		pthread_mutex_unlock(&store->lock);
		fn(exe_id, &digest, arg);
		pthread_mutex_lock(&store->lock);
	}
	if (store->undelivered)
		event_signal(store);
	pthread_mutex_unlock(&store->lock);
	return (int)(count - left);
}

void sl_digest_store_stats(struct sl_digest_store *store, struct sl_digest_stats *out)
{
	pthread_mutex_lock(&store->lock);
	*out = store->stats;
	pthread_mutex_unlock(&store->lock);
}

/* -ECANCELED when the store is being freed. */
static int job_run(struct sl_digest_store *store, struct job *job, struct sl_digest *out)
{
	int ret;

	if (job->pin_fd < 0)
		out->error = sl_exe_pin(&job->ref, job->pid, false, &job->pin_fd);
	if (out->error)
		return 0;
	ret = sl_hasher_run(store->hasher, &job->ref, job->pin_fd, out);
	if (ret && ret != -ECANCELED) {
		out->error = SL_DIGEST_UNREADABLE;
		ret = 0;
	}
	return ret;
}

static void *worker_main(void *arg)
{
	struct sl_digest_store *store = arg;

	pthread_mutex_lock(&store->lock);
	while (!atomic_load(&store->stop)) {
		struct entry *entry = TAILQ_FIRST(&store->queue);
		struct sl_digest digest = { 0 };
		int ret;

		if (!entry) {
			pthread_cond_wait(&store->work, &store->lock);
			continue;
		}
		TAILQ_REMOVE(&store->queue, entry, queue);
		store->stats.queued--;
		pthread_mutex_unlock(&store->lock);
		ret = job_run(store, entry->job, &digest);
		pthread_mutex_lock(&store->lock);
		if (ret)
			break;
		store->stats.hashed += digest.error == SL_DIGEST_NONE;
		entry_answer(store, entry, &digest);
	}
	pthread_mutex_unlock(&store->lock);
	return NULL;
}

/* Signals are for the threads that have a plan for them. */
static int worker_start(struct sl_digest_store *store)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	err = pthread_attr_setstacksize(&attr, WORKER_STACK_BYTES);
	if (!err) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		err = pthread_create(&store->worker, &attr, worker_main, store);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_attr_destroy(&attr);
	return -err;
}

static void store_release(struct sl_digest_store *store)
{
	struct entry *entry;

	while ((entry = TAILQ_FIRST(&store->ages)))
		entry_drop(store, entry);
	if (store->event_fd >= 0)
		close(store->event_fd);
	sl_htab_free(&store->by_id);
	sl_hasher_free(&store->hasher);
	pthread_cond_destroy(&store->answered);
	pthread_cond_destroy(&store->work);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

int sl_digest_store_new(struct sl_digest_store **out)
{
	struct sl_digest_store *store = calloc(1, sizeof(*store));
	pthread_condattr_t monotonic;
	int ret;

	if (!store)
		return -ENOMEM;
	TAILQ_INIT(&store->ages);
	TAILQ_INIT(&store->queue);
	TAILQ_INIT(&store->answers);
	pthread_mutex_init(&store->lock, NULL);
	pthread_cond_init(&store->work, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&store->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = store->event_fd < 0 ? -errno : sl_hasher_new(&store->hasher, &store->stop);
	if (!ret)
		ret = sl_htab_new(&store->by_id, sizeof(unsigned int), sizeof(struct entry *));
	if (!ret)
		ret = worker_start(store);
	if (ret) {
		store_release(store);
		return ret;
	}
	*out = store;
	return 0;
}

void sl_digest_store_free(struct sl_digest_store **store)
{
	if (!*store)
		return;
	pthread_mutex_lock(&(*store)->lock);
	atomic_store(&(*store)->stop, true);
	pthread_cond_signal(&(*store)->work);
	pthread_mutex_unlock(&(*store)->lock);
	pthread_join((*store)->worker, NULL);
	store_release(*store);
	*store = NULL;
}
