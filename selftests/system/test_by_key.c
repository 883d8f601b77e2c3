/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members kept in a hash by process key, as on kernels whose hooks can't read task storage:
 * tried on every kernel.
 */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "system/expect.h"

static const struct sl_set_options by_key = { .owners_by_key = true };

static struct load server;

static void up(void)
{
	world_make(&by_key, true);
}

TestSuite(by_key, .init = up, .fini = world_down, .timeout = 60);

static unsigned int members(void)
{
	struct sl_process_key key, *last = NULL;
	unsigned int n = 0;

	while (!bpf_map_get_next_key(sl_set_map_fd(world.set, SL_MAP_OWNERS), last, &key)) {
		last = &key;
		n++;
	}
	return n;
}

static void run_and_expect(const char *words, unsigned int socks)
{
	struct load load;

	load_run(&load, INSIDE, "%s --server 127.0.0.1:%u", words,
		 server_start(&server, "tcp-server --quiet --count 1000"));
	cr_expect_eq(fact_count(&load, "sock"), socks);
	for (const char *line = NULL; (line = fact_next(&load, line, "sock"));) {
		struct sl_sock sock = closed_sock(fact_u64(line, "cookie"));

		expect_owner(&sock.owner, line, "owner");
		cr_expect_eq(sock.owner.sandbox, world.sandbox);
	}
	cr_expect_eq(members(), 0, "those that ended leave no row");
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&load);
}

Test(by_key, plain)
{
	run_and_expect("tcp-send --count 2 --bytes 10", 1);
}

Test(by_key, thread)
{
	run_and_expect("thread-connect --name other", 1);
}

/* The leader changes, its key does not: the row is found without being rebuilt. */
Test(by_key, exec_by_a_thread)
{
	char words[PATH_MAX];

	snprintf(words, sizeof(words), "thread-exec --dir %s --name copy", world.scratch);
	run_and_expect(words, 1);
	cr_expect_eq(counter(SL_COUNTER_PROC_ADOPTED), 0);
}

Test(by_key, detach_ends_membership)
{
	struct load load;
	struct sl_err err = {};

	server_start_at(&load, INSIDE, "tcp-server", "127.0.0.1:0");
	cr_expect_eq(members(), 1);
	cr_expect_eq(sl_sandbox_detach(world.set, world.sandbox, &err), 0, "%s", err.text);
	cr_expect_eq(members(), 0);
	load_end(&load);
	load_free(&load);
}
