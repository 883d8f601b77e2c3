/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policies of the agent's sandboxes: another one, the same one from a file that has changed. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

TestSuite(agent_policy, .init = agent_up, .fini = agent_down, .timeout = 120);

static void write_policy(const char *path, const char *text)
{
	_cleanup_file_ FILE *file = fopen(path, "we");

	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
}

struct denied {
	const struct box *box;
	unsigned int port;
	int server;
};

/* The agent's log has each kind of denial, with its count. */
static bool is_logged(void *arg)
{
	char *log = agent_log();
	bool found = strstr(log, arg);

	free(log);
	return found;
}

static bool is_denied(void *arg)
{
	const struct denied *denied = arg;

	held_accepted(denied->server);
	return box_connect(denied->box, denied->port) && !held_accepted(denied->server);
}

/* Another policy comes into force whole or not at all. */
Test(agent_policy, update)
{
	unsigned int port;
	int server = held_server(&port);
	struct json_object *params = json_object_new_object(), *reply;
	struct sl_err err = {};
	char file[PATH_MAX];
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	cr_expect_neq(box_connect(&box, port), 0);
	reply = agent_refused(box.control, "Refused", "UpdatePolicy",
			      "{'policy': 'version: 1\\nnonsense: 2', 'policy_name': 'p.yaml'}");
	cr_expect(strstr(json_text(reply, "text"), "p.yaml:2"), "%s", json_text(reply, "text"));
	json_object_put(reply);
	cr_expect_neq(box_connect(&box, port), 0);
	cr_expect_eq(held_accepted(server), 0);
	snprintf(file, sizeof(file), "deny tcp > 127.0.0.1:%u reserved-address", port);
	cr_expect(eventually(is_logged, file));
	snprintf(file, sizeof(file), "%s/policy.yaml", agent.dir);
	json_object_object_add(params, "policy", json_object_new_string(agent_policy(false, port)));
	json_object_object_add(params, "policy_name", json_object_new_string(file));
	cr_expect_eq(sl_control_call(box.control, "io.sluice.UpdatePolicy", params, NULL, &reply,
				     &err),
		     0, "%s", err.text);
	json_object_put(reply);
	cr_expect_eq(box_connect(&box, port), 0);
	cr_expect_eq(held_accepted(server), 1);
	/* Also for the next worker. */
	kill(agent_worker(), SIGKILL);
	box_recover(&box);
	cr_expect_eq(box_connect(&box, port), 0);
	reply = box_show(&box);
	cr_expect(json_object_get_boolean(json_at(reply, "enforced")), "%s",
		  json_object_to_json_string(reply));
	json_object_put(reply);
	/* The file has another one by now. */
	write_policy(file, agent_policy(false, 1));
	cr_assert_eq(kill(agent.pid, SIGHUP), 0);
	cr_expect(eventually(is_denied, &(struct denied){ &box, port, server }));
	reply = box_show(&box);
	cr_expect_str_eq(json_text(reply, "policy"), file);
	json_object_put(reply);
	close(server);
	box_free(&box);
}
