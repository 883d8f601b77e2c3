/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* B2, B16: a member that has left the cgroup, or the network namespace, is a member still. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/guarded.h"

TestSuite(bypass_escape, .init = guarded_up, .fini = guarded_down, .timeout = 60);

/* Verbs that leave for the cgroup's root, then `how`. */
static void left(bool udp, const char *how, const char *verb)
{
	char cgroup[64], words[256];

	cr_assert_eq(sl_cgroup_mount(cgroup, sizeof(cgroup), NULL), 0);
	snprintf(words, sizeof(words), "cgroup=%s %s", cgroup, how);
	guarded_expect_do(udp, words, verb);
}

Test(bypass_escape, other_cgroup)
{
	left(false, "socket=tcp", "connect");
	left(true, "socket=udp", "sendto");
}

Test(bypass_escape, grandchild)
{
	left(false, "fork fork socket=tcp", "connect");
	left(true, "fork fork socket=udp", "sendto");
}

Test(bypass_escape, uring)
{
	left(false, "--uring inline socket=tcp", "uring-connect");
	left(false, "--uring async socket=tcp", "uring-connect");
	left(false, "--uring sqpoll socket=tcp", "uring-connect");
	left(false, "--uring async uring-socket=2.1.0", "uring-connect");
}

/* A socket of its own from before it left. */
Test(bypass_escape, socket_from_before)
{
	char cgroup[64], words[256];

	cr_assert_eq(sl_cgroup_mount(cgroup, sizeof(cgroup), NULL), 0);
	snprintf(words, sizeof(words), "socket=tcp cgroup=%s", cgroup);
	guarded_expect_do(false, words, "connect");
}

/* Those who never were members are not concerned. */
Test(bypass_escape, others)
{
	struct load load;

	load_run(&load, OUTSIDE, "do socket=tcp connect=%s socket=udp sendto=%s",
		 guarded.shut[OTHER_PORT].text, guarded.shut_udp[OTHER_ADDR].text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "0");
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "0");
	cr_expect_eq(guarded_leaks(), 2);
	load_free(&load);
}
