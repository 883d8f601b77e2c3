/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* B9, B13, B14, B21, B22: what was decided before, or for another image, decides nothing. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/guarded.h"

TestSuite(bypass_state, .init = guarded_up, .fini = guarded_down, .timeout = 100);

/* Lets sl-load reach the receiver that nothing else allows. */
static void also_allow(const struct sink *sink)
{
	char more[512];

	snprintf(more, sizeof(more),
		 "  also:\n"
		 "    endpoints: [{ cidr: 127.0.0.1/32, port: %u, transport: %s, "
		 "allow_reserved: true }]\n"
		 "    binaries: [{ path: %s }]\n",
		 sink->port, sink->udp ? "udp" : "tcp", getenv("SL_LOAD"));
	guarded_load_more(more);
}

/* B9: connect(AF_UNSPEC), then elsewhere on the same socket. */
static void connect_twice(const char *kind, struct sink *open, const struct sink *shut)
{
	struct load load;

	load_run(
		&load, INSIDE,
		"do socket=%s connect=%s send disconnect connect=%s send disconnect connect=%s send",
		kind, open->text, shut->text, open->text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "0");
	cr_expect_str_eq(did_errno(&load, "disconnect", 0), "0");
	cr_expect_str_eq(did_errno(&load, "connect", 1), "EACCES", "%s to %s: %s", kind, shut->text,
			 did_errno(&load, "connect", 1));
	cr_expect_str_neq(did_errno(&load, "send", 1), "0");
	cr_expect_str_eq(did_errno(&load, "connect", 2), "0");
	cr_expect_eq(sink_take(open), 2);
	cr_expect_eq(guarded_leaks(), 0);
	load_free(&load);
}

Test(bypass_state, connected_elsewhere)
{
	for (int i = 0; i < SHUT_MAX; i++) {
		connect_twice("tcp", &guarded.open, &guarded.shut[i]);
		connect_twice("udp", &guarded.open_udp, &guarded.shut_udp[i]);
	}
}

/* B9: a connected UDP socket that sends to another address all the same. */
Test(bypass_state, name_on_a_connected_socket)
{
	struct load load;

	load_run(&load, INSIDE, "do socket=udp connect=%s sendto=%s send", guarded.open_udp.text,
		 guarded.shut_udp[OTHER_PORT].text);
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "EACCES");
	cr_expect_str_eq(did_errno(&load, "send", 0), "0");
	cr_expect_eq(sink_take(&guarded.open_udp), 1);
	cr_expect_eq(guarded_leaks(), 0);
	load_free(&load);
}

/* The same, when the peer's rule has gone meanwhile: an allowed name does not bring it back. */
Test(bypass_state, name_on_a_revoked_socket)
{
	struct sink *gone = &guarded.shut_udp[OTHER_PORT];
	struct sl_counters counters;
	struct load load;

	also_allow(gone);
	load_start(&load, INSIDE, "do --until-eof socket=udp connect=%s send", gone->text);
	load_await(&load, "did", 3);
	cr_expect_str_eq(did_errno(&load, "send", 0), "0");
	guarded_load_more("");
	do_more(&load, "sendto=%s", guarded.open_udp.text);
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "0");
	do_more(&load, "send");
	cr_expect_str_eq(did_errno(&load, "send", 1), "EPERM");
	cr_expect_eq(load_end(&load), 0);
	cr_assert_eq(sl_counters_read(world.set, world.sandbox, &counters), 0);
	cr_expect_eq(counters.denied[SL_REASON_STALE_POLICY], 1);
	cr_expect_eq(sink_take(&guarded.open_udp), 1);
	cr_expect_eq(sink_take(gone), 1, "what came after the rule had gone has arrived");
	load_free(&load);
}

/* B13, with the full policy before and after it. */
Test(bypass_state, empty_policy)
{
	struct load load;

	guarded_expect(false, 1, "tcp-send");
	guarded_load("version: 1\n");
	load_run(&load, INSIDE,
		 "do socket=tcp connect=%s socket=udp sendto=%s socket=tcp6 connect=%s",
		 guarded.open.text, guarded.open_udp.text, guarded.open_v6.text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "EACCES");
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "EACCES");
	cr_expect_str_eq(did_errno(&load, "connect", 1), "EACCES");
	cr_expect_eq(sink_take(&guarded.open) + sink_take(&guarded.open_udp) +
			     sink_take(&guarded.open_v6),
		     0);
	load_free(&load);
	guarded_load_more("");
	guarded_expect(false, 1, "tcp-send");
}

/* B14: one socket, and the policy changes between its calls. */
static void reload_between(const char *kind, const char *verb, struct sink *sink)
{
	struct load load;

	load_start(&load, INSIDE, "do --until-eof socket=%s %s=%s", kind, verb, sink->text);
	load_await(&load, "did", 2);
	cr_expect_str_eq(did_errno(&load, verb, 0), "EACCES");
	also_allow(sink);
	do_more(&load, "%s=%s", verb, sink->text);
	cr_expect_str_eq(did_errno(&load, verb, 1), "0", "%s %s after it was allowed: %s", kind,
			 verb, did_errno(&load, verb, 1));
	if (!strcmp(verb, "connect"))
		do_more(&load, "disconnect");
	guarded_load_more("");
	do_more(&load, "%s=%s", verb, sink->text);
	cr_expect_str_eq(did_errno(&load, verb, 2), "EACCES");
	/* Other traffic of the same process goes on. */
	do_more(&load, "socket=udp");
	do_more(&load, "sendto=%s", guarded.open_udp.text);
	cr_expect_eq(load_end(&load), 0);
	cr_expect_str_eq(did_errno(&load, "sendto", !strcmp(verb, "sendto") ? 3 : 0), "0");
	cr_expect_eq(sink_take(&guarded.open_udp), 1);
	load_free(&load);
}

Test(bypass_state, reload_between_calls)
{
	struct sink *tcp = &guarded.shut[OTHER_PORT], *udp = &guarded.shut_udp[OTHER_PORT];

	reload_between("tcp", "connect", tcp);
	cr_expect_eq(sink_take(tcp), 1);
	reload_between("udp", "sendto", udp);
	cr_expect_eq(sink_take(udp), 1);
	reload_between("udp", "connect", udp);
	cr_expect_eq(guarded_leaks(), 0);
}

/*
 * B21: what ran before the sandbox was entered grants nothing; a member of that name would
 * be granted it.
 */
Test(bypass_state, image_from_before_the_sandbox)
{
	_cleanup_free_ char *self = realpath("/proc/self/exe", NULL);
	_cleanup_free_ char *shell = realpath("/bin/sh", NULL);
	_cleanup_free_ char *more = NULL;
	struct load load;

	cr_assert_not_null(self);
	cr_assert_not_null(shell);
	/* The test itself starts sl-load; /bin/sh stands for a member. */
	cr_assert_gt(asprintf(&more,
			      "  launcher:\n"
			      "    endpoints: [{ cidr: 127.0.0.1/32, port: %u, "
			      "allow_reserved: true }]\n"
			      "    binaries: [{ path: %s }, { path: %s }]\n",
			      guarded.shut[OTHER_PORT].port, self, shell),
		     0);
	guarded_load_more(more);
	load_run(&load, INSIDE, "do socket=tcp connect=%s", guarded.shut[OTHER_PORT].text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "EACCES");
	load_free(&load);
	cr_expect_eq(guarded_leaks(), 0);
	load_shell(&load, INSIDE, "%s do socket=tcp connect=%s; exit 0", getenv("SL_LOAD"),
		   guarded.shut[OTHER_PORT].text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "0", "as a child of the shell: %s",
			 did_errno(&load, "connect", 0));
	load_free(&load);
	cr_expect_eq(sink_take(&guarded.shut[OTHER_PORT]), 1);
}

/* B22 */
#define RELOADS 100
#define STORM 100

Test(bypass_state, reloads_during_execs)
{
	struct load may, may_not;
	siginfo_t info = { 0 };
	unsigned int reloads;

	load_start(&may, INSIDE, "spawn-storm --quiet --timeout 80 --count %d --jobs 4 --server %s",
		   STORM, guarded.open.text);
	load_start(&may_not, INSIDE,
		   "spawn-storm --quiet --timeout 80 --count %d --jobs 4 --server %s", STORM,
		   guarded.shut[OTHER_PORT].text);
	/* At least as many as asked for, and to the end of the storm. */
	for (reloads = 0; reloads < RELOADS || !info.si_pid; reloads++) {
		guarded_load_more("");
		if (!info.si_pid)
			waitid(P_PID, (id_t)may.pid, &info, WEXITED | WNOWAIT | WNOHANG);
	}
	cr_expect_eq(load_end(&may), 0, "somebody was denied wrongly in %u reloads", reloads);
	load_end(&may_not);
	cr_expect_eq(fact_u64(fact_next(&may, NULL, "total"), "ok"), STORM);
	cr_expect_eq(fact_u64(fact_next(&may_not, NULL, "total"), "ok"), 0);
	cr_expect_eq(sink_take(&guarded.open), STORM);
	cr_expect_eq(guarded_leaks(), 0);
	load_free(&may);
	load_free(&may_not);
}
