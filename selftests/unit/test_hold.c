/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls a policy makes wait, and that a file is hashed once however many wait for it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/filter.h"
#include "guard/files_private.h"
#include "run/enforce.h"
#include "unit/policy_world.h"

#define ENTRY                                               \
	"version: 1\nnetwork_policies:\n  e:\n"             \
	"    endpoints: [{cidr: 192.0.2.0/24, port: 80}]\n" \
	"    binaries: ["
#define PIN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static unsigned int holds(enum sl_run_hold hold, const char *binaries)
{
	_cleanup_(sl_enforce_free) struct sl_enforce *enforce = NULL;
	struct sl_enforce_options options = { .hold = hold, .mode = SL_GUARD_MODE_MAX };
	char path[] = "/tmp/sl-unit-hold-XXXXXX";
	struct sl_err err = { 0 };
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_gt(dprintf(fd, ENTRY "%s]\n", binaries), 0);
	close(fd);
	options.file = path;
	cr_assert_eq(sl_enforce_open(&enforce, &options, &err), 0, "%s", err.text);
	unlink(path);
	return sl_enforce_holds(enforce);
}

Test(hold, calls_that_wait)
{
	static const struct {
		const char *binaries;
		unsigned int automatic, exec, connect;
	} cases[] = {
		{ "{path: /usr/bin/node}", 0, SL_HOLD_EXEC, SL_HOLD_CONNECT },
		{ "{path: /usr/bin/**}", 0, SL_HOLD_EXEC, SL_HOLD_CONNECT },
		{ "{path: /usr/*/node}", SL_HOLD_EXEC, SL_HOLD_EXEC,
		  SL_HOLD_CONNECT | SL_HOLD_SEND },
		{ "{path: /usr/bin/node, sha256: " PIN "}", SL_HOLD_EXEC, SL_HOLD_EXEC,
		  SL_HOLD_CONNECT | SL_HOLD_SEND },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *binaries = cases[i].binaries;

		cr_expect_eq(holds(SL_RUN_HOLD_AUTO, binaries), cases[i].automatic, "%s", binaries);
		cr_expect_eq(holds(SL_RUN_HOLD_EXEC, binaries), cases[i].exec, "%s", binaries);
		cr_expect_eq(holds(SL_RUN_HOLD_CONNECT, binaries), cases[i].connect, "%s",
			     binaries);
	}
}

#define THREADS 40

static struct sl_files *files;
static atomic_uint hashes, asked;
static int outcome;

/* I16: takes until all have asked. */
static int hash(void *arg, uint8_t sha256[SL_SHA256_LEN])
{
	(void)arg;
	atomic_fetch_add(&hashes, 1);
	while (atomic_load(&asked) < THREADS)
		sched_yield();
	memset(sha256, 7, SL_SHA256_LEN);
	return outcome;
}

static void *ask(void *arg)
{
	const struct sl_guard_file key = { .ino = 5, .policy = 1 };
	uint8_t sha256[SL_SHA256_LEN] = { 0 };

	atomic_fetch_add(&asked, 1);
	*(int *)arg = sl_files_digest_once(files, &key, 100, hash, NULL, sha256);
	return sha256[31] == 7 ? arg : NULL;
}

static void ask_all(int want)
{
	pthread_t threads[THREADS];
	int results[THREADS];
	void *got;

	atomic_store(&asked, 0);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, ask, &results[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_join(threads[i], &got), 0);
		cr_expect_eq(results[i], want);
		cr_expect(want || got, "no digest");
	}
}

Test(hold, hashed_once)
{
	_cleanup_world_ struct policy_world world = { 0 };
	const struct sl_guard_file key = { .ino = 5, .policy = 1 };
	uint8_t sha256[SL_SHA256_LEN];

	policy_world_load(&world, ENTRY "{path: /x, sha256: " PIN "}]\n");
	cr_assert_eq(sl_files_new(&files, NULL, world.compiled, 1, 1), 0);
	/* A failure is nobody's digest: each tries for itself. */
	outcome = -EIO;
	ask_all(-EIO);
	cr_expect_eq(atomic_exchange(&hashes, 0), THREADS);
	outcome = 0;
	ask_all(0);
	cr_expect_eq(atomic_load(&hashes), 1);
	/* Another size is another file. */
	cr_expect_eq(sl_files_digest_once(files, &key, 101, hash, NULL, sha256), 0);
	cr_expect_eq(atomic_load(&hashes), 2);
	sl_files_free(&files);
}
