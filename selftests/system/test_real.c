/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Real programs, a server on loopback under a name with two addresses, and a policy that is
 * made of nothing but the advice of denials, taken literally: in a few rounds it works, and
 * allows no more than what the program does. tools/policy-real.sh has real servers.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/guarded.h"

#define ROUNDS_MAX 4

static struct load server;
static unsigned int port;
static char hosts[PATH_MAX], policy[PATH_MAX], entry[2048];

static const char server_code[] =
	"import http.server as h, os, sys, threading\n"
	"os.chdir(sys.argv[1])\n"
	"s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
	"print('what=listening port=%d' % s.server_port, flush=True)\n"
	"threading.Thread(target=s.serve_forever, daemon=True).start()\n"
	"sys.stdin.read()\n";

static void write_file(const char *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void write_file(const char *path, const char *fmt, ...)
{
	FILE *file = fopen(path, "we");
	va_list ap;

	cr_assert_not_null(file, "%s", path);
	va_start(ap, fmt);
	vfprintf(file, fmt, ap);
	va_end(ap);
	fclose(file);
}

static void up(void)
{
	char *argv[] = { "/usr/bin/python3", "-c", (char *)server_code, world.scratch, NULL };

	guarded_up();
	snprintf(hosts, sizeof(hosts), "%s/hosts", world.scratch);
	snprintf(policy, sizeof(policy), "%s/learned.yaml", world.scratch);
	write_file(hosts, "127.0.0.1 real.test\n127.0.0.2 real.test\n");
	if (access(argv[0], X_OK))
		return;
	load_exec(&server, OUTSIDE, argv);
	load_await(&server, "listening", 1);
	port = (unsigned int)fact_u64(fact_next(&server, NULL, "listening"), "port");
}

static void down(void)
{
	if (port) {
		load_end(&server);
		load_free(&server);
	}
	guarded_down();
}

TestSuite(real, .init = up, .fini = down, .timeout = 120);

/* The name is known in mounts of the test's own. */
static void own_hosts(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL))
		_exit(125);
}

/* Adds to the list `key` of the entry, as a person would who was told so. */
static void extend(const char *key, const char *list)
{
	char *at = strstr(entry, key), rest[sizeof(entry)];

	cr_assert_not_null(at, "no %s in %s", key, entry);
	at += strlen(key);
	snprintf(rest, sizeof(rest), "%s", at);
	snprintf(at, sizeof(entry) - (size_t)(at - entry), "%.*s, %s", (int)strcspn(list, "\n") - 1,
		 list, rest);
}

/* Follows each line of advice; how many there were. */
static unsigned int follow(const char *err)
{
	static const char fresh[] = "; add an entry: ", more[] = "; add to 'learned': ";
	unsigned int n = 0;
	const char *at;

	at = strstr(err, fresh);
	if (at && !entry[0]) {
		at += strlen(fresh);
		snprintf(entry, sizeof(entry), "%.*s", (int)strcspn(at, "\n"), at);
		n++;
	}
	for (at = err; (at = strstr(at, more)); n++) {
		at += strlen(more);
		if (!strncmp(at, "endpoints: [", 12))
			extend("endpoints: [", at + 12);
		else if (!strncmp(at, "binaries: [", 11))
			extend("binaries: [", at + 11);
		else
			cr_assert_fail("unknown advice: %s", at);
	}
	return n;
}

static void learn(const char *const command[])
{
	const char *argv[16] = { "sluice", "run", "--policy", policy, "--" };
	unsigned int n = 5, rounds = 0;
	struct cli cli;
	bool done = false;

	if (access("/usr/bin/python3", X_OK))
		cr_skip_test("no /usr/bin/python3 to serve");
	if (access(command[0], X_OK))
		cr_skip_test("no %s", command[0]);
	while (*command)
		argv[n++] = *command++;
	entry[0] = '\0';
	for (; !done && rounds < ROUNDS_MAX; rounds++) {
		write_file(policy, "version: 1\n");
		if (entry[0])
			write_file(policy, "version: 1\nnetwork_policies:\n  learned: %s\n", entry);
		cli_start(&cli, own_hosts, argv);
		cli_end(&cli);
		done = !cli.status;
		cr_expect(done ? !follow(cli.err) : follow(cli.err) > 0, "round %u, status %d: %s",
			  rounds, cli.status, cli.err);
		cli_free(&cli);
	}
	cr_expect(done, "not after %u rounds: %s", rounds, entry);
	cr_expect(rounds > 1, "not denied without a rule");
	cr_expect_null(strstr(entry, "udp"), "more than it needs: %s", entry);
	cr_expect_eq(guarded_leaks(), 0);
}

static const char *url(const char *path)
{
	static char text[128];

	snprintf(text, sizeof(text), "http://real.test:%u/%s", port, path);
	return text;
}

Test(real, curl)
{
	learn((const char *const[]){ "/usr/bin/curl", "-fsS", "-m", "20", url("hosts"), NULL });
}

/* Its helper git-remote-http is what connects. */
Test(real, git)
{
	struct load load;

	if (port && !access("/usr/bin/git", X_OK)) {
		load_shell(&load, OUTSIDE,
			   "git init -q --bare %s/x.git && cd %s/x.git && git update-server-info",
			   world.scratch, world.scratch);
		load_free(&load);
	}
	learn((const char *const[]){ "/usr/bin/git", "ls-remote", url("x.git"), NULL });
}

/* Threads of its own look names up. */
Test(real, node)
{
	learn((const char *const[]){ "/usr/bin/node", "-e",
				     "fetch(process.argv[1]).then(r => process.exit(+!r.ok),"
				     " () => process.exit(1))",
				     url("hosts"), NULL });
}
