/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which program a socket belongs to: path, flags, lineage. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "system/expect.h"

TestSuite(exe, .init = world_up, .fini = world_down, .timeout = 60);

static struct sl_sock connected(struct load *load, const char *shape)
{
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	const char *line;
	struct sl_sock sock;

	load_run(load, INSIDE, "%s --server 127.0.0.1:%u --dir %s", shape, port, world.scratch);
	line = fact_next(load, NULL, "sock");
	cr_assert_not_null(line);
	sock = closed_sock(fact_u64(line, "cookie"));
	expect_owner(&sock.owner, line, "owner");
	cr_expect_eq(sock.owner.ns_pid, fact_u64(line, "ns_pid"));
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	return sock;
}

static void expect_path(unsigned int id, const char *name)
{
	char want[128];
	struct sl_exe exe;

	snprintf(want, sizeof(want), "%s/%s", world.scratch, name);
	exe_path(id, &exe);
	cr_expect_str_eq(exe.path, want);
}

Test(exe, chain_is_in_the_lineage)
{
	static const char *const names[] = { "c-with-a-name-longer-than-a-comm", "b", "a" };
	struct load load;
	struct sl_sock sock = connected(&load, "exec-chain a b c-with-a-name-longer-than-a-comm");
	unsigned int exes[8], n = lineage_exes(sock.owner.lineage, exes, 8);

	cr_assert_geq(n, 3);
	cr_expect_eq(exes[0], sock.owner.exe);
	for (int i = 0; i < 3; i++)
		expect_path(exes[i], names[i]);
	load_free(&load);
}

Test(exe, unlinked)
{
	struct load load;
	struct sl_sock sock = connected(&load, "unlink-self");
	struct sl_exe exe;

	exe_path(sock.owner.exe, &exe);
	expect_path(sock.owner.exe, "sl-load-unlinked");
	/* It had its name when it was executed. */
	cr_expect_not(exe.key.flags & SL_EXE_MEMFD);
	load_free(&load);
}

Test(exe, memfd)
{
	struct load load;
	struct sl_sock sock = connected(&load, "memfd-exec");
	struct sl_exe exe;

	exe_path(sock.owner.exe, &exe);
	cr_expect(exe.key.flags & SL_EXE_MEMFD);
	load_free(&load);
}

Test(exe, thread_is_an_extra)
{
	struct load load;
	struct sl_sock sock = connected(&load, "thread-connect --name other");
	const char *line = fact_next(&load, NULL, "sock");

	cr_expect_eq(sock.owner.tid, fact_u64(line, "tid"));
	cr_expect_neq(sock.owner.tid, sock.owner.tgid);
	cr_expect_str_eq(sock.owner.comm, "other");
	load_free(&load);
}

Test(exe, exec_by_a_thread)
{
	struct load load;

	connected(&load, "thread-exec");
	load_free(&load);
}

Test(exe, pid_namespace)
{
	struct load load;
	struct sl_sock sock = connected(&load, "ns-pid");

	cr_expect_eq(sock.owner.ns_pid, 1);
	cr_expect_neq(sock.owner.tgid, 1);
	load_free(&load);
}

/* I17: one process enters, whatever number of threads it makes. */
Test(exe, threads_make_no_rows)
{
	struct sl_counters before = counters(), after;
	struct load load;

	load_run(&load, INSIDE, "threads --count 5000");
	after = counters();
	cr_expect_eq(after.n[SL_COUNTER_PROC_FORKED], before.n[SL_COUNTER_PROC_FORKED]);
	cr_expect_eq(after.n[SL_COUNTER_PROC_ENTERED], before.n[SL_COUNTER_PROC_ENTERED] + 1);
	cr_expect_eq(map_rows(SL_MAP_PROCS), 0);
	expect_no_faults();
	load_free(&load);
}
