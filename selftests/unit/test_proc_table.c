/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of processes, fed with events as the ring delivers them, or loses them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "identity/proc_table.h"

TestSuite(proc_table);

static struct sl_event_process event_of(unsigned int kind, unsigned int tgid,
					unsigned long long start_ns)
{
	struct sl_event_process event = {
		.head = { .schema = SL_SCHEMA,
			  .kind = (unsigned short)kind,
			  .size = sizeof(event),
			  .time_ns = 1000 },
		.process = { .key = { .start_ns = start_ns, .tgid = tgid, .pad = 0xdead } },
	};

	memset(event.process.comm, 'c', SL_COMM_LEN);
	return event;
}

static int feed(struct sl_proc_table *table, unsigned int kind, unsigned int tgid,
		unsigned long long start_ns)
{
	struct sl_event_process event = event_of(kind, tgid, start_ns);

	return sl_proc_table_event(table, &event);
}

Test(proc_table, life_of_a_process)
{
	struct sl_event_process event = event_of(SL_EVENT_EXEC, 10, 7);
	struct sl_proc_table *table;
	const struct sl_proc *proc;

	cr_assert_eq(sl_proc_table_new(&table, 0, 0), 0);
	cr_assert_eq(feed(table, SL_EVENT_FORK, 10, 7), 0);
	event.process.exec_ns = 50;
	event.process.exe = 3;
	cr_assert_eq(sl_proc_table_event(table, &event), 0);
	proc = sl_proc_table_find(table, 10, 7);
	cr_assert_not_null(proc);
	cr_expect_eq(proc->process.exe, 3);
	cr_expect_eq(proc->process.key.pad, 0);
	cr_expect_eq(strlen(proc->process.comm), SL_COMM_LEN - 1);
	cr_expect_null(sl_proc_table_find(table, 10, 8), "a reused pid is another process");
	/* The fork's record, late: older than the exec. */
	cr_assert_eq(feed(table, SL_EVENT_FORK, 10, 7), 0);
	cr_expect_eq(proc->process.exe, 3);
	event.head.kind = SL_EVENT_EXIT;
	event.exit_code = 256;
	cr_assert_eq(sl_proc_table_event(table, &event), 0);
	cr_expect(proc->exited);
	cr_expect_not(proc->exit_lost);
	cr_expect_eq(proc->exit_code, 256);
	cr_expect_eq(proc->exit_ns, 1000);
	/* Nothing brings it back. */
	cr_assert_eq(feed(table, SL_EVENT_EXEC, 10, 7), 0);
	cr_expect(sl_proc_table_find(table, 10, 7)->exited);
	sl_proc_table_free(&table);
	cr_expect_null(table);
	sl_proc_table_free(&table);
}

Test(proc_table, refuses_what_is_no_process_event)
{
	struct sl_event_process event = event_of(SL_EVENT_FORK, 10, 7);
	struct sl_proc_table *table;

	cr_assert_eq(sl_proc_table_new(&table, 0, 0), 0);
	event.head.size = sizeof(event) - 1;
	cr_expect_eq(sl_proc_table_event(table, &event), -EINVAL);
	cr_expect_eq(feed(table, SL_EVENT_CLOSE, 10, 7), -EINVAL);
	cr_expect_eq(feed(table, SL_EVENT_KIND_MAX, 10, 7), -EINVAL);
	cr_expect_null(sl_proc_table_find(table, 10, 7));
	sl_proc_table_free(&table);
}

Test(proc_table, exited_are_bounded_and_held_ones_stay)
{
	struct sl_proc_table_stats stats;
	struct sl_proc_table *table;
	const struct sl_proc *first, *second, *none = NULL;

	cr_assert_eq(sl_proc_table_new(&table, 0, 4), 0);
	feed(table, SL_EVENT_FORK, 1, 1);
	first = sl_proc_table_hold(table, 1, 1);
	cr_assert_not_null(first);
	feed(table, SL_EVENT_EXIT, 1, 1);
	for (unsigned int pid = 2; pid < 100; pid++)
		feed(table, SL_EVENT_EXIT, pid, 1); /* its fork was lost */
	cr_expect_eq(first->process.key.tgid, 1);
	cr_expect_null(sl_proc_table_find(table, 95, 1));
	cr_expect_not_null(sl_proc_table_find(table, 96, 1));
	second = sl_proc_table_hold(table, 96, 1); /* held only after its exit */
	cr_assert_not_null(second);
	cr_expect_eq(sl_proc_table_hold(table, 96, 1), second);
	sl_proc_table_stats(table, &stats);
	cr_expect_eq(stats.live, 0);
	cr_expect_eq(stats.exited, 3);
	cr_expect_eq(stats.held_exited, 2);
	sl_proc_table_drop(table, &first);
	cr_expect_null(first);
	sl_proc_table_drop(table, &none);
	cr_expect_not_null(sl_proc_table_find(table, 1, 1), "now the latest of the exited");
	feed(table, SL_EVENT_EXIT, 200, 1);
	cr_expect_null(sl_proc_table_find(table, 97, 1));
	none = second;
	sl_proc_table_drop(table, &none);
	for (unsigned int pid = 300; pid < 310; pid++)
		feed(table, SL_EVENT_EXIT, pid, 1);
	cr_expect_not_null(sl_proc_table_find(table, 96, 1), "held once more");
	sl_proc_table_drop(table, &second);
	sl_proc_table_stats(table, &stats);
	cr_expect_eq(stats.exited, 4);
	cr_expect_eq(stats.held_exited, 0);
	sl_proc_table_free(&table);
}

Test(proc_table, full_of_live_ones)
{
	struct sl_proc_table_stats stats;
	struct sl_proc_table *table;

	cr_assert_eq(sl_proc_table_new(&table, 8, 0), 0);
	for (unsigned int pid = 1; pid <= 8; pid++)
		cr_assert_eq(feed(table, SL_EVENT_ENTER, pid, 1), 0);
	cr_expect_eq(feed(table, SL_EVENT_FORK, 9, 1), -ENOSPC);
	cr_expect_eq(feed(table, SL_EVENT_EXEC, 8, 1), 0, "those known go on");
	feed(table, SL_EVENT_EXIT, 3, 1);
	cr_expect_eq(feed(table, SL_EVENT_FORK, 9, 1), 0, "what exited makes room");
	cr_expect_null(sl_proc_table_find(table, 3, 1));
	sl_proc_table_stats(table, &stats);
	cr_expect_eq(stats.refused, 1);
	cr_expect_eq(stats.live, 8);
	sl_proc_table_free(&table);
}

Test(proc_table, resync_after_a_loss)
{
	struct sl_process process = { .key = { .start_ns = 1, .tgid = 1 } };
	struct sl_proc_table *table;

	cr_assert_eq(sl_proc_table_new(&table, 0, 0), 0);
	for (unsigned int pid = 1; pid <= 3; pid++)
		feed(table, SL_EVENT_FORK, pid, 1);
	sl_proc_table_resync_begin(table);
	cr_assert_eq(sl_proc_table_seed(table, &process), 0); /* 1: still there */
	process.key.tgid = 4;                                 /* its fork was lost */
	cr_assert_eq(sl_proc_table_seed(table, &process), 0);
	process.key.tgid = 5;
	process.flags = SL_PROC_EXITED;
	cr_assert_eq(sl_proc_table_seed(table, &process), 0);
	feed(table, SL_EVENT_EXEC, 2, 1); /* heard of meanwhile */
	sl_proc_table_resync_end(table, 5000);
	cr_expect_not(sl_proc_table_find(table, 1, 1)->exited);
	cr_expect_not(sl_proc_table_find(table, 2, 1)->exited);
	cr_expect_not(sl_proc_table_find(table, 4, 1)->exited);
	cr_expect(sl_proc_table_find(table, 5, 1)->exited);
	cr_expect(sl_proc_table_find(table, 3, 1)->exited);
	cr_expect(sl_proc_table_find(table, 3, 1)->exit_lost);
	cr_expect_eq(sl_proc_table_find(table, 3, 1)->exit_ns, 5000);
	/* Its exit was not lost, only late. */
	feed(table, SL_EVENT_EXIT, 3, 1);
	cr_expect_not(sl_proc_table_find(table, 3, 1)->exit_lost);
	cr_expect_eq(sl_proc_table_find(table, 3, 1)->exit_ns, 1000);
	sl_proc_table_free(&table);
}

Test(proc_table, churn)
{
	struct sl_proc_table_stats stats;
	struct sl_proc_table *table;

	cr_assert_eq(sl_proc_table_new(&table, 64, 16), 0);
	for (unsigned int i = 0; i < 200000; i++) {
		cr_assert_eq(feed(table, SL_EVENT_FORK, i % 1000, i), 0);
		cr_assert_eq(feed(table, SL_EVENT_EXIT, i % 1000, i), 0);
	}
	sl_proc_table_stats(table, &stats);
	cr_expect_eq(stats.live, 0);
	cr_expect_eq(stats.exited, 16);
	sl_proc_table_free(&table);
}
