/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The asynchronous store of digests: its answers, its limits, its threads. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "unit/digest_world.h"

/* Sparse, and large enough that hashing it takes far longer than a test's next step. */
#define BIG_BYTES (768LL << 20)

#define WAIT_MS 60000

TestSuite(digest_store, .init = digest_world_make, .fini = digest_world_remove, .timeout = 120);

struct seen {
	unsigned int count;
	unsigned int last_id;
	struct sl_digest last;
};

static void note(unsigned int exe_id, const struct sl_digest *digest, void *arg)
{
	struct seen *seen = arg;

	seen->count++;
	seen->last_id = exe_id;
	seen->last = *digest;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

static struct sl_exe *big_file(unsigned int id)
{
	put_file(in_dir("big"), "");
	cr_assert_eq(truncate(in_dir("big"), BIG_BYTES), 0);
	return record(in_dir("big"), id);
}

/* Whether a descriptor of ours refers to `path` and has been read from. */
static bool is_being_read(const char *path)
{
	for (int fd = 3; fd < 64; fd++) {
		char link[64], target[256] = "", line[128];
		_cleanup_file_ FILE *info = NULL;
		long long pos = 0;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, target, sizeof(target) - 1) < 0 || strcmp(target, path) != 0)
			continue;
		snprintf(link, sizeof(link), "/proc/self/fdinfo/%d", fd);
		info = fopen(link, "re");
		if (info && fgets(line, sizeof(line), info) &&
		    sscanf(line, "pos: %lld", &pos) == 1 && pos > 0)
			return true;
	}
	return false;
}

static struct sl_digest_store *store_hashing_big(unsigned int id)
{
	struct sl_digest_store *store;
	struct sl_exe *exe = big_file(id);

	cr_assert_eq(sl_digest_store_new(&store), 0);
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	while (!is_being_read(exe->path))
		sched_yield();
	free(exe);
	return store;
}

Test(digest_store, answers_through_its_descriptor)
{
	_cleanup_free_ struct sl_exe *exe = NULL;
	struct sl_digest_store *store;
	struct sl_digest digest;
	struct seen seen = { 0 };

	put_file(in_dir("tool"), "abc");
	exe = record(in_dir("tool"), 7);
	cr_assert_eq(sl_digest_store_new(&store), 0);
	cr_expect_eq(sl_digest_get(store, 7, &digest), -ENOENT);
	cr_expect_eq(sl_digest_wait(store, 7, 0, &digest), -ENOENT);
	cr_expect_not(readable(sl_digest_fd(store), 0));
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	cr_assert(readable(sl_digest_fd(store), WAIT_MS));
	cr_expect_eq(sl_digest_drain(store, note, &seen), 1);
	cr_expect_eq(seen.last_id, 7);
	cr_expect_str_eq(digest_text(&seen.last), SHA_ABC);
	cr_expect_not(readable(sl_digest_fd(store), 0));
	cr_assert_eq(sl_digest_get(store, 7, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), SHA_ABC);
	/* Known: no second answer. */
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	cr_expect_not(readable(sl_digest_fd(store), 0));
	exe->id = 0;
	cr_expect_eq(sl_digest_request(store, exe, 0), -EINVAL);
	sl_digest_store_free(&store);
	cr_expect_null(store);
	sl_digest_store_free(&store);
}

Test(digest_store, pinned_at_the_request)
{
	struct sl_digest_store *store = store_hashing_big(1);
	_cleanup_free_ struct sl_exe *exe = NULL;
	struct sl_digest digest;
	char away[256];

	/* Out of reach while it waits for the worker, itself untouched. */
	cr_assert_eq(mkdir(in_dir("sub"), 0700), 0);
	put_file(in_dir("sub/tool"), "abc");
	exe = record(in_dir("sub/tool"), 2);
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	strcpy(away, in_dir("away"));
	cr_assert_eq(rename(in_dir("sub"), away), 0);
	cr_assert_eq(sl_digest_wait(store, 1, WAIT_MS, &digest), 0);
	cr_assert_eq(sl_digest_wait(store, 2, WAIT_MS, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), SHA_ABC);
	sl_digest_store_free(&store);
}

Test(digest_store, failures_are_answered_and_retried)
{
	_cleanup_free_ struct sl_exe *exe = NULL;
	struct sl_digest_store *store;
	struct sl_digest digest;
	struct seen seen = { 0 };
	char away[256];

	cr_assert_eq(mkdir(in_dir("sub"), 0700), 0);
	put_file(in_dir("sub/tool"), "abc");
	exe = record(in_dir("sub/tool"), 3);
	strcpy(away, in_dir("away"));
	cr_assert_eq(rename(in_dir("sub"), away), 0);
	cr_assert_eq(sl_digest_store_new(&store), 0);
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	cr_assert_eq(sl_digest_wait(store, 3, WAIT_MS, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), "gone");
	cr_assert_eq(rename(away, in_dir("sub")), 0);
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	cr_assert_eq(sl_digest_wait(store, 3, WAIT_MS, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), SHA_ABC);
	cr_expect_eq(sl_digest_drain(store, note, &seen), 1, "the failure was replaced");
	cr_expect_str_eq(digest_text(&seen.last), SHA_ABC);
	sl_digest_store_free(&store);
}

Test(digest_store, changed_while_it_was_read)
{
	struct sl_digest_store *store = store_hashing_big(1);
	struct sl_digest digest;

	touch_file(in_dir("big"));
	cr_assert_eq(sl_digest_get(store, 1, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), "pending");
	cr_expect_eq(sl_digest_wait(store, 1, 0, &digest), -ETIMEDOUT);
	cr_assert_eq(sl_digest_wait(store, 1, WAIT_MS, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), "changed");
	sl_digest_store_free(&store);
}

Test(digest_store, shortened_while_it_was_read)
{
	struct sl_digest_store *store = store_hashing_big(1);
	struct sl_digest digest;

	cr_assert_eq(truncate(in_dir("big"), 1), 0);
	cr_assert_eq(sl_digest_wait(store, 1, -1, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), "changed");
	sl_digest_store_free(&store);
}

static unsigned int open_fds(void)
{
	_cleanup_dir_ DIR *fds = opendir("/proc/self/fd");
	unsigned int count = 0;

	cr_assert_not_null(fds);
	while (readdir(fds))
		count++;
	return count;
}

/* With one file half read and one that waits; leaked memory is for the sanitizers. */
Test(digest_store, freed_while_it_reads)
{
	unsigned int before = open_fds();
	struct sl_digest_store *store = store_hashing_big(1);
	_cleanup_free_ struct sl_exe *exe = NULL;

	put_file(in_dir("tool"), "abc");
	exe = record(in_dir("tool"), 2);
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	sl_digest_store_free(&store);
	cr_expect_eq(open_fds(), before);
}

#define ASKERS 40

struct asker {
	struct sl_digest_store *store;
	const struct sl_exe *exe;
	pthread_barrier_t *barrier;
	struct sl_digest digest;
	int ret;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;

	pthread_barrier_wait(asker->barrier);
	asker->ret = sl_digest_request(asker->store, asker->exe, 0);
	if (!asker->ret)
		asker->ret = sl_digest_wait(asker->store, asker->exe->id, WAIT_MS, &asker->digest);
	return NULL;
}

Test(digest_store, hashed_once_however_many_ask)
{
	struct asker askers[ASKERS] = { 0 };
	_cleanup_free_ struct sl_exe *exe = NULL;
	struct sl_digest_stats stats;
	struct sl_digest_store *store;
	pthread_barrier_t barrier;
	pthread_t threads[ASKERS];
	struct seen seen = { 0 };

	put_file(in_dir("tool"), "abc");
	exe = record(in_dir("tool"), 1);
	cr_assert_eq(sl_digest_store_new(&store), 0);
	pthread_barrier_init(&barrier, NULL, ASKERS);
	for (int i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){ .store = store, .exe = exe, .barrier = &barrier };
		cr_assert_eq(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
	}
	for (int i = 0; i < ASKERS; i++) {
		pthread_join(threads[i], NULL);
		cr_expect_eq(askers[i].ret, 0);
		cr_expect_str_eq(digest_text(&askers[i].digest), SHA_ABC);
	}
	pthread_barrier_destroy(&barrier);
	sl_digest_store_stats(store, &stats);
	cr_expect_eq(stats.requested, ASKERS);
	cr_expect_eq(stats.hashed, 1);
	cr_expect_eq(sl_digest_drain(store, note, &seen), 1);
	sl_digest_store_free(&store);
}

Test(digest_store, full_queue_is_answered_busy)
{
	struct sl_digest_store *store = store_hashing_big(1);
	_cleanup_free_ struct sl_exe *exe = NULL;
	struct sl_digest_stats stats;
	struct sl_digest digest;

	put_file(in_dir("tool"), "abc");
	exe = record(in_dir("tool"), 2);
	for (unsigned int i = 0; i < SL_DIGEST_QUEUE_MAX; i++, exe->id++)
		cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	sl_digest_store_stats(store, &stats);
	cr_assert_eq(stats.queued, SL_DIGEST_QUEUE_MAX);
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	cr_assert_eq(sl_digest_get(store, exe->id, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), "busy");
	cr_assert_eq(sl_digest_wait(store, exe->id - 1, WAIT_MS, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), SHA_ABC);
	cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	cr_assert_eq(sl_digest_wait(store, exe->id, WAIT_MS, &digest), 0);
	cr_expect_str_eq(digest_text(&digest), SHA_ABC);
	sl_digest_store_free(&store);
}

Test(digest_store, cache_is_bounded)
{
	_cleanup_free_ struct sl_exe *exe = calloc(1, sizeof(*exe));
	struct sl_digest_store *store = store_hashing_big(1);
	struct sl_digest_stats stats;
	struct sl_digest digest;
	struct seen seen = { 0 };

	exe->key.flags = SL_EXE_SCRIPT;
	for (exe->id = 2; exe->id < SL_DIGEST_CACHE_MAX + 12; exe->id++)
		cr_assert_eq(sl_digest_request(store, exe, 0), 0);
	sl_digest_store_stats(store, &stats);
	cr_expect_eq(stats.cached, SL_DIGEST_CACHE_MAX);
	cr_expect_eq(stats.evicted, 11);
	cr_expect_eq(sl_digest_get(store, 1, &digest), 0, "the oldest, but in flight");
	cr_expect_eq(sl_digest_get(store, 2, &digest), -ENOENT);
	cr_expect_eq(sl_digest_get(store, 13, &digest), 0);
	cr_expect_geq(sl_digest_drain(store, note, &seen), SL_DIGEST_CACHE_MAX - 1);
	cr_expect_eq(seen.count, SL_DIGEST_CACHE_MAX - 1);
	sl_digest_store_free(&store);
}

struct again {
	struct sl_digest_store *store;
	struct sl_exe *exe;
	unsigned int count;
};

static void ask_again(unsigned int exe_id, const struct sl_digest *digest, void *arg)
{
	struct again *again = arg;

	(void)exe_id;
	(void)digest;
	again->count++;
	sl_digest_request(again->store, again->exe, 0);
}

/* A callback that repeats what fails at once must not keep the loop in drain(). */
Test(digest_store, drain_ends)
{
	_cleanup_free_ struct sl_exe *exe = calloc(1, sizeof(*exe));
	struct again again = { .exe = exe };

	exe->id = 1;
	exe->key.flags = SL_EXE_DELETED;
	cr_assert_eq(sl_digest_store_new(&again.store), 0);
	cr_assert_eq(sl_digest_request(again.store, exe, 0), 0);
	for (unsigned int i = 1; i <= 3; i++) {
		cr_assert(readable(sl_digest_fd(again.store), 0));
		cr_expect_eq(sl_digest_drain(again.store, ask_again, &again), 1);
		cr_expect_eq(again.count, i);
	}
	sl_digest_store_free(&again.store);
}
