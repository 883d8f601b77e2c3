/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sessions whose cgroups were removed: each ends, the latest are kept, the table stays small. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

TestSuite(agent_gone, .init = agent_up, .fini = agent_down, .timeout = 120);

#define KEPT 16 /* user/agent/gone.c */
#define MORE 4

static struct box boxes[KEPT + MORE];

/* How many sessions there are, all but one ended; 0: another one has not. */
static unsigned int listed(bool there[KEPT + MORE])
{
	struct sl_control *control = agent_connect();
	struct json_object *reply = agent_call(control, "List", "{}");
	struct json_object *sessions = json_at(reply, "sessions");
	size_t n = json_object_array_length(sessions);
	unsigned int ended = 0;

	memset(there, 0, (KEPT + MORE) * sizeof(*there));
	for (size_t i = 0; i < n; i++) {
		struct json_object *session = json_object_array_get_idx(sessions, i);

		for (int box = 0; box < KEPT + MORE; box++)
			there[box] |= !strcmp(boxes[box].cgroup, json_text(session, "cgroup"));
		ended += !strcmp(json_text(session, "state"), "ended") &&
			 !strcmp(json_text(session, "reason"), "its cgroup was removed");
	}
	json_object_put(reply);
	sl_control_free(&control);
	return ended + 1 == n ? ended : 0;
}

static bool are_kept(void *arg)
{
	bool there[KEPT + MORE];
	unsigned int wanted = *(unsigned int *)arg;

	return listed(there) == wanted && !there[0];
}

static unsigned int sandboxes(void)
{
	struct cli cli;
	unsigned int n;

	CLI(&cli, "-j", "--set", agent.set, "--agent", agent.socket, "sandbox", "list");
	cr_assert_eq(cli.status, 0, "%s", cli.err);
	n = text_count(cli.out, "\"cgroup_id\"");
	cli_free(&cli);
	return n;
}

Test(agent_gone, the_latest_are_kept)
{
	unsigned int wanted = KEPT, last = KEPT + MORE - 1;
	bool there[KEPT + MORE];
	struct box live;

	box_make(&live, NULL, NULL);
	box_attach(&live, agent_policy(false, 1), NULL);
	for (int i = 0; i < KEPT + MORE; i++) {
		box_make(&boxes[i], NULL, NULL);
		box_attach(&boxes[i], agent_policy(false, 1), NULL);
		/* Their runtimes go, too, and say nothing. */
		sl_control_free(&boxes[i].control);
		cr_assert_eq(rmdir(boxes[i].cgroup), 0);
		/* The oldest one. */
		if (i == 0)
			box_await(&boxes[i], "state", "ended");
	}
	cr_assert(eventually(are_kept, &wanted));
	cr_expect_eq(listed(there), KEPT);
	/* On request as well. */
	while (!there[last])
		last--;
	agent_do(live.control, "Detach", "{'sandbox': '%s'}", boxes[last].sandbox);
	wanted--;
	cr_expect(eventually(are_kept, &wanted));
	/* A worker that is killed changes nothing, and the kernel's side is as small. */
	cr_assert_eq(kill(agent_worker(), SIGKILL), 0);
	cr_expect(eventually(are_kept, &wanted));
	cr_expect_eq(sandboxes(), KEPT);
	box_recover(&live);
	box_await(&live, "state", "live");
	box_free(&live);
}
