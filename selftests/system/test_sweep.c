/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of executables and lineages: the unused are removed, the used never. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "kernel/ring.h"
#include "kernel/sweep.h"
#include "system/expect.h"

TestSuite(sweep, .fini = world_down, .timeout = 120);

static const struct sl_set_options small = { .max_exes = 128,
					     .max_lineages = 128,
					     .max_closed = 64 };

static struct load server;

static unsigned int serve(const char *words)
{
	return server_start(&server, words);
}

static bool swept_all(void *arg)
{
	struct sl_swept *sum = arg, swept = { 0 };
	int rc = sl_sweep(world.set, NULL, &swept);

	cr_assert(!rc || rc == -EAGAIN, "sweep: %s", strerror(-rc));
	sum->exes += swept.exes;
	sum->lineages += swept.lineages;
	return !rc;
}

/* Until one succeeds: a socket that is just being made or closed can be in its way. */
static struct sl_swept sweep(void)
{
	struct sl_swept sum = { 0 };

	cr_assert(eventually(swept_all, &sum), "there are always sockets that are not seen");
	return sum;
}

static bool is_running(const struct load *load)
{
	siginfo_t info = { 0 };

	cr_assert_eq(waitid(P_PID, load->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return !info.si_pid;
}

/* Each image of the socket's lineage has its row, and that is the right one. */
static void expect_chain(const struct sl_owner *owner, const char *leaf, const char *parent)
{
	char paths[2][PATH_MAX];
	const char *const lineage[] = { paths[0], paths[1], NULL };

	snprintf(paths[0], PATH_MAX, "%s/%s", world.scratch, leaf);
	snprintf(paths[1], PATH_MAX, "%s/%s", world.scratch, parent);
	expect_path(owner->exe, paths[0]);
	expect_lineage(owner->lineage, lineage);
}

/*
 * A set that lives for long runs ever new binaries, several times more than there is room
 * for, while one old process keeps its socket and its whole chain.
 */
Test(sweep, churn_of_binaries)
{
	char line[256], *argv[] = { "/bin/sh", "-c", line, NULL };
	struct sl_sweep_clock clock = { 0 };
	struct sl_swept sum = { 0 };
	unsigned int port, sweeps = 0;
	struct load old, churn;
	struct sl_sock sock;

	world_make(&small, true);
	port = serve("tcp-server --quiet --count 10000");
	load_start(&old, INSIDE,
		   "exec-chain a b --dir %s --hold --timeout 90 --server 127.0.0.1:%u",
		   world.scratch, port);
	load_await(&old, "open", 1);
	snprintf(line, sizeof(line),
		 "cd %s; i=0; while [ $i -lt 400 ]; do i=$((i+1)); cp /bin/true t$i; ./t$i; "
		 "rm t$i; echo what=step; read go; done",
		 world.scratch);
	load_exec(&churn, INSIDE, argv);
	for (unsigned int i = 1; i <= 400; i++) {
		load_await(&churn, "step", i);
		if (sl_sweep_due(world.set, &clock)) {
			struct sl_swept swept = sweep();

			sl_sweep_done(&clock);
			sum.exes += swept.exes;
			sum.lineages += swept.lineages;
			sweeps++;
		}
		cr_assert_eq(write(churn.in, "\n", 1), 1);
	}
	cr_expect_eq(load_end(&churn), 0);
	cr_expect_gt(sweeps, 5);
	cr_expect_geq(sum.exes, 400 - 128);
	cr_expect_geq(sum.lineages, 400 - 128);
	cr_expect_leq(map_rows(SL_MAP_EXE_INDEX), map_rows(SL_MAP_EXES));
	cr_assert(live_sock(fact_u64(fact_next(&old, NULL, "open"), "cookie"), &sock));
	expect_chain(&sock.owner, "b", "a");
	cr_expect_eq(load_end(&old), 0);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&churn);
	load_free(&old);
}

/* A consumer of exec events that looks at each event's rows when it reads it. */
struct reader {
	struct sl_ring *ring;
	unsigned int leaves;
};

static void on_exec(const struct sl_event *event, void *arg)
{
	const struct sl_process *process = &((const struct sl_event_process *)event)->process;
	const struct sl_owner owner = { .exe = process->exe, .lineage = process->lineage };
	struct reader *reader = arg;

	if (event->kind != SL_EVENT_EXEC || strcmp(process->comm, "leaf") != 0)
		return;
	reader->leaves++;
	expect_chain(&owner, "leaf", "parent");
}

static int read_first(void *ctx, sl_ref_fn fn, void *arg)
{
	struct reader *reader = ctx;

	(void)fn, (void)arg;
	return sl_ring_drain(reader->ring) < 0 ? -EIO : 0;
}

/*
 * The rows go, and come again, under programs that look them up at the same time. In bursts:
 * between two of them, longer than a sweep takes, nothing runs either binary.
 */
Test(sweep, while_the_same_binaries_run)
{
	struct sl_set_options options = small;
	struct reader reader = { 0 };
	struct sl_sweep_roots roots = { .each = read_first, .ctx = &reader };
	char parent[PATH_MAX], leaf[PATH_MAX], line[4 * PATH_MAX];
	char *argv[] = { "/bin/sh", "-c", line, NULL };
	struct sl_swept swept, sum = { 0 };
	struct load storm;
	int rc;

	options.events = SL_EVENT_BIT(SL_EVENT_EXEC);
	world_make(&options, true);
	cr_assert_eq(sl_ring_new(&reader.ring, world.set, on_exec, &reader, NULL), 0);
	roots.ring = reader.ring;
	snprintf(line, sizeof(line),
		 "for i in 0 1 2 3 4 5 6 7 8 9; do"
		 " %s spawn-storm --count 40 --jobs 2 --quiet --timeout 90 --"
		 " %s %s >/dev/null || exit; sleep 0.5; done",
		 getenv("SL_LOAD"), world_copy_of("/usr/bin/env", "parent", parent),
		 world_copy_of("/bin/true", "leaf", leaf));
	load_exec(&storm, INSIDE, argv);
	do {
		rc = sl_sweep(world.set, &roots, &swept);
		cr_assert_eq(rc, 0, "sweep: %s", strerror(-rc));
		sum.exes += swept.exes;
		sum.lineages += swept.lineages;
	} while (is_running(&storm));
	cr_expect_eq(load_end(&storm), 0);
	cr_assert_geq(sl_ring_drain(reader.ring), 0);
	cr_expect_eq(reader.leaves, 400);
	cr_expect_gt(sum.lineages, 10, "%u lineages were swept", sum.lineages);
	cr_expect_gt(sum.exes, 10, "%u executables were swept", sum.exes);
	cr_log_info("swept %u executables, %u lineages", sum.exes, sum.lineages);
	expect_conserved(0);
	expect_no_faults();
	sl_ring_free(&reader.ring);
	load_free(&storm);
}

/* What only the ring of closed sockets still refers to. */
Test(sweep, closed_sockets_keep_theirs)
{
	struct sl_swept swept;
	struct load load;
	struct sl_sock sock;

	world_make(&small, true);
	load_run(&load, INSIDE, "exec-chain a b --dir %s --server 127.0.0.1:%u", world.scratch,
		 serve("tcp-server --quiet --count 10000"));
	sock = closed_sock(fact_u64(fact_next(&load, NULL, "sock"), "cookie"));
	sweep();
	expect_chain(&sock.owner, "b", "a");
	load_free(&load);

	load_run(&load, INSIDE, "tcp-fail --kind refused --count 2000 --quiet");
	swept = sweep();
	cr_expect_gt(swept.exes, 0);
	cr_expect_gt(swept.lineages, 0);
	cr_expect_eq(sl_lineage_by_id(world.set, sock.owner.lineage, &(struct sl_lineage){ 0 }),
		     -ENOENT);
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

/* A connection that waits to be accepted has a record that no descriptor leads to. */
Test(sweep, unseen_sockets_prevent_it)
{
	struct sl_swept swept;
	struct load queue, client;
	unsigned int port;

	world_make(&small, true);
	port = server_start_at(&queue, INSIDE, "tcp-server --no-accept", "127.0.0.1:0");
	cr_expect_eq(sl_sweep(world.set, NULL, &swept), 0);
	load_run(&client, OUTSIDE, "tcp-exit --server 127.0.0.1:%u --count 1 --quiet", port);
	cr_expect_eq(sl_sweep(world.set, NULL, &swept), -EAGAIN);
	load_end(&queue);
	sweep();
	expect_conserved(0);
	load_free(&queue);
	load_free(&client);
}
