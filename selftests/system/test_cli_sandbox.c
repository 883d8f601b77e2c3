/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice sandbox and status: what stays, what is proven, what detach removes. */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/cli.h"
#include "system/expect.h"

/* A set of the command line's own, beside the world's. */
static char set[160];

static void up(void)
{
	world_make(NULL, false);
	snprintf(set, sizeof(set), "%s-cli", world.dir);
}

static void down(void)
{
	sl_set_destroy(set, NULL);
	world_down();
}

TestSuite(cli_sandbox, .init = up, .fini = down, .timeout = 120);

static void expect_ok(struct cli *cli)
{
	cr_expect_eq(cli->status, 0, "exit %d: %s", cli->status, cli->err);
	cr_expect_str_eq(cli->err, "");
}

static void attach(void)
{
	struct cli cli;

	CLI(&cli, "-q", "--set", set, "sandbox", "attach", world.cgroup, "--name", "box");
	expect_ok(&cli);
	cr_expect_str_eq(cli.out, "");
	cli_free(&cli);
}

Test(cli_sandbox, attach_stays_until_detach)
{
	static const char *const words[] = { "1", "box", world.cgroup };
	struct json_object *json;
	struct cli cli;

	attach();
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		CLI(&cli, "-j", "--set", set, "sandbox", "show", words[i]);
		expect_ok(&cli);
		json = json_of(cli.out);
		cr_expect_str_eq(json_text(json, "id"), "1");
		cr_expect_str_eq(json_text(json, "name"), "box");
		cr_expect_str_eq(json_text(json, "cgroup"), strrchr(world.cgroup, '/'));
		json_object_put(json);
		cli_free(&cli);
	}
	CLI(&cli, "-p", "--set", set, "sandbox", "list");
	json = json_of(cli.out);
	cr_expect_eq(json_object_array_length(json), 1);
	json_object_put(json);
	cli_free(&cli);
	CLI(&cli, "--set", set, "sandbox", "detach", "box");
	expect_ok(&cli);
	cr_expect(access(set, F_OK), "the set outlived its last sandbox");
	cli_free(&cli);
	CLI(&cli, "--set", set, "sandbox", "detach", "box");
	cli_expect_error(&cli, 1, "nothing is attached");
	cli_free(&cli);
}

Test(cli_sandbox, second_attach_is_refused)
{
	char below[PATH_MAX];
	struct cli cli;

	attach();
	CLI(&cli, "--set", set, "sandbox", "attach", world.cgroup);
	cli_expect_error(&cli, 1, "belongs to sandbox 1");
	cli_free(&cli);
	cr_assert_lt(snprintf(below, sizeof(below), "%s/below", world.cgroup), (int)sizeof(below));
	cr_assert_eq(sl_cgroup_create(below, NULL), 0);
	CLI(&cli, "--set", set, "sandbox", "attach", below);
	cli_expect_error(&cli, 1, "belongs to sandbox 1");
	cli_free(&cli);
	CLI(&cli, "--set", set, "sandbox", "attach", world.cgroup, "--max-procs", "4000000");
	cli_expect_error(&cli, 1, "--max-procs");
	cli_free(&cli);
	CLI(&cli, "--set", set, "status", "--no-canary");
	expect_ok(&cli);
	cli_free(&cli);
}

/* The status of one condition, from the JSON of `sluice status`. */
static void expect_condition(const char *type, const char *status, const char *reason)
{
	struct json_object *json, *list;
	bool found = false;
	struct cli cli;

	CLI(&cli, "-j", "--set", set, "status");
	cr_expect_eq(cli.status, strcmp(status, "True") != 0, "%s", cli.out);
	json = json_of(cli.out);
	list = json_at(json, "conditions");
	cr_assert_not_null(list, "%s", cli.out);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (strcmp(json_text(one, "type"), type) != 0)
			continue;
		found = true;
		cr_expect_str_eq(json_text(one, "status"), status);
		cr_expect_str_eq(json_text(one, "reason"), reason);
	}
	cr_expect(found, "no %s in %s", type, cli.out);
	cr_expect_eq(json_object_get_boolean(json_at(json, "live")), !strcmp(status, "True"));
	json_object_put(json);
	cli_free(&cli);
}

Test(cli_sandbox, status_proves_that_it_records)
{
	struct cli cli;

	CLI(&cli, "--set", set, "status");
	expect_ok(&cli);
	cr_expect_not_null(strstr(cli.out, "nothing is attached"), "%s", cli.out);
	cli_free(&cli);
	attach();
	expect_condition("Recording", "True", "CanaryRecorded");
}

/* S8: the path alone proves nothing. */
static void expect_state(const char *state)
{
	struct json_object *json;
	struct cli cli;

	CLI(&cli, "-j", "--set", set, "sandbox", "show", "1");
	expect_ok(&cli);
	json = json_of(cli.out);
	cr_expect_str_eq(json_text(json, "state"), state);
	json_object_put(json);
	cli_free(&cli);
}

Test(cli_sandbox, status_of_a_cgroup_removed_and_made_again)
{
	struct cli cli;

	attach();
	expect_state("recorded");
	cr_assert_eq(rmdir(world.cgroup), 0);
	expect_state("gone");
	expect_condition("CgroupPresent", "False", "CgroupGone");
	cr_assert_eq(sl_cgroup_create(world.cgroup, NULL), 0);
	expect_condition("CgroupPresent", "False", "CgroupReplaced");
	expect_condition("LinksAttached", "False", "LinkMissing");
	expect_state("replaced");
	CLI(&cli, "--set", set, "sandbox", "attach", world.cgroup);
	cli_expect_error(&cli, 1, "removed and made again since it became sandbox 1");
	cli_free(&cli);
	CLI(&cli, "--set", set, "sandbox", "detach", world.cgroup);
	expect_ok(&cli);
	cli_free(&cli);
	attach();
	expect_condition("CgroupPresent", "True", "SameCgroup");
}

Test(cli_sandbox, status_of_a_link_that_was_taken_away)
{
	char link[256];

	attach();
	snprintf(link, sizeof(link), "%s/sandbox/1/on_connect4", set);
	cr_assert_eq(unlink(link), 0);
	expect_condition("LinksAttached", "False", "LinkMissing");
	expect_condition("Recording", "False", "ConnectNotRecorded");
}

/* S11: a set of another schema is neither used nor harmed. */
Test(cli_sandbox, other_schema)
{
	struct sl_config config;
	struct cli cli;
	char path[256];
	__u32 zero = 0;
	int fd;

	attach();
	snprintf(path, sizeof(path), "%s/maps/config", set);
	fd = bpf_obj_get(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(bpf_map_lookup_elem(fd, &zero, &config), 0);
	config.schema++;
	cr_assert_eq(bpf_map_update_elem(fd, &zero, &config, BPF_EXIST), 0);
	CLI(&cli, "--set", set, "sock", "list");
	cli_expect_error(&cli, 1, "has schema");
	cli_free(&cli);
	CLI(&cli, "--set", set, "sandbox", "attach", world.cgroup);
	cli_expect_error(&cli, 1, "has schema");
	cli_free(&cli);
	expect_condition("Compatible", "False", "SchemaDiffers");
	config.schema--;
	cr_assert_eq(bpf_map_update_elem(fd, &zero, &config, BPF_EXIST), 0);
	close(fd);
	expect_condition("Recording", "True", "CanaryRecorded");
}

/* The directory of all sets comes and goes while others make theirs in it. */
Test(cli_sandbox, sets_made_and_removed_at_once)
{
	static const char *const script =
		"for i in 1 2 3; do \"$0\" -q --set \"$1\" sandbox attach \"$2\" && "
		"\"$0\" -q --set \"$1\" sandbox detach 1 || exit 1; done";
	char dirs[3][192], groups[3][PATH_MAX];
	struct cli clis[3];
	pid_t remover;

	sl_set_free(&world.set);
	cr_assert_eq(sl_set_destroy(world.dir, NULL), 0);
	/* What the last detach does, at every moment. */
	remover = fork();
	cr_assert_geq(remover, 0);
	if (!remover) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			rmdir(SL_SET_ROOT);
	}
	for (int i = 0; i < 3; i++) {
		snprintf(dirs[i], sizeof(dirs[i]), "%s-%d", world.dir, i);
		cr_assert_lt(snprintf(groups[i], sizeof(groups[i]), "%s/%d", world.cgroup, i),
			     PATH_MAX);
		cr_assert_eq(sl_cgroup_create(groups[i], NULL), 0);
		cli_start(&clis[i], NULL,
			  (const char *const[]){ "/bin/sh", "-c", script, getenv("SLUICE"), dirs[i],
						 groups[i], NULL });
	}
	for (int i = 0; i < 3; i++) {
		cli_end(&clis[i]);
		expect_ok(&clis[i]);
		cr_expect(access(dirs[i], F_OK));
		sl_set_destroy(dirs[i], NULL);
		cli_free(&clis[i]);
	}
	kill(remover, SIGKILL);
	waitpid(remover, NULL, 0);
}

/* S16: maps that are full are told, by number and with what to do; others are recorded. */
Test(cli_sandbox, full_map)
{
	struct json_object *json, *faults;
	struct load load;
	struct cli cli;

	CLI(&cli, "-q", "--set", set, "sandbox", "attach", world.cgroup, "--max-procs", "16");
	expect_ok(&cli);
	cli_free(&cli);
	load_exec(&load, INSIDE,
		  (char *[]){ "/bin/sh", "-c",
			      "i=0; while [ $i -lt 100 ]; do sleep 1000 >/dev/null & i=$((i+1)); "
			      "done; echo what=ready; read end",
			      NULL });
	load_await(&load, "ready", 1);
	CLI(&cli, "-j", "--set", set, "status");
	cr_expect_eq(cli.status, 0, "%s", cli.out);
	json = json_of(cli.out);
	faults = json_at(json, "faults");
	cr_assert_eq(json_object_array_length(faults), 1, "%s", cli.out);
	cr_expect_str_eq(json_text(json_object_array_get_idx(faults, 0), "counter"), "procs_full");
	cr_expect_not_null(
		strstr(json_text(json_object_array_get_idx(faults, 0), "advice"), "--max-procs"));
	json_object_put(json);
	cli_free(&cli);
	load_end(&load);
	load_free(&load);
}
