/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What sluice run tells at the end, above all what it can't tell. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* With -j the same is a document, the last line of stderr; what would be denied is no denial. */
Test(cli_report, document)
{
	static const char policy[] = "version: 1\nmode: audit\nnetwork_policies: {}\n";
	char path[PATH_MAX], *line;
	struct json_object *json;
	struct cli cli;
	FILE *file;

	snprintf(path, sizeof(path), "%s/policy", world.scratch);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	fputs(policy, file);
	fclose(file);
	CLI(&cli, "-j", "run", "--policy", path, "--mode", "audit", "--", "sh", "-c",
	    "\"$0\" udp-send --server 192.0.2.1:9; exit 3", getenv("SL_LOAD"));
	cr_expect_eq(cli.status, 3, "%s", cli.err);
	cr_assert_gt(strlen(cli.err), 1);
	cli.err[strlen(cli.err) - 1] = '\0';
	line = strrchr(cli.err, '\n');
	json = json_of(line ? line + 1 : cli.err);
	cr_expect_eq(json_object_get_int(json_at(json, "status")), 3);
	cr_expect_eq(json_object_get_int(json_at(json, "summary.sockets")), 1);
	cr_expect_eq(json_object_get_int(json_at(json, "decisions.denied")), 0);
	cr_expect_eq(json_object_get_int(json_at(json, "decisions.audited")), 1, "%s", cli.err);
	cr_expect_eq(json_object_array_length(json_at(json, "faults")), 0);
	json_object_put(json);
	cli_free(&cli);
	CLI(&cli, "run", "--policy", path, "--mode", "audit", "--", getenv("SL_LOAD"), "udp-send",
	    "--server", "192.0.2.1:9");
	cr_expect_eq(text_count(cli.err, "sluice: 1 would be denied, and passed"), 1, "%s",
		     cli.err);
	cr_expect_eq(text_count(cli.err, "sluice: 0 denied"), 0, "%s", cli.err);
	cli_free(&cli);
}

static void full_stderr(void)
{
	cr_assert_eq(dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDERR_FILENO), STDERR_FILENO);
}

/* A table that could not be written is a failure, as it is on stdout. */
Test(cli_report, stderr_is_full)
{
	struct cli cli;

	CLI_BEFORE(&cli, full_stderr, "run", "--", "true");
	cr_expect_eq(cli.status, 125);
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
