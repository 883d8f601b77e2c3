/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `sluice run --hold`: whichever calls wait, a policy that user space has to match (wildcards,
 * pinned digests) grants the same and denies the same, in all the shapes that an exec has.
 * What arrives counts.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "system/guarded.h"
#include "system/scale.h"

/* With sanitizers a run takes seconds: then the longest way only. */
static const bool in_full = SCALED(10) == 10;

TestSuite(hold, .init = guarded_up, .fini = guarded_down, .timeout = 100);

static char tool[PATH_MAX], shell[PATH_MAX], other[PATH_MAX];

static void make_files(void)
{
	char path[PATH_MAX], text[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/one-a", world.scratch);
	cr_assert_eq(mkdir(path, 0755), 0);
	world_copy("one-a/tool", tool);
	world_copy_of("/usr/bin/bash", "one-a/shell", shell);
	world_copy("other", other);
	snprintf(text, sizeof(text), "#!%s\necho x >/dev/tcp/127.0.0.1/%u\n", shell,
		 guarded.open.port);
	world_script("script", text, path);
	snprintf(text, sizeof(text),
		 "#!/usr/bin/env -S PATH=/none:%s/one-a shell\necho x >/dev/tcp/127.0.0.1/%u\n",
		 world.scratch, guarded.open.port);
	world_script("env-script", text, path);
}

/* Wildcards, or the digests of the files there are, or one that is not theirs. */
enum kind { GLOB, PIN, WRONG_PIN };

static void load_policy_with(enum kind kind, const char *top, const char *more)
{
	char tool_hex[65], shell_hex[65], binaries[4 * PATH_MAX], text[6 * PATH_MAX];

	world_sha256(tool, tool_hex);
	world_sha256(shell, shell_hex);
	if (kind == WRONG_PIN) {
		memset(tool_hex, '5', 64);
		memset(shell_hex, '5', 64);
	}
	if (kind == GLOB)
		snprintf(binaries, sizeof(binaries), "{ path: \"%s/one-*/*\"%s }", world.scratch,
			 more);
	else
		snprintf(binaries, sizeof(binaries),
			 "{ path: %s, sha256: %s%s }, { path: %s, sha256: %s%s }", tool, tool_hex,
			 more, shell, shell_hex, more);
	snprintf(text, sizeof(text),
		 "version: 1\n"
		 "%s"
		 "network_policies:\n"
		 "  open:\n"
		 "    endpoints:\n"
		 "      - { cidr: 127.0.0.1/32, port: %u, allow_reserved: true }\n"
		 "      - { cidr: 127.0.0.1/32, port: %u, transport: udp, allow_reserved: true }\n"
		 "    listen: [{ port: 8080 }, { port: 8081 }]\n"
		 "    binaries: [%s]\n",
		 top, guarded.open.port, guarded.open_udp.port, binaries);
	guarded_write(text);
}

static void load_policy(enum kind kind)
{
	load_policy_with(kind, "", "");
}

/* One run for all: starting one takes its time. Every line connects once. */
static const char shapes[] = "$T tail --server $A;"
			     "$D/script;"
			     "$D/env-script;"
			     "$T vfork-exec --server $A;"
			     "$T posix-spawn --server $A;"
			     "$T thread-exec --server $A;"
			     "$T thread-connect --server $A;"
			     "$T fd-exec --server $A;"
			     "$T double-fork --server $A;"
			     /* What was granted has gone when its child connects. */
			     "$S -c \"exec $O tail --server $A\";"
			     "env $T tcp-send --via fastopen --server $A;"
			     "env env $T tcp-send --via fastopen-sendmsg --server $A;";
#define CONNECTIONS 12

/* These never call connect(). Each is a lineage that did nothing before: env adds itself. */
static const char datagrams[] = "$T do socket=udp sendto=$U;"
				"env env env $T udp-send --via sendmsg --server $U;"
				"env env env env $T udp-send --via sendmmsg --server $U;";
#define DATAGRAMS 3

/* Another binary; another port; another binary that a granted one has not started. */
static const char denied[] = "$O tail --server $A; $O do socket=udp sendto=$U;"
			     "$T tail --server $X; $T do socket=udp sendto=$Y;"
			     "$O posix-spawn --server $A; true";

static void run(const char *hold, const char *commands)
{
	char script[8 * PATH_MAX];
	struct load load;

	snprintf(script, sizeof(script), "D=%s T=%s S=%s O=%s A=%s U=%s X=%s Y=%s; %s",
		 world.scratch, tool, shell, other, guarded.open.text, guarded.open_udp.text,
		 guarded.shut[OTHER_PORT].text, guarded.shut_udp[OTHER_ADDR].text, commands);
	GUARDED_RUN(&load, "--hold", hold, "--", "/bin/sh", "-c", script);
	load_free(&load);
}

static void expect_granted(const char *hold, enum kind kind)
{
	char commands[4096];

	load_policy(kind);
	snprintf(commands, sizeof(commands), "%s%s%s", datagrams, shapes, denied);
	run(hold, commands);
	cr_expect_eq(sink_take(&guarded.open), CONNECTIONS, "--hold %s, kind %d", hold, kind);
	cr_expect_eq(sink_take(&guarded.open_udp), DATAGRAMS, "--hold %s, kind %d", hold, kind);
	cr_expect_eq(guarded_leaks(), 0, "--hold %s, kind %d", hold, kind);
}

static void expect_denied(const char *hold)
{
	char commands[4096];

	load_policy(WRONG_PIN);
	snprintf(commands, sizeof(commands), "%s%strue", datagrams, shapes);
	run(hold, commands);
	cr_expect_eq(sink_take(&guarded.open), 0, "--hold %s", hold);
	cr_expect_eq(sink_take(&guarded.open_udp), 0, "--hold %s", hold);
}

Test(hold, automatic)
{
	make_files();
	expect_granted("auto", GLOB);
}

Test(hold, at_exec)
{
	make_files();
	expect_granted("exec", PIN);
}

Test(hold, at_connect)
{
	make_files();
	expect_granted("connect", PIN);
	if (!in_full)
		return;
	expect_granted("connect", GLOB);
	expect_denied("connect");
}

/* Strict bits are kept from the rows that are made when a process connects, too. */
Test(hold, strict_at_connect)
{
	make_files();
	for (enum kind kind = GLOB; kind <= PIN; kind++) {
		load_policy_with(kind, "", ", strict: true");
		run("connect", "$T tail --server $A; env LD_BIND_NOW=1 $T tail --server $A;"
			       "env LD_BIND_NOW=1 $T do socket=udp sendto=$U; true");
		cr_expect_eq(sink_take(&guarded.open), 1, "kind %d", kind);
		cr_expect_eq(sink_take(&guarded.open_udp), 0, "kind %d", kind);
	}
}

/* A program that only listens makes no call that connects. */
static void expect_reachable(const char *hold, unsigned int port)
{
	char bind[32];
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *argv[] = { "sluice",     "run", "-q",     "--policy", guarded.policy,
			       "--hold",     hold,  "--",     tool,       "do",
			       "socket=tcp", bind,  "listen", "accept",   NULL };
	struct cli cli;

	snprintf(bind, sizeof(bind), "bind=0.0.0.0:%u", port);
	cli_start(&cli, NULL, argv);
	cli_await(&cli, "verb=listen");
	cr_expect_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0, "--hold %s", hold);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cli_free(&cli);
}

Test(hold, listening)
{
	make_files();
	/* Another port each time: that of a server that closes first is taken for a while. */
	load_policy(PIN);
	expect_reachable("connect", 8080);
	if (!in_full)
		return;
	load_policy(GLOB);
	expect_reachable("connect", 8081);
}

Test(hold, what_can_not_be)
{
	struct cli cli;

	make_files();
	load_policy(GLOB);
	CLI(&cli, "run", "--hold", "connect", "--", "true");
	cli_expect_error(&cli, 125, "--hold connect needs a policy");
	cli_free(&cli);
	CLI(&cli, "run", "--policy", guarded.policy, "--hold", "connect", "--io-uring", "--",
	    "true");
	cli_expect_error(&cli, 125, "io_uring");
	cli_free(&cli);
	load_policy_with(GLOB, "integrity: first-use\n", "");
	CLI(&cli, "run", "--policy", guarded.policy, "--hold", "connect", "--", "true");
	cli_expect_error(&cli, 125, "first-use");
	cli_free(&cli);
}
