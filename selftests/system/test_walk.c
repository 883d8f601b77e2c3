/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A walk over a map gives each row once, also while rows come and go: see map_rows.c. */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/set.h"

TestSuite(walk, .timeout = 60);

#define ROWS 4000
#define WALKS 50

static int new_map(enum bpf_map_type type)
{
	int fd = bpf_map_create(type, "sluice_walk", sizeof(__u32), sizeof(__u32), ROWS, NULL);

	cr_assert_geq(fd, 0, "bpf_map_create: %s", strerror(errno));
	for (__u32 key = 0; key < ROWS; key++)
		cr_assert_eq(bpf_map_update_elem(fd, &key, &key, BPF_ANY), 0);
	return fd;
}

struct walk {
	int fd;
	bool cut; /* deletes as it goes */
	unsigned int met[ROWS];
};

static int meet(const void *key, void *value, void *arg)
{
	const __u32 *id = key;
	const __u32 next = *id + 1;
	struct walk *walk = arg;

	cr_assert_lt(*id, ROWS);
	cr_assert_eq(*(const __u32 *)value, *id);
	walk->met[*id]++;
	if (walk->cut && *id % 4 == 1) {
		bpf_map_delete_elem(walk->fd, id);
		bpf_map_delete_elem(walk->fd, &next);
	}
	return 0;
}

/* Rows whose number leaves 1 or 2, divided by four, come and go: once at most. */
static void expect_once(const struct walk *walk)
{
	for (__u32 i = 0; i < ROWS; i++) {
		cr_assert_leq(walk->met[i], 1, "row %u was met %u times", i, walk->met[i]);
		if (i % 4 == 0 || i % 4 == 3)
			cr_assert_eq(walk->met[i], 1, "row %u was not met", i);
	}
}

Test(walk, one_that_deletes_meets_each_row_once)
{
	_cleanup_fd_ int fd = new_map(BPF_MAP_TYPE_HASH);
	struct walk walk = { .fd = fd, .cut = true };

	cr_assert_eq(sl_map_each(fd, meet, &walk), 0);
	expect_once(&walk);
	cr_expect_eq(sl_map_count_rows(fd), ROWS / 2);
}

static _Noreturn void churn(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (__u32 key = 1;; key = key + 4 < ROWS ? key + 4 : 1) {
		bpf_map_delete_elem(fd, &key);
		bpf_map_update_elem(fd, &key, &key, BPF_ANY);
	}
}

Test(walk, among_others_that_delete_each_row_is_met_once)
{
	_cleanup_fd_ int fd = new_map(BPF_MAP_TYPE_HASH);
	const pid_t pid = fork();
	int rc = 0;

	cr_assert_geq(pid, 0);
	if (!pid)
		churn(fd);
	for (int i = 0; i < WALKS && !rc; i++) {
		struct walk walk = { .fd = fd };

		rc = sl_map_each(fd, meet, &walk);
		expect_once(&walk);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect_eq(rc, 0, "%s", strerror(-rc));
}

static int stop_at_third(const void *key, void *value, void *arg)
{
	(void)key;
	(void)value;
	return ++*(int *)arg == 3 ? -ECANCELED : 0;
}

Test(walk, ends_when_told_to)
{
	_cleanup_fd_ int fd = new_map(BPF_MAP_TYPE_LRU_HASH);
	int met = 0;

	cr_expect_eq(sl_map_each(fd, stop_at_third, &met), -ECANCELED);
	cr_expect_eq(met, 3);
	cr_expect_lt(sl_map_each(-1, stop_at_third, &met), 0);
}
