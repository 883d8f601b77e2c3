/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trust on first use, P8: other bytes at the path of a binary that was seen before. Truth
 * comes from what ran, and from sha256sum.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guard/files.h"
#include "guard/trust.h"
#include "system/guarded.h"

TestSuite(integrity, .init = guarded_up, .fini = guarded_down, .timeout = 120);

/* A process of the sandbox that tries to connect whenever it is told to. */
struct worker {
	int in;
	char fifo[128];
};

static char prog[128];

/* The file at the path is replaced as an installer does it: another inode, renamed. */
static void replace_prog(const char *more)
{
	char next[PATH_MAX];
	struct load load;

	world_copy_of("/usr/bin/bash", "next", next);
	load_shell(&load, OUTSIDE, "printf '%s' >>%s; mv %s %s", more, next, next, prog);
	load_free(&load);
}

static void make_prog(const char *program)
{
	char path[PATH_MAX];

	snprintf(prog, sizeof(prog), "%s", world_copy_of(program, "prog", path));
}

static void worker_open(struct worker *worker, const char *name)
{
	snprintf(worker->fifo, sizeof(worker->fifo), "%s/%s", world.scratch, name);
	worker->in = open(worker->fifo, O_RDWR | O_CLOEXEC);
	cr_assert_geq(worker->in, 0, "%s: %s", worker->fifo, strerror(errno));
}

static void tell(const struct worker *worker, const char *line)
{
	cr_assert_eq(write(worker->in, line, strlen(line)), (ssize_t)strlen(line));
}

/* Tells a worker to try, and waits until it says how it went. */
static void expect_try(struct cli *cli, const struct worker *worker, const char *mark,
		       const char *result)
{
	char line[64], said[96];

	snprintf(line, sizeof(line), "%s\n", mark);
	tell(worker, line);
	snprintf(said, sizeof(said), "%s=", mark);
	cli_await(cli, said);
	snprintf(said, sizeof(said), "%s=%s\n", mark, result);
	cr_expect_not_null(strstr(cli->out, said), "not '%s' in: %s%s", said, cli->out, cli->err);
}

/* bash that starts `prog` for each line of `start`, named by it, with a fifo of that name. */
static void run_start(struct cli *cli, struct worker *start, const char *events)
{
	char script[2048], loop[1024];

	snprintf(loop, sizeof(loop),
		 "while read mark; do if { echo >/dev/tcp/127.0.0.1/%u; } 2>/dev/null; "
		 "then echo \"$mark=allowed\"; else echo \"$mark=denied\"; fi; done",
		 guarded.open.port);
	snprintf(script, sizeof(script),
		 "mkfifo %s/start; echo ready; while read name; do mkfifo %s/$name; "
		 "%s -c '%s' <>%s/$name & echo started-$name; done <>%s/start",
		 world.scratch, world.scratch, prog, loop, world.scratch, world.scratch);
	cli_start(cli, NULL,
		  CLI_ARGV("run", "--policy", guarded.policy, "--events", events, "--", "bash",
			   "-c", script));
	cli_await(cli, "ready\n");
	worker_open(start, "start");
}

static void worker_start(struct cli *cli, const struct worker *start, struct worker *worker,
			 const char *name)
{
	char line[64];

	snprintf(line, sizeof(line), "%s\n", name);
	tell(start, line);
	snprintf(line, sizeof(line), "started-%s\n", name);
	cli_await(cli, line);
	worker_open(worker, name);
}

static void load_policy(const char *more)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "version: 1\nintegrity: first-use\nnetwork_policies:\n  here:\n    endpoints:\n"
		 "      - {cidr: 127.0.0.1/32, port: %u, allow_reserved: true}\n"
		 "    binaries: [{path: %s%s}]\n",
		 guarded.open.port, prog, more);
	guarded_load(text);
}

/* The decisions in the file: all for integrity, each with these digests; how many. */
static uint64_t count_denied(const char *events, const char *found, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	FILE *file = fopen(events, "re");
	struct json_object *line;
	uint64_t sum = 0;
	const char *at;
	size_t size = 0;

	cr_assert_not_null(file);
	cr_assert_geq(getdelim(&text, &size, '\0', file), 0);
	fclose(file);
	for (at = text; (line = json_line(&at)); json_object_put(line)) {
		if (strcmp(json_text(line, "event"), "decision") != 0)
			continue;
		cr_expect_str_eq(json_text(line, "reason"), "integrity");
		cr_expect_str_eq(json_text(line, "process.exe.path"), prog);
		if (!strcmp(json_text(line, "sha256_found"), found) &&
		    !strcmp(json_text(line, "sha256_expected"), expected))
			sum += json_object_get_uint64(json_at(line, "count"));
	}
	return sum;
}

static void accept_path(const struct cli *run, const char *sha256, const char *before)
{
	struct json_object *answer;
	char dir[64];
	struct cli cli;

	snprintf(dir, sizeof(dir), SL_SET_ROOT "/run-%d", run->pid);
	CLI(&cli, "-j", "--set", dir, "exe", "accept", prog);
	cr_assert_eq(cli.status, 0, "%s%s", cli.out, cli.err);
	answer = json_of(cli.out);
	cr_expect_str_eq(json_text(answer, "path"), prog);
	cr_expect_str_eq(json_text(answer, "sha256"), sha256);
	cr_expect_str_eq(json_text(answer, "before"), before);
	cr_expect_eq(json_object_get_int(json_at(answer, "sandboxes")), 1);
	json_object_put(answer);
	cli_free(&cli);
}

Test(integrity, p8_bytes_that_were_replaced)
{
	struct worker start, old, new, third, back;
	char events[96], first[65], second[65];
	struct cli cli;

	snprintf(events, sizeof(events), "%s/events", world.scratch);
	make_prog("/usr/bin/bash");
	world_sha256(prog, first);
	load_policy("");
	run_start(&cli, &start, events);
	worker_start(&cli, &start, &old, "old");
	expect_try(&cli, &old, "a", "allowed");
	replace_prog("x");
	world_sha256(prog, second);
	worker_start(&cli, &start, &new, "new");
	expect_try(&cli, &new, "b", "denied");
	expect_try(&cli, &old, "c", "allowed");
	accept_path(&cli, second, first);
	/* Who runs already, and who is started now. */
	expect_try(&cli, &new, "d", "allowed");
	worker_start(&cli, &start, &third, "third");
	expect_try(&cli, &third, "e", "allowed");
	expect_try(&cli, &old, "f", "allowed");
	/* What was trusted before is not any more. */
	replace_prog("");
	worker_start(&cli, &start, &back, "back");
	expect_try(&cli, &back, "g", "denied");
	kill(cli.pid, SIGTERM);
	cli_end(&cli);
	cr_expect_eq(count_denied(events, second, first), 1);
	cr_expect_eq(count_denied(events, first, second), 1);
	cr_expect_not_null(strstr(cli.err, "' if it is meant to have changed"), "%s", cli.err);
	cr_expect_eq(sink_take(&guarded.open), 5);
	cli_free(&cli);
}

/* A pin for the path wins over what was seen there first. */
Test(integrity, pins_win)
{
	static const char *const wrong =
		", sha256: "
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	struct worker start, worker;
	char events[96], more[160], digest[65];
	struct cli cli, accept;

	snprintf(events, sizeof(events), "%s/events", world.scratch);
	make_prog("/usr/bin/bash");
	world_sha256(prog, digest);
	snprintf(more, sizeof(more), "%s}, {path: '%s/**'", wrong, world.scratch);
	load_policy(more);
	run_start(&cli, &start, events);
	worker_start(&cli, &start, &worker, "pinned");
	expect_try(&cli, &worker, "a", "denied");
	/* Nothing is remembered that could be accepted. */
	snprintf(more, sizeof(more), SL_SET_ROOT "/run-%d", cli.pid);
	CLI(&accept, "--set", more, "exe", "accept", prog);
	cli_expect_error(&accept, 1, "no sandbox in");
	cli_free(&accept);
	kill(cli.pid, SIGTERM);
	cli_end(&cli);
	cr_expect_eq(count_denied(events, digest, wrong + strlen(", sha256: ")), 1);
	cr_expect_eq(sink_take(&guarded.open), 0);
	cli_free(&cli);
}

/* --- the guard itself, files prepared by hand --- */

static void guard_policy(struct sl_compiled **compiled, struct sl_policy **policy, __u32 *id)
{
	struct sl_guard_options options = { .mode = SL_GUARD_ENFORCE };
	struct sl_err err = { 0 };

	cr_assert_eq(sl_policy_load_file(policy, guarded.policy, &err), 0, "%s", err.text);
	cr_assert_eq(sl_compiled_new(compiled, *policy, &err), 0, "%s", err.text);
	cr_assert_eq(sl_guard_load(world.set, world.sandbox, *compiled, &options, id, &err), 0,
		     "%s", err.text);
}

static int prepare(const char *path, const struct sl_compiled *compiled, __u32 id)
{
	_cleanup_(sl_files_free) struct sl_files *files = NULL;
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(sl_files_new(&files, world.set, compiled, world.sandbox, id), 0);
	return sl_files_prepare(files, fd);
}

static void start_prog(struct load *load)
{
	char *argv[] = { prog, (char *)"do", (char *)"--until-eof", NULL };

	load_exec(load, INSIDE, argv);
}

/* A connect of a running `sl-load do`; the n-th it is told to. */
static void expect_connect(struct load *load, unsigned int n, const char *result)
{
	char words[128];

	snprintf(words, sizeof(words), "socket=tcp\nconnect=%s\n", guarded.open.text);
	cr_assert_eq(write(load->in, words, strlen(words)), (ssize_t)strlen(words));
	load_await(load, "did", 2 * n + 2);
	cr_expect_str_eq(did_errno(load, "connect", n), result, "connect %u", n);
}

Test(integrity, unprepared_is_denied_and_reload_keeps)
{
	struct sl_compiled *compiled[2] = { NULL, NULL };
	struct sl_policy *policy[2] = { NULL, NULL };
	uint8_t trusted[SL_SHA256_LEN], after[SL_SHA256_LEN];
	struct load early, late, other;
	__u32 id[2];

	make_prog(getenv("SL_LOAD"));
	load_policy("");
	guard_policy(&compiled[0], &policy[0], &id[0]);
	start_prog(&early);
	expect_connect(&early, 0, "EACCES");
	cr_expect_eq(sl_trust_read(world.set, world.sandbox, prog, trusted), -ENOENT);
	cr_assert_eq(prepare(prog, compiled[0], id[0]), 0);
	cr_assert_eq(sl_trust_read(world.set, world.sandbox, prog, trusted), 0);
	start_prog(&late);
	expect_connect(&late, 0, "0");
	/* It is by the same images: what one has earned, all have. */
	expect_connect(&early, 1, "0");
	guard_policy(&compiled[1], &policy[1], &id[1]);
	expect_connect(&late, 1, "0");
	cr_expect_eq(sl_trust_read(world.set, world.sandbox, prog, after), 0);
	cr_expect_eq(memcmp(trusted, after, sizeof(after)), 0);
	load_end(&early);
	load_end(&late);
	cr_assert_eq(unlink(prog), 0);
	make_prog(getenv("SL_LOAD"));
	load_shell(&other, OUTSIDE, "printf x >>%s", prog);
	load_free(&other);
	cr_assert_eq(prepare(prog, compiled[1], id[1]), 0);
	start_prog(&other);
	expect_connect(&other, 0, "EACCES");
	load_end(&other);
	cr_expect_eq(sl_trust_forget(world.set, world.sandbox), 0);
	cr_expect_eq(sl_trust_read(world.set, world.sandbox, prog, after), -ENOENT);
	load_free(&early);
	load_free(&late);
	load_free(&other);
	for (int i = 0; i < 2; i++) {
		sl_compiled_free(&compiled[i]);
		sl_policy_free(&policy[i]);
	}
}
