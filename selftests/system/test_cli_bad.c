/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where sluice can't work: one message that says why, and the next step. */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_bad, .init = world_up, .fini = world_down, .timeout = 120);

static void be_nobody(void)
{
	cli_must(setgid(65534));
	cli_must(setuid(65534));
}

static void no_btf(void)
{
	cli_own_mounts();
	cli_must(mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL));
}

static void no_cgroup2(void)
{
	char point[PATH_MAX];

	cli_own_mounts();
	cli_must(sl_cgroup_mount(point, sizeof(point), NULL));
	cli_must(umount2(point, MNT_DETACH));
}

static void no_bpffs(void)
{
	cli_own_mounts();
	cli_must(umount2(SL_BPFFS, MNT_DETACH));
}

static void no_place_for_bpffs(void)
{
	cli_own_mounts();
	cli_must(mount("none", "/sys/fs", "tmpfs", 0, NULL));
}

static void little_memlock(void)
{
	struct rlimit limit = { 8 << 20, 8 << 20 };

	cli_must(setrlimit(RLIMIT_MEMLOCK, &limit));
}

Test(cli_bad, nobody)
{
	struct cli cli;

	CLI_BEFORE(&cli, be_nobody, "run", "--", "true");
	cli_expect_error(&cli, 125, "not enough privilege");
	cli_free(&cli);
	CLI_BEFORE(&cli, be_nobody, "--set", world.dir, "sandbox", "attach", world.cgroup);
	cli_expect_error(&cli, 1, "not enough privilege");
	cli_free(&cli);
	/* Not "nothing is attached", which would be a guess. */
	CLI_BEFORE(&cli, be_nobody, "--set", world.dir, "sock", "list");
	cli_expect_error(&cli, 1, "Permission denied");
	cli_free(&cli);
	CLI_BEFORE(&cli, be_nobody, "--set", world.dir, "status");
	cli_expect_error(&cli, 1, "Permission denied");
	cli_free(&cli);
	CLI_BEFORE(&cli, be_nobody, "--set", world.dir, "sandbox", "list");
	cli_expect_error(&cli, 1, "Permission denied");
	cli_free(&cli);
	CLI_BEFORE(&cli, be_nobody, "--set", world.dir, "sandbox", "detach", "1");
	cli_expect_error(&cli, 1, "Permission denied");
	cli_free(&cli);
}

Test(cli_bad, no_btf)
{
	struct cli cli;

	CLI_BEFORE(&cli, no_btf, "run", "--", "true");
	cli_expect_error(&cli, 125, "BTF");
	cli_free(&cli);
	CLI_BEFORE(&cli, no_btf, "--set", world.dir, "sandbox", "attach", world.cgroup);
	cli_expect_error(&cli, 1, "BTF");
	cli_free(&cli);
}

Test(cli_bad, no_cgroup2)
{
	struct cli cli;

	CLI_BEFORE(&cli, no_cgroup2, "run", "--", "true");
	cli_expect_error(&cli, 125, "cgroup2");
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
	CLI_BEFORE(&cli, no_cgroup2, "--set", world.dir, "sandbox", "attach", "some");
	cli_expect_error(&cli, 1, "cgroup2");
	cli_free(&cli);
}

Test(cli_bad, bpffs)
{
	struct cli cli;

	/* Root can mount it, and does. */
	CLI_BEFORE(&cli, no_bpffs, "run", "-q", "--", "true");
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_str_eq(cli.err, "");
	cli_free(&cli);
	CLI_BEFORE(&cli, no_place_for_bpffs, "run", "--", "true");
	cr_expect_eq(cli.status, 125);
	cr_expect_eq(text_count(cli.err, "\n"), 2, "%s", cli.err);
	cli_free(&cli);
}

/* Memory of programs and maps has not been counted against this limit since 5.11. */
Test(cli_bad, little_memlock)
{
	struct cli cli;

	CLI_BEFORE(&cli, little_memlock, "run", "-q", "--", "true");
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_str_eq(cli.err, "");
	cli_free(&cli);
}

Test(cli_bad, words)
{
	static const struct {
		const char *argv[8];
		int status;
		const char *text;
	} cases[] = {
		{ { "sluice", "nonsense" }, 2, "'nonsense'" },
		{ { "sluice", "sock" }, 2, "no command named" },
		{ { "sluice", "--nonsense" }, 2, "--nonsense" },
		{ { "sluice", "-Z" }, 2, "-Z" },
		{ { "sluice", "version", "x" }, 2, "too many arguments" },
		{ { "sluice", "sandbox", "attach" }, 2, "too few arguments" },
		{ { "sluice", "sandbox", "attach", "x", "--max-procs", "0" }, 2, "--max-procs" },
		{ { "sluice", "sandbox", "attach", "x", "--max-procs", "12x" }, 2, "--max-procs" },
		{ { "sluice", "sandbox", "attach", "x", "--max-procs", "-1" }, 2, "--max-procs" },
		{ { "sluice", "sandbox", "attach", "x", "--ring-bytes", "1X" }, 2, "--ring-bytes" },
		{ { "sluice", "sandbox", "attach", "x", "--ring-bytes", "2G" }, 2, "4K to 1G" },
		{ { "sluice", "sandbox", "attach", "x", "--ring-bytes", "0" }, 2, "4K to 1G" },
		{ { "sluice", "sandbox", "attach", "x", "--name", "7" }, 1, "--name" },
		{ { "sluice", "sandbox", "attach", "x", "--name", "a/b" }, 1, "--name" },
		{ { "sluice", "sandbox", "attach", "x", "--name", "a\nb" }, 1, "--name" },
		{ { "sluice", "sandbox", "attach", "" }, 1, "an empty name" },
		{ { "sluice", "run", "--ocsf", "--", "true" }, 125, "--ocsf without --events" },
		{ { "sluice", "status", "-t", "0s" }, 1, "--timeout" },
		{ { "sluice", "sandbox", "attach", "there-is-none" }, 1, "there-is-none" },
		{ { "sluice", "sandbox", "attach", "/there/is/none" }, 1, "/there/is/none" },
		{ { "sluice", "sandbox", "attach", "/tmp" }, 1, "not a cgroup2 directory" },
		{ { "sluice", "sandbox", "attach", "/etc/passwd" }, 1, "/etc/passwd" },
		{ { "sluice", "sandbox", "attach", "/" }, 1, "'/'" },
		{ { "sluice", "event", "watch", "-k", "nonsense" }, 2, "nonsense" },
		{ { "sluice", "event", "watch", "-n", "0" }, 2, "--count" },
		{ { "sluice", "status", "--timeout", "soon" }, 2, "--timeout" },
		{ { "sluice", "--set", "", "status" }, 1, "'' is no directory" },
		{ { "sluice", "--set", "/tmp", "status" }, 1, "'/tmp' is no directory" },
		{ { "sluice", "--set", "", "sock", "list" }, 1, "'' is no directory" },
		{ { "sluice", "completion", "zsh" }, 2, "zsh" },
		{ { "sluice", "sock", "show", "x" }, 1, "'x'" },
		{ { "sluice", "sock", "resolve", "tcp", "a", "b" }, 1, "'a'" },
		{ { "sluice", "sock", "resolve", "icmp", "1.1.1.1:1", "1.1.1.1:2" }, 1, "'icmp'" },
		{ { "sluice", "proc", "show", "x" }, 1, "'x'" },
		{ { "sluice", "run", "--user", "no-such-user", "--", "true" }, 125, "no-such-user" },
		{ { "sluice", "run", "--user", "0:x", "--", "true" }, 125, "'x'" },
		{ { "sluice", "run", "-e" }, 125, "-e needs a value" },
		{ { "sluice", "run", "--nonsense", "true" }, 125, "--nonsense" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cli cli;

		cli_start(&cli, NULL, cases[i].argv);
		cli_end(&cli);
		cli_expect_error(&cli, cases[i].status, cases[i].text);
		cli_free(&cli);
	}
}
