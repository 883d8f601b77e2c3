/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which process a socket belongs to: threads, pid namespaces, reused pids, other users. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "system/scale.h"
#include "system/expect.h"

TestSuite(process, .init = world_up, .fini = world_down, .timeout = 120);

static struct load server;

static unsigned int serve(void)
{
	return server_start(&server, "tcp-server --quiet --count 1000");
}

static void end(struct load *load)
{
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(load);
}

/* The record of the one connection of the run, whose owner is who says so. */
static struct sl_sock only_sock(const struct load *load)
{
	const char *line = fact_next(load, NULL, "sock");
	struct sl_sock sock;

	cr_assert_eq(fact_count(load, "sock"), 1, "%s", load->text);
	sock = closed_sock(fact_u64(line, "cookie"));
	expect_owner(&sock.owner, line, "owner");
	cr_expect_eq(sock.owner.ns_pid, fact_u64(line, "ns_pid"));
	return sock;
}

/* I6 */
Test(process, thread_is_an_extra)
{
	struct load load;
	struct sl_sock sock;

	load_run(&load, INSIDE, "thread-connect --name other --server 127.0.0.1:%u", serve());
	sock = only_sock(&load);
	cr_expect_eq(sock.owner.tid, fact_u64(fact_next(&load, NULL, "sock"), "tid"));
	cr_expect_neq(sock.owner.tid, sock.owner.tgid);
	cr_expect_str_eq(sock.owner.comm, "other");
	expect_path(sock.owner.exe, getenv("SL_LOAD"));
	end(&load);
}

Test(process, exec_by_a_thread)
{
	struct load load;
	struct sl_sock sock;
	char copy[PATH_MAX];

	load_run(&load, INSIDE, "thread-exec --dir %s --name copy --server 127.0.0.1:%u",
		 world.scratch, serve());
	sock = only_sock(&load);
	snprintf(copy, sizeof(copy), "%s/copy", world.scratch);
	expect_path(sock.owner.exe, copy);
	cr_expect_eq(sock.owner.tid, sock.owner.tgid);
	end(&load);
}

/* I10: sl-load reads its host pid from the host's /proc, which it still has. */
Test(process, pid_namespace)
{
	struct load load;
	struct sl_sock sock;

	load_shell(&load, INSIDE, "exec unshare --pid --fork %s tail --server 127.0.0.1:%u",
		   getenv("SL_LOAD"), serve());
	sock = only_sock(&load);
	cr_expect_eq(sock.owner.ns_pid, 1);
	cr_expect_neq(sock.owner.tgid, 1);
	end(&load);
}

/* The second namespace's first process is the third of the first one. */
Test(process, pid_namespace_in_another)
{
	struct load load;
	struct sl_sock sock;

	load_shell(&load, INSIDE,
		   "exec unshare --pid --fork unshare --pid --fork /bin/sh -c '"
		   ": | :; %s tail --server 127.0.0.1:%u; exit $?'",
		   getenv("SL_LOAD"), serve());
	sock = only_sock(&load);
	cr_expect_gt(sock.owner.ns_pid, 1);
	cr_expect_lt(sock.owner.ns_pid, 10);
	end(&load);
}

/* I11 */
Test(process, reused_pid_is_another_process)
{
	const char *first, *second;
	struct load load;
	struct sl_sock a, b;

	load_run(&load, INSIDE, "pid-reuse --server 127.0.0.1:%u", serve());
	first = fact_next(&load, NULL, "sock");
	second = fact_next(&load, first, "sock");
	cr_assert_not_null(second);
	cr_assert_eq(fact_u64(first, "pid"), fact_u64(second, "pid"));
	a = closed_sock(fact_u64(first, "cookie"));
	b = closed_sock(fact_u64(second, "cookie"));
	expect_owner(&a.owner, first, "first");
	expect_owner(&b.owner, second, "second");
	cr_expect_eq(a.owner.tgid, b.owner.tgid);
	cr_expect_lt(a.owner.start_ns, b.owner.start_ns);
	end(&load);
}

/* The same within a namespace: there the pid is equal, on the host it need not be. */
Test(process, reused_pid_of_a_namespace)
{
	const char *line = NULL;
	struct load load;
	unsigned int n = 0;
	struct sl_sock socks[2];

	load_shell(&load, INSIDE, "exec unshare --pid --fork %s pid-reuse --server 127.0.0.1:%u",
		   getenv("SL_LOAD"), serve());
	for (; n < 2 && (line = fact_next(&load, line, "sock")); n++) {
		socks[n] = closed_sock(fact_u64(line, "cookie"));
		expect_owner(&socks[n].owner, line, "owner");
		cr_expect_eq(socks[n].owner.ns_pid, fact_u64(line, "ns_pid"));
	}
	cr_assert_eq(n, 2);
	cr_expect_eq(socks[0].owner.ns_pid, socks[1].owner.ns_pid);
	cr_expect_lt(socks[0].owner.start_ns, socks[1].owner.start_ns);
	end(&load);
}

/* I12: what /proc hides from other users is not asked of it. */
Test(process, hidden_from_proc)
{
	char copy[PATH_MAX];
	struct load load;
	struct sl_sock sock;

	load_shell(&load, INSIDE,
		   "exec unshare -m /bin/sh -ec 'mount -t proc -o hidepid=2 proc /proc; "
		   "exec %s setuid 4321 -- %s tail --server 127.0.0.1:%u'",
		   getenv("SL_LOAD"), world_copy("hidden", copy), serve());
	sock = only_sock(&load);
	cr_expect_eq(sock.owner.uid, 4321);
	expect_path(sock.owner.exe, copy);
	end(&load);
}

/* It gained privilege at its exec: its real user is still who started it. */
Test(process, set_user_id)
{
	struct sl_process process;
	struct load load;
	struct sl_sock sock;
	char copy[PATH_MAX];
	const char *line;

	world_copy("elevated", copy);
	cr_assert_eq(chmod(copy, 04755), 0);
	load_start(&load, INSIDE, "setuid 4321 -- %s tail --hold --server 127.0.0.1:%u", copy,
		   serve());
	load_await(&load, "open", 1);
	line = fact_next(&load, NULL, "open");
	cr_assert(process_by_pid(fact_u64(line, "pid"), &process));
	cr_expect_eq(process.flags & (SL_PROC_SETUID | SL_PROC_EXECED | SL_PROC_EXITED),
		     SL_PROC_SETUID | SL_PROC_EXECED);
	expect_path(process.exe, copy);
	cr_expect_eq(load_end(&load), 0);
	sock = only_sock(&load);
	cr_expect_eq(sock.owner.uid, 4321);
	end(&load);
}

/*
 * I17: one process enters, whatever number of threads it makes: a million, or as many as
 * fit into 20 s (some 250,000 on two shared CPUs, fewer with sanitizers).
 */
Test(process, threads_make_no_rows)
{
	struct sl_counters before = counters(), after;
	struct load load;
	uint64_t made;

	load_run(&load, INSIDE, "threads --count 1000000 --seconds %d --timeout 110", SCALED(20));
	made = fact_u64(fact_next(&load, NULL, "total"), "threads");
	cr_log_info("%llu threads", (unsigned long long)made);
	cr_expect_gt(made, 0);
	after = counters();
	cr_expect_eq(after.n[SL_COUNTER_PROC_FORKED], before.n[SL_COUNTER_PROC_FORKED]);
	cr_expect_eq(after.n[SL_COUNTER_PROC_ENTERED], before.n[SL_COUNTER_PROC_ENTERED] + 1);
	cr_expect_eq(map_rows(SL_MAP_PROCS), 0);
	expect_conserved(0);
	expect_no_faults();
	load_free(&load);
}
