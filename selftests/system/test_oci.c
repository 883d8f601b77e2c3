/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Containers of a real OCI runtime, and what it may be told that is wrong. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "system/oci.h"

TestSuite(oci_runtime, .init = oci_up, .fini = oci_down, .timeout = 120);

/* The hook, with this on its stdin. */
static void hook(struct cli *cli, const char *text, const char *socket, const char *listener)
{
	char state[128];

	oci_write(agent.dir, "stdin", text);
	snprintf(state, sizeof(state), "%s/stdin", agent.dir);
	cli_start(cli, NULL,
		  (const char *const[]){ "/bin/sh", "-c",
					 "exec \"$SLUICE\" --agent \"$1\" oci hook --listen \"$2\" "
					 "--policy-dir \"$3\" <\"$4\"",
					 "sh", socket, listener, oci.policies, state, NULL });
	cli_end(cli);
}

#define STATE(policy) "{\"id\":\"box\",\"annotations\":{\"io.sluice.policy\":\"" policy "\"}}\n"

/* A container that could not be attached is not created, and the cause is told. */
Test(oci_runtime, hook)
{
	static const struct {
		const char *text;
		bool agent, listener;
		const char *cause; /* NULL: all is well */
	} cases[] = {
		{ STATE("web"), true, true, NULL },
		{ STATE("web"), false, true, "can't reach the agent" },
		{ STATE("web"), true, false, "nobody takes listeners" },
		{ STATE("none"), true, true, "none.yaml" },
		{ STATE("bad"), true, true, "nonsense" },
		{ STATE("../policies/web"), true, true, "annotation" },
		{ "{\"id\":\"box\"}", true, true, "no policy is named" },
		{ "{\"id\":", true, true, "no JSON" },
		{ "", true, true, "no JSON" },
	};
	struct cli cli;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		hook(&cli, cases[i].text, cases[i].agent ? agent.socket : "/nowhere/a",
		     cases[i].listener ? oci.listen : "/nowhere/b");
		cr_expect_eq(cli.status, cases[i].cause ? 1 : 0, "case %zu: %s", i, cli.err);
		cr_expect(!cases[i].cause == !cli.err[0], "case %zu: %s", i, cli.err);
		if (cases[i].cause)
			cr_expect_not_null(strstr(cli.err, cases[i].cause), "case %zu: %s", i,
					   cli.err);
		cli_free(&cli);
	}
}

#define MESSAGE \
	"{\"state\":{\"id\":\"box\"},\"pid\":1,\"fds\":[\"seccompFd\"],\"metadata\":\"web\"}"

/* Each fails alone. */
Test(oci_runtime, bad_messages)
{
	const struct sl_fds one = { .fd = { STDIN_FILENO }, .count = 1 };
	const char *log;
	int fds[4];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = oci_dial();
	cr_expect_eq(write(fds[0], "{\"garbage\":1}", 13), 13);
	/* A message that is right but for its descriptor. */
	cr_expect_gt(sl_fds_send(fds[1], MESSAGE, strlen(MESSAGE), &one), 0);
	cr_expect_gt(sl_fds_send(fds[2], "{", 1, &one), 0);
	cr_expect_gt(sl_fds_send(fds[2], "{", 1, &one), 0);
	cr_expect_eq(write(fds[3], "{\"half\":", 8), 8);
	shutdown(fds[3], SHUT_WR);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		char byte;

		/* Until it was seen. */
		cr_expect_leq(read(fds[i], &byte, 1), 0, "%zu", i);
		close(fds[i]);
	}
	close(oci_dial());
	log = oci_serve_end(SIGTERM);
	cr_expect_eq(oci.serve.status, 128 + SIGTERM);
	cr_expect_not_null(strstr(log, "there is no state"), "%s", log);
	cr_expect_not_null(strstr(log, "no seccomp listener"), "%s", log);
	cr_expect_not_null(strstr(log, "descriptors twice"), "%s", log);
	cr_expect_not_null(strstr(log, "no JSON object"), "%s", log);
}

static void expect_errno(const char *policy, const char *text)
{
	struct cli cli;

	oci_config(policy, policy, OCI_CONNECT);
	OCI_RUNC(&cli, "run", "--bundle", oci.bundle, policy);
	cr_expect_not_null(strstr(cli.out, text), "%s: %s", policy, cli.out);
	cli_free(&cli);
	oci_await_sessions(0);
}

/* Held until it is attached, decided by its policy, and gone with its last process. */
Test(oci_runtime, runc)
{
	struct cli cli;
	const char *log;

	oci_need();
	oci_config("bad", "bad", OCI_CONNECT);
	OCI_RUNC(&cli, "run", "--bundle", oci.bundle, "bad");
	cr_expect_neq(cli.status, 0);
	cr_expect_not_null(strstr(cli.out, "nonsense"), "%s", cli.out);
	cr_expect_null(strstr(cli.out, "errno="), "%s", cli.out);
	cli_free(&cli);

	/* A path of the host means nothing there, its own does, looked at by us or not. */
	expect_errno("web", "errno=EACCES");
	expect_errno("own", "errno=ECONNREFUSED");
	expect_errno("glob", "errno=ECONNREFUSED");
	log = oci_serve_end(SIGTERM);
	cr_expect_not_null(strstr(log, "container web: sandbox"), "%s", log);
}
