/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policies of the agent's sandboxes: another one, the same one from a file that has changed. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/set.h"
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

struct wanted {
	const struct box *box;
	const char *status, *reason;
};

static bool is_policy(void *arg)
{
	const struct wanted *wanted = arg;
	struct json_object *session = box_show(wanted->box);
	struct json_object *condition = box_find_condition(session, "Policy");
	bool same = condition && !strcmp(json_text(condition, "status"), wanted->status) &&
		    !strcmp(json_text(condition, "reason"), wanted->reason);

	json_object_put(session);
	return same;
}

/* What SIGHUP could not load is shown until it could. */
static void reload_fails(const struct box *box, const char *file)
{
	write_policy(file, "version: 1\nnonsense: 2\n");
	cr_assert_eq(kill(agent.pid, SIGHUP), 0);
	cr_expect(eventually(is_policy, &(struct wanted){ box, "False", "ReloadFailed" }));
	write_policy(file, agent_policy(false, 1));
	cr_assert_eq(kill(agent.pid, SIGHUP), 0);
	cr_expect(eventually(is_policy, &(struct wanted){ box, "True", "Loaded" }));
	cr_assert_eq(unlink(file), 0);
	cr_assert_eq(kill(agent.pid, SIGHUP), 0);
	cr_expect(eventually(is_policy, &(struct wanted){ box, "False", "ReloadFailed" }));
}

static bool is_loaded_twice(void *arg)
{
	_cleanup_free_ char *log = agent_log();

	(void)arg;
	return text_count(log, " is in force\n") == 2;
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
	reload_fails(&box, file);
	close(server);
	box_free(&box);
}

/* Rules on requests are valid, and held by somebody: Attach says who. */
Test(agent_policy, inspected)
{
	static const char rules[] = "version: 1\nnetwork_policies:\n  web:\n"
				    "    endpoints: [{host: a.example, port: 80, protocol: rest, "
				    "rules: [{allow: {method: GET, path: /}}]}]\n"
				    "    binaries: [{path: /bin/true}]\n";
	struct json_object *params = json_object_new_object(), *reply;
	struct box box;

	box_make(&box, NULL, NULL);
	json_object_object_add(params, "policy", json_object_new_string(rules));
	reply = agent_send(box.control, NULL, "Plan", params, NULL);
	cr_expect_not(json_object_get_boolean(json_at(reply, "exec")));
	json_object_put(reply);
	reply = box_refused(&box, rules, NULL, "Refused");
	cr_expect_not_null(strstr(json_text(reply, "text"), "can't enforce the key: 'rules'"), "%s",
			   json_text(reply, "text"));
	json_object_put(reply);
	box_free(&box);
}

/* A reload comes while another policy is being loaded: that is the one that is loaded anew. */
Test(agent_policy, reload_meanwhile)
{
	unsigned int port;
	int server = held_server(&port);
	struct json_object *params = json_object_new_object(), *reply = NULL;
	_cleanup_fd_ int lock = -1;
	struct sl_err err = {};
	struct box box;
	bool more;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	/* Keeps the agent where it is about to load. */
	lock = open(SL_SET_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	json_object_object_add(params, "policy", json_object_new_string(agent_policy(false, port)));
	cr_assert_eq(sl_control_begin(box.control, "io.sluice.UpdatePolicy", params, NULL, &err),
		     0);
	/* What comes after it is answered, so it was taken. */
	cr_assert_eq(agent_sessions(), 1);
	cr_assert_eq(kill(agent.pid, SIGHUP), 0);
	cr_assert(eventually(is_logged, "policies are loaded anew"));
	sl_cleanup_fd(&lock);
	cr_expect_eq(sl_control_next(box.control, 60000, &reply, &more, &err), 0, "%s", err.text);
	json_object_put(reply);
	cr_assert(eventually(is_loaded_twice, NULL));
	cr_expect_eq(box_connect(&box, port), 0);
	cr_expect_eq(held_accepted(server), 1);
	close(server);
	box_free(&box);
}
