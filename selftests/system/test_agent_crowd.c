/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Many sandboxes of the agent, and what becomes of what they have made. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kernel/set.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/scale.h"

TestSuite(agent_crowd, .init = agent_up, .fini = agent_down, .timeout = 300);
/* With an agent of its own. */
TestSuite(agent_left, .timeout = 300);

#define CROWD 32

/* A shell script in a box; $2 is a directory for its files. */
static void box_run(const struct box *box, const char *script)
{
	char text[1024], cgroup[PATH_MAX];
	const char *const argv[] = { "/bin/sh", "-c", text, "sh", cgroup, agent.dir, NULL };
	struct cli cli;

	snprintf(text, sizeof(text), "set -e; echo 0 >\"$1/cgroup.procs\"; %s", script);
	snprintf(cgroup, sizeof(cgroup), "%s", box->cgroup);
	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	cr_assert_eq(cli.status, 0, "%s", cli.err);
	cli_free(&cli);
}

static long long rows(enum sl_map map)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	struct sl_err err = {};

	cr_assert_eq(sl_set_open(&set, agent.set, &err), 0, "%s", err.text);
	return sl_map_count_rows(sl_set_map_fd(set, map));
}

/*
 * One sandbox makes 600 lineages, which it may. Were each of them of account to the policies of
 * others, there would be room for 27 of these.
 */
Test(agent_crowd, lineages_of_one_take_no_room_from_others)
{
	static struct box first, boxes[CROWD];

	box_make(&first, NULL, NULL);
	box_attach(&first, agent_policy(false, 1), NULL);
	box_run(&first, "tee $(seq -f $2/s%g 30) </bin/sh >/dev/null;"
			"tee $(seq -f $2/t%g 20) </bin/true >/dev/null; chmod +x $2/[st]*;"
			"for s in $2/s[0-9]*; do $s -c 'for t in $0/t*; do $t; done' $2; done");
	cr_assert_gt(rows(SL_MAP_LINEAGES), 600);
	for (int i = 0; i < CROWD; i++) {
		box_make(&boxes[i], NULL, NULL);
		box_attach(&boxes[i], agent_policy(false, 1), NULL);
	}
	for (int i = 0; i < CROWD; i++)
		box_free(&boxes[i]);
	box_free(&first);
}

static bool is_swept(void *arg)
{
	(void)arg;
	return rows(SL_MAP_EXES) < 300;
}

/* Nobody reads events: the agent itself removes what nothing refers to any more. */
Test(agent_crowd, binaries_that_are_gone_are_swept)
{
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	/* As many as are worth a sweep: an eighth of the map. */
	box_run(&box, "tee $(seq -f $2/t%g 520) </bin/true >/dev/null; chmod +x $2/t*;"
		      "for t in $2/t*; do $t; done; rm $2/t*");
	cr_expect(eventually(is_swept, NULL), "%lld rows", rows(SL_MAP_EXES));
	box_free(&box);
}

/* Made, used and destroyed, four at a time: all maps, files, pins and descriptors as before. */
Test(agent_left, nothing)
{
	const char *program = getenv("SLUICE_BENCH");
	char count[16];
	const char *const argv[] = { program, "sandboxes", "--count", count, NULL };
	struct cli cli;

	cr_assert_not_null(program, "SLUICE_BENCH names the program");
	snprintf(count, sizeof(count), "%d", SCALED(200));
	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s%s", cli.out, cli.err);
	cli_free(&cli);
}
