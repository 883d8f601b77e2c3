/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `strict: true`: variables of the loader, tracing, sockets of others. Each attempt is also
 * made without it, where it has to succeed.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "system/guarded.h"

TestSuite(strict, .init = guarded_up, .fini = guarded_down, .timeout = 180);

static const char *make_prog(void)
{
	static char prog[128];
	char path[PATH_MAX];

	snprintf(prog, sizeof(prog), "%s", world_copy_of("/usr/bin/bash", "prog", path));
	return prog;
}

/* One binary for what is open, and what goes with its path. */
static void load_policy(const char *path, const char *more)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "version: 1\nnetwork_policies:\n  here:\n    endpoints:\n"
		 "      - {cidr: 127.0.0.1/32, port: %u, allow_reserved: true}\n"
		 "    binaries: [{path: %s%s}]\n",
		 guarded.open.port, path, more);
	guarded_load(text);
}

/* Lines of `sh` under `sluice run` with the policy; $TRY and $PROG are for use in them. */
static void run_lines(struct cli *cli, const char *prog, const char *lines)
{
	char script[8192];

	snprintf(script, sizeof(script),
		 "PROG=%s\nTRY='{ echo >/dev/tcp/127.0.0.1/%u; } 2>/dev/null && echo allowed || "
		 "echo denied'\n%s",
		 prog, guarded.open.port, lines);
	CLI(cli, "run", "--policy", guarded.policy, "--", "bash", "-c", script);
	cr_assert_eq(cli->status, 0, "%s", cli->err);
}

/* The environment is read in pieces of 4,096 bytes: some variables end, or go on, there. */
static const char *const loaded[] = {
	"LD_PRELOAD=libm.so.6 $PROG -c \"$TRY\"",
	"LD_LIBRARY_PATH=/tmp $PROG -c \"$TRY\"",
	"LD_AUDIT= $PROG -c \"$TRY\"",
	"LD_BIND_NOW=1 $PROG -c \"$TRY\"",
	"GCONV_PATH=/tmp $PROG -c \"$TRY\"",
	"GLIBC_TUNABLES=glibc.malloc.check=0 $PROG -c \"$TRY\"",
	"env -i A=$(printf %04093d 0) LD_PRELOAD=libm.so.6 $PROG -c \"$TRY\"",
	"env -i A=$(printf %04092d 0) LD_PRELOAD=libm.so.6 $PROG -c \"$TRY\"",
	"env -i A=$(printf %0100000d 0) LD_PRELOAD=libm.so.6 $PROG -c \"$TRY\"",
};

static const char *const plain[] = {
	"$PROG -c \"$TRY\"",
	"env -i $PROG -c \"$TRY\"",
	"XLD_PRELOAD=x LDX=1 L=1 G=LD_PRELOAD=x GCONV=1 $PROG -c \"$TRY\"",
	"env -i A=$(printf %0100000d 0) B=1 $PROG -c \"$TRY\"",
	/* 4,095 bytes, then LD_ in the middle of the variable. */
	"env -i A=$(printf %04093d 0)LD_PRELOAD=x $PROG -c \"$TRY\"",
	/* Code that was put into one process is not in what it executes. */
	"LD_PRELOAD=libm.so.6 $PROG -c 'unset LD_PRELOAD; $0 -c \"$1\"' $PROG \"$TRY\"",
};

static void join(char *out, size_t size, const char *const lines[], size_t count)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(out + used, size - used, "%s\n", lines[i]);
	cr_assert_lt(used, size);
}

#define COUNT(lines) (sizeof(lines) / sizeof((lines)[0]))

Test(strict, variables_of_the_loader)
{
	const char *prog = make_prog();
	char lines[4096];
	struct cli cli;

	join(lines, sizeof(lines), loaded, COUNT(loaded));
	load_policy(prog, ", strict: true");
	run_lines(&cli, prog, lines);
	cr_expect_eq(text_count(cli.out, "denied\n"), COUNT(loaded), "%s%s", cli.out, cli.err);
	cr_expect_eq(text_count(cli.out, "allowed\n"), 0, "%s", cli.out);
	cr_expect_eq(text_count(cli.err, ": strict: the rule"), 1, "%s", cli.err);
	cr_expect_null(strstr(cli.err, " binary: "), "%s", cli.err);
	cr_expect_eq(sink_take(&guarded.open), 0);
	cli_free(&cli);
	load_policy(prog, "");
	run_lines(&cli, prog, lines);
	cr_expect_eq(text_count(cli.out, "allowed\n"), COUNT(loaded), "%s%s", cli.out, cli.err);
	cr_expect_eq(sink_take(&guarded.open), COUNT(loaded));
	cli_free(&cli);
}

Test(strict, without_variables)
{
	const char *prog = make_prog();
	char lines[4096];
	struct cli cli;

	join(lines, sizeof(lines), plain, COUNT(plain));
	load_policy(prog, ", strict: true");
	run_lines(&cli, prog, lines);
	cr_expect_eq(text_count(cli.out, "allowed\n"), COUNT(plain), "%s%s", cli.out, cli.err);
	cr_expect_eq(sink_take(&guarded.open), COUNT(plain));
	cli_free(&cli);
}

/* A descendant has the rule of its strict ancestor, but not with such variables of its own. */
Test(strict, descendants)
{
	static const char *const lines =
		"$PROG -c \"/usr/bin/bash -c '$TRY'; :\"\n"
		"$PROG -c \"LD_PRELOAD=libm.so.6 /usr/bin/bash -c '$TRY'; :\"\n";
	const char *prog = make_prog();
	struct cli cli;

	load_policy(prog, ", strict: true");
	run_lines(&cli, prog, lines);
	cr_expect_str_eq(cli.out, "allowed\ndenied\n", "%s", cli.err);
	cr_expect_eq(sink_take(&guarded.open), 1);
	cli_free(&cli);
}

static void expect_tracing(const char *more, const char *const results[5])
{
	static const char *const verbs[] = { "attach", "poke", "mem", "getfd", "trace" };
	char words[512];
	struct load load;

	load_policy(getenv("SL_LOAD"), more);
	snprintf(words, sizeof(words),
		 "sleep 1000 & %s do attach=$! poke=$! mem=$! getfd=$!.0 trace; kill $!",
		 getenv("SL_LOAD"));
	GUARDED_RUN(&load, "--", "bash", "-c", words);
	for (size_t i = 0; i < COUNT(verbs); i++)
		cr_expect_str_eq(did_errno(&load, verbs[i], 0), results[i], "%s%s: %s", verbs[i],
				 more, did_errno(&load, verbs[i], 0));
	load_free(&load);
}

Test(strict, nobody_traces)
{
	static const char *const refused[] = { "EPERM", "EPERM", "EACCES", "EPERM", "EPERM" };
	/* Root writes to nothing below /proc in any sandbox with a policy. */
	static const char *const done[] = { "0", "EFAULT", "EACCES", "0", "0" };

	expect_tracing(", strict: true", refused);
	expect_tracing("", done);
}

/* A socket that another binary has opened, connected by the one that is allowed. */
static void expect_lent(const char *more, const char *result)
{
	char words[1024];
	struct load load;

	load_policy(getenv("SL_LOAD"), more);
	snprintf(words, sizeof(words),
		 "import os, socket\n"
		 "s = socket.socket()\n"
		 "os.set_inheritable(s.fileno(), True)\n"
		 "os.execv('%s', ['sl-load', 'do', 'adopt=%%d' %% s.fileno(), 'connect=%s', "
		 "'socket=tcp', 'connect=%s'])",
		 getenv("SL_LOAD"), guarded.open.text, guarded.open.text);
	GUARDED_RUN(&load, "--", "python3", "-c", words);
	cr_expect_str_eq(did_errno(&load, "connect", 0), result, "lent%s", more);
	cr_expect_str_eq(did_errno(&load, "connect", 1), "0", "own%s", more);
	cr_expect_eq(sink_take(&guarded.open), 1U + !strcmp(result, "0"));
	load_free(&load);
}

Test(strict, sockets_of_others)
{
	if (access("/usr/bin/python3", X_OK))
		cr_skip_test("no /usr/bin/python3");
	expect_lent(", strict: true", "EACCES");
	expect_lent("", "0");
}
