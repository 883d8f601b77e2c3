/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What sluice run tells at the end, above all what it can't tell. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_report, .init = world_up, .fini = world_down, .timeout = 120);

/* 500 that are refused, and the one by which sl-load finds a port that does so. */
#define SOCKETS 501

/* Runs sl-load while sluice stands still and can't read its ring of a page. */
#define UNREAD                                                                                 \
	"kill -STOP $PPID; \"$0\" tcp-fail --kind refused --count 500 --quiet --timeout 100; " \
	"status=$?; kill -CONT $PPID; exit $status"

Test(cli_report, what_was_lost_is_told)
{
	unsigned int all = 0, missing = 0, shown = 0;
	struct cli cli;

	CLI(&cli, "run", "--ring-bytes", "4K", "--", "sh", "-c", UNREAD, getenv("SL_LOAD"));
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_eq(sscanf(strstr(cli.err, "sluice: ") ?: "",
			    "sluice: %u sockets, %u of them missing here", &all, &missing),
		     2, "%s", cli.err);
	cr_expect_eq(all, SOCKETS, "%s", cli.err);
	cr_expect_gt(missing, 0);
	cr_expect_eq(sscanf(strstr(cli.err, "127.0.0.1:") ?: "", "%*s %u", &shown), 1);
	cr_expect_eq(shown, all - missing, "%s", cli.err);
	cr_expect_eq(text_count(cli.err, "warning: event_lost "), 1, "%s", cli.err);
	cr_expect_eq(text_count(cli.err, "run it with a larger --ring-bytes"), 1, "%s", cli.err);
	cli_free(&cli);
}

/* Where a member goes, no hook of its sandbox runs: its sockets are not there to be shown. */
Test(cli_report, who_left_is_told)
{
	char script[PATH_MAX + 64];
	struct cli cli;

	snprintf(script, sizeof(script), "echo 0 >%s/cgroup.procs", world.cgroup);
	CLI(&cli, "run", "--", "sh", "-c", script);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_eq(text_count(cli.err, "warning: proc_left 1: "), 1, "%s", cli.err);
	cli_free(&cli);
}

/* Moves within the sandbox are none; and who used no network gets a line, not a table. */
Test(cli_report, nothing_to_tell)
{
	char cgroup[PATH_MAX], script[3 * PATH_MAX];
	struct cli cli;

	run_cgroup(cgroup, sizeof(cgroup), 0);
	*strrchr(cgroup, '-') = '\0';
	snprintf(script, sizeof(script),
		 "mkdir %s-$PPID/below && echo 0 >%s-$PPID/below/cgroup.procs", cgroup, cgroup);
	CLI(&cli, "run", "--", "sh", "-c", script);
	cr_expect_eq(cli.status, 0);
	cr_expect_str_eq(cli.err, "sluice: 0 sockets\n");
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}
