/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* P5, P12: patterns of paths, and files that are no policy, as the kernel has them in force. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/world.h"

TestSuite(policy_files, .init = world_up, .fini = world_down, .timeout = 200);

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *file = fopen(path, "we");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(text, 1, len, file), len);
	cr_assert_eq(fclose(file), 0);
}

static const char *in_scratch(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", world.scratch, name);
	return path;
}

static void allow(char policy[PATH_MAX], unsigned int port, const char *binaries)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "version: 1\nnetwork_policies:\n  here:\n"
		 "    endpoints: [{cidr: 127.0.0.1/32, port: %u, allow_reserved: true}]\n"
		 "    binaries: [%s]\n",
		 port, binaries);
	write_file(in_scratch("policy.yaml", policy), text, strlen(text));
}

/* P5: the kernel's prefixes, and patterns that hold exec. One program in many places. */
Test(policy_files, patterns_of_paths)
{
	static const char *const dirs[] = { "d", "d/a", "dx", "e", "e/1", "e/1/2", "e/1/2/3" };
	static const char *const programs[] = { "d/b",  "d/a/b",   "dx/a",      "e/1/x",
						"e/2x", "e/1/2/x", "e/1/2/3/x", "e/1/y" };
	char path[PATH_MAX], policy[PATH_MAX], script[2048], binaries[512];
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	size_t len = 0;
	struct cli cli;

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		cr_assert_eq(mkdir(in_scratch(dirs[i], path), 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		world_copy_of("/usr/bin/bash", programs[i], path);
		len += (size_t)snprintf(script + len, sizeof(script) - len,
					"%s -c 'echo >/dev/tcp/127.0.0.1/%u' 2>/dev/null && "
					"echo %s;",
					path, port, programs[i]);
	}
	snprintf(binaries, sizeof(binaries), "{path: %s/d/**}, {path: %s/e/*/x}", world.scratch,
		 world.scratch);
	allow(policy, port, binaries);
	cr_assert_lt(len + 6, sizeof(script));
	strcpy(script + len, " true");
	CLI(&cli, "run", "--policy", policy, "--", "sh", "-c", script);
	cr_expect_str_eq(cli.out, "d/b\nd/a/b\ne/1/x\n", "%s", cli.err);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

/* In mounts of the command's own: m, of a lower layer and an upper one on other devices. */
static void mount_overlay(void)
{
	cli_must(chdir(world.scratch));
	cli_own_mounts();
	cli_must(mount("none", "over", "tmpfs", 0, NULL));
	cli_must(mkdir("over/upper", 0755) || mkdir("over/work", 0755));
	cli_must(mount("none", "m", "overlay", 0,
		       "lowerdir=lower,upperdir=over/upper,workdir=over/work,xino=off"));
	cli_must(system("cp m/pinned m/copied && mv m/other m/moved"));
}

/* stat(2) tells other devices than exec sees: in most containers. */
Test(policy_files, held_on_overlay)
{
	static const char *const files[] = { "pinned", "other", "wrong", "wild" };
	char path[PATH_MAX], policy[PATH_MAX], script[1024], sum[65], binaries[1024];
	struct load server;
	unsigned int port;
	struct cli cli;

	if (system("grep -qw overlay /proc/filesystems || modprobe -q overlay"))
		cr_skip_test("no overlayfs here");
	port = server_start(&server, "tcp-server --quiet --count 100");
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(mkdir(in_scratch(((const char *[]){ "lower", "over", "m" })[i], path),
				   0755),
			     0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(script, sizeof(script), "lower/%s", files[i]);
		world_copy_of("/usr/bin/bash", script, path);
	}
	world_sha256(path, sum);
	snprintf(binaries, sizeof(binaries),
		 "{path: %1$s/m/pinned, sha256: %2$s}, {path: %1$s/m/copied, sha256: %2$s},"
		 "{path: %1$s/m/moved, sha256: %2$s}, {path: %1$s/m/w*d},"
		 "{path: %1$s/m/wrong, sha256: %3$064d}",
		 world.scratch, sum, 0);
	allow(policy, port, binaries);
	snprintf(script, sizeof(script),
		 "for f in pinned copied moved wild wrong; do "
		 "%s/m/$f -c 'echo >/dev/tcp/127.0.0.1/%u' 2>/dev/null && echo $f; done; true",
		 world.scratch, port);
	CLI_BEFORE(&cli, mount_overlay, "run", "--policy", policy, "--", "sh", "-c", script);
	cr_expect_str_eq(cli.out, "pinned\ncopied\nmoved\nwild\n", "%d: %s", cli.status, cli.err);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

/* --- P12 --- */

#define TOP "version: 1\nnetwork_policies:\n  e:\n"

struct fault {
	const char *text;
	size_t len; /* 0: all of it */
	const char *at;
};

static const struct fault faults[] = {
	{ "version: [1\n", 0, ":2:1: not valid YAML" },
	{ "version: 1\nnetwork_polices: {}\n", 0, ":2:1: policy: unknown key: 'network_polices'" },
	{ "version: 1\nversion: 1\n", 0, ":2:1: policy: the key is there twice" },
	{ TOP "    endpoints: [{cidr: 10.0.0.0/33, port: 1}]\n", 0, ":4:24: cidr: " },
	{ TOP "    endpoints: [{host: a.org, port: 70000}]\n", 0, ":4:37: not a port: '70000'" },
	{ "version: 1\nmod\0e: x\n", 20, ":2:4: a NUL byte" },
	{ "version: 1 #\xfc\n", 0, ":1:13: byte 0xfc is not UTF-8" },
};

static bool reaches(unsigned int port)
{
	char *argv[] = { "/usr/bin/bash", "-c", NULL, NULL };
	char script[128];
	struct load load;
	int status;

	snprintf(script, sizeof(script), "echo >/dev/tcp/127.0.0.1/%u", port);
	argv[2] = script;
	load_exec(&load, INSIDE, argv);
	status = load_end(&load);
	load_free(&load);
	return !status;
}

/* One error with its place, at each of the three; nothing runs, nothing comes into force. */
static void refused_everywhere(const char *bad, const char *at)
{
	char ran[PATH_MAX];
	struct cli cli;

	CLI(&cli, "policy", "check", bad);
	cli_expect_error(&cli, 1, at);
	cli_free(&cli);
	CLI(&cli, "run", "--policy", bad, "--", "/usr/bin/touch", in_scratch("ran", ran));
	cli_expect_error(&cli, 125, at);
	cr_expect_neq(access(ran, F_OK), 0, "it ran with %s", at);
	cli_free(&cli);
	CLI(&cli, "--set", world.dir, "sandbox", "policy", "1", bad);
	cli_expect_error(&cli, 1, at);
	cli_free(&cli);
}

Test(policy_files, files_that_are_no_policy)
{
	char policy[PATH_MAX], bad[PATH_MAX];
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	const size_t deep = 4000, big = 10000000;
	char *text = malloc(big);
	struct cli cli;

	cr_assert_not_null(text);
	allow(policy, port, "{path: /usr/bin/bash}");
	CLI(&cli, "--set", world.dir, "sandbox", "policy", "1", policy);
	cr_assert_eq(cli.status, 0, "%s", cli.err);
	cli_free(&cli);
	in_scratch("bad.yaml", bad);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		const struct fault *fault = &faults[i];

		write_file(bad, fault->text, fault->len ? fault->len : strlen(fault->text));
		refused_everywhere(bad, fault->at);
	}
	memset(text, '[', big);
	write_file(bad, text, deep);
	refused_everywhere(bad, ":1:33: nested more than 32 deep");
	write_file(bad, text, big);
	refused_everywhere(bad, ":1:1: 10000000 bytes; a policy may have at most");
	free(text);
	/* The old one is in force: what it names is reached, and nothing else. */
	cr_expect(reaches(port));
	cr_expect_not(reaches(1));
	load_end(&server);
	load_free(&server);
}
