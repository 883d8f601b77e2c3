/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A policy for an attached sandbox: reload, modes, freeze and thaw, and its end. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "guard/guard.h"
#include "system/cli.h"
#include "system/expect.h"

TestSuite(sandbox_policy, .init = world_up, .fini = world_down, .timeout = 120);

static char policy[PATH_MAX];

static void write_policy(const char *text)
{
	FILE *file;

	snprintf(policy, sizeof(policy), "%s/policy.yaml", world.scratch);
	file = fopen(policy, "we");
	cr_assert_not_null(file);
	fprintf(file, "version: 1\nnetwork_policies:\n  here:\n%s", text);
	fclose(file);
}

static void allow(const char *binary, unsigned int port)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "    endpoints: [{cidr: 127.0.0.1/32, port: %u, allow_reserved: true}]\n"
		 "    binaries: [{path: %s}]\n",
		 port, binary);
	write_policy(text);
}

static bool reaches(unsigned int port)
{
	char *argv[] = { "/usr/bin/bash", "-c", NULL, NULL };
	struct load load;
	char script[128];
	int status;

	snprintf(script, sizeof(script), "echo >/dev/tcp/127.0.0.1/%u", port);
	argv[2] = script;
	load_exec(&load, INSIDE, argv);
	status = load_end(&load);
	load_free(&load);
	return !status;
}

#define SANDBOX(...)                                                           \
	do {                                                                   \
		struct cli sandbox_cli;                                        \
		CLI(&sandbox_cli, "--set", world.dir, "sandbox", __VA_ARGS__); \
		cr_expect_eq(sandbox_cli.status, 0, "%s", sandbox_cli.err);    \
		cli_free(&sandbox_cli);                                        \
	} while (0)

Test(sandbox_policy, life)
{
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	struct sl_guard guard;
	struct cli cli;

	allow("/usr/bin/bash", port);
	SANDBOX("policy", "1", policy);
	cr_expect(reaches(port));
	SANDBOX("freeze", "1");
	cr_expect_not(reaches(port));
	/* Neither a reload nor a mode ends it. */
	SANDBOX("policy", "1", policy);
	cr_expect_not(reaches(port));
	CLI(&cli, "--set", world.dir, "sandbox", "mode", "1", "observe");
	cli_expect_error(&cli, 1, "frozen");
	cli_free(&cli);
	SANDBOX("thaw", "1");
	cr_expect(reaches(port));
	allow("/usr/bin/true", port);
	SANDBOX("policy", "1", policy);
	cr_expect_not(reaches(port));
	SANDBOX("mode", "1", "audit");
	cr_expect(reaches(port));
	SANDBOX("mode", "1", "enforce");
	/* What is refused leaves the one in force. */
	cr_assert_eq(sl_guard_read(world.set, 1, &guard), 0);
	write_policy("    endpoints: [{host: h.example.org, port: 70000}]\n"
		     "    binaries: [{path: /usr/bin/bash}]\n");
	CLI(&cli, "--set", world.dir, "sandbox", "policy", "1", policy);
	cli_expect_error(&cli, 1, "70000");
	cli_free(&cli);
	allow("/usr/*/bash", port);
	CLI(&cli, "--set", world.dir, "sandbox", "policy", "1", policy);
	cli_expect_error(&cli, 1, "wildcards");
	cli_free(&cli);
	cr_expect_not(reaches(port));
	CLI(&cli, "-j", "--set", world.dir, "sandbox", "show", "1");
	cr_expect_not_null(strstr(cli.out, "\"mode\":\"enforce\""), "%s", cli.out);
	cli_free(&cli);
	CLI(&cli, "-j", "--set", world.dir, "decision", "list");
	cr_expect_not_null(strstr(cli.out, "\"reason\":\"frozen\""), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "\"verdict\":\"audit\""), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "\"reason\":\"binary\",\"rule\":\"here\""), "%s",
			   cli.out);
	cli_free(&cli);
	CLI(&cli, "--set", world.dir, "counter", "list");
	cr_expect_not_null(strstr(cli.out, "denied.binary"), "%s", cli.out);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

static uint64_t denials(void)
{
	struct sl_counters counters;

	cr_assert_eq(sl_counters_read(world.set, 1, &counters), 0);
	return counters.n[SL_COUNTER_DENIED];
}

/* The hooks of the sandbox and of the root both run; one of them decides. */
Test(sandbox_policy, each_call_is_counted_once)
{
	static const char *const calls[] = { "tcp-send --mptcp", "tcp-send --mptcp --v6 --mapped",
					     "tcp-send", "udp-send --count 1", "raw-send" };
	struct load load;

	allow("/usr/bin/true", 1);
	SANDBOX("policy", "1", policy);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		uint64_t before = denials();

		load_start(&load, INSIDE, "%s --server 127.0.0.1:%u", calls[i],
			   strcmp(calls[i], "raw-send") ? 1 : 0);
		cr_expect_neq(load_end(&load), 0, "%s was not denied", calls[i]);
		cr_expect_eq(denials() - before, 1, "%s: %" PRIu64, calls[i], denials() - before);
		load_free(&load);
	}
	SANDBOX("freeze", "1");
	load_start(&load, INSIDE, "tcp-send --server 127.0.0.1:1");
	cr_expect_neq(load_end(&load), 0);
	cr_expect_eq(denials(), ARRAY_SIZE(calls) + 1);
	load_free(&load);
}

/* It proves that a policy's sandbox is live, and is itself not denied. */
Test(sandbox_policy, status)
{
	struct cli cli;

	allow("/usr/bin/true", 1);
	SANDBOX("policy", "1", policy);
	CLI(&cli, "--set", world.dir, "status");
	cr_expect_eq(cli.status, 0, "%s%s", cli.out, cli.err);
	cr_expect_not_null(strstr(cli.out, "CanaryRecorded"), "%s", cli.out);
	cli_free(&cli);
	cr_expect_eq(denials(), 0);
	SANDBOX("freeze", "1");
	CLI(&cli, "--set", world.dir, "status");
	cr_expect_not_null(strstr(cli.out, "Frozen"), "%s", cli.out);
	cli_free(&cli);
	cr_expect_eq(denials(), 0);
}
