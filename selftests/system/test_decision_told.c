/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Denials that no connect() has: sockets that the filter refuses, and listen(). They are in
 * the set like all others, and their advice is taken as it is given.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/cli.h"
#include "system/world.h"

TestSuite(decision_told, .init = world_up, .fini = world_down, .timeout = 120);

#define POLICY "version: 1\nnetwork_policies:\n"

/* Value of a counter of a run's set. */
static uint64_t counter(const char *set, const char *name)
{
	struct cli cli;
	struct json_object *list;
	uint64_t value = 0;

	CLI(&cli, "-j", "--set", set, "counter", "list");
	list = json_of(cli.out);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *row = json_object_array_get_idx(list, i);

		if (!strcmp(json_text(row, "name"), name))
			value += json_object_get_uint64(json_at(row, "value"));
	}
	json_object_put(list);
	cli_free(&cli);
	return value;
}

Test(decision_told, refused_families)
{
	char policy[PATH_MAX], script[PATH_MAX + 128], set[64];
	struct cli run, list;

	world_script("policy.yaml",
		     POLICY "  x: {endpoints: [{cidr: 192.0.2.1/32, port: 1}], "
			    "binaries: [{path: /x}]}\n",
		     policy);
	snprintf(script, sizeof(script),
		 "%s do socket=40.1.0 socket=40.1.0 socket=17.3.0 socket=2.3.1; echo ready; "
		 "exec tail -f /dev/null",
		 getenv("SL_LOAD"));
	cli_start(&run, NULL, CLI_ARGV("run", "--policy", policy, "--", "sh", "-c", script));
	cli_await(&run, "ready");
	snprintf(set, sizeof(set), SL_SET_ROOT "/run-%d", run.pid);
	cr_expect_eq(counter(set, "denied.family"), 4);
	cr_expect_eq(counter(set, "denied"), 4);
	CLI(&list, "-j", "--set", set, "decision", "list");
	cr_expect_eq(text_count(list.out, "\"reason\":\"family\""), 3, "%s", list.out);
	cr_expect_eq(text_count(list.out, "\"count\":2"), 1, "%s", list.out);
	cr_expect_eq(text_count(list.out, "\"family\":\"vsock\""), 1, "%s", list.out);
	cr_expect_eq(text_count(list.out, getenv("SL_LOAD")), 3, "%s", list.out);
	cli_free(&list);
	kill(run.pid, SIGTERM);
	cli_end(&run);
	cr_expect_not_null(strstr(run.err, "\nsluice: 4 denied\n"), "%s", run.err);
	cli_free(&run);
}

/* Runs sl-load as a listener on `port`, 0: any; takes the port and what is advised. */
static unsigned int listen_on(const char *policy, unsigned int port, char *entry, size_t size)
{
	char bind[32];
	const char *at;
	struct cli cli;

	snprintf(bind, sizeof(bind), "bind=0.0.0.0:%u", port);
	CLI(&cli, "run", "--policy", policy, "--", getenv("SL_LOAD"), "do", "socket=tcp", bind,
	    "listen");
	cr_assert_eq(cli.status, 0, "%s", cli.err);
	at = strstr(cli.out, "verb=listen");
	cr_assert_not_null(at, "%s", cli.out);
	cr_assert_eq(sscanf(at, "verb=listen arg= result=%u", &port), 1, "%s", at);
	at = strstr(cli.err, "; add an entry: ");
	snprintf(entry, size, "%.*s", at ? (int)strcspn(at + 16, "\n") : 0, at ? at + 16 : "");
	cli_free(&cli);
	return port;
}

Test(decision_told, advice_for_a_listener)
{
	char policy[PATH_MAX], entry[1024], text[2048];
	unsigned int port;

	world_script("policy.yaml", "version: 1\n", policy);
	port = listen_on(policy, 0, entry, sizeof(entry));
	cr_assert_not_null(strstr(entry, "listen: [{port: "), "%s", entry);
	snprintf(text, sizeof(text), POLICY "  new: %s\n", entry);
	world_script("advised.yaml", text, policy);
	listen_on(policy, port, entry, sizeof(entry));
	cr_expect_str_eq(entry, "", "denied although %s", text);
}
