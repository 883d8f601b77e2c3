/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a policy denies, end to end: the right reason and path, exact counts, and nothing
 * told of what is an application's own error. Truth comes from what ran.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/cli.h"
#include "system/world.h"

TestSuite(decision, .init = world_up, .fini = world_down, .timeout = 120);

static char policy[PATH_MAX], events[PATH_MAX];

/* An entry for 127.0.0.1:`port`, and the binaries as YAML. */
static void write_policy(unsigned int port, const char *binaries)
{
	FILE *file;

	snprintf(policy, sizeof(policy), "%s/policy.yaml", world.scratch);
	snprintf(events, sizeof(events), "%s/events", world.scratch);
	file = fopen(policy, "we");
	cr_assert_not_null(file);
	fprintf(file,
		"version: 1\nnetwork_policies:\n  here:\n    endpoints:\n"
		"      - {cidr: 127.0.0.1/32, port: %u, allow_reserved: true}\n"
		"    binaries: [%s]\n",
		port, binaries);
	fclose(file);
}

static void run_policy(struct cli *cli, const char *script)
{
	CLI(cli, "run", "--policy", policy, "--events", events, "--", "bash", "-c", script);
}

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	cr_assert_not_null(file);
	cr_assert_geq(getdelim(&text, &size, '\0', file), 0);
	fclose(file);
	return text;
}

/* Sum of the counts of decisions for this reason (NULL: any), path and port (0: any). */
static uint64_t denied(const char *reason, const char *path, int64_t port)
{
	char *text = read_all(events);
	const char *at = text;
	struct json_object *line;
	uint64_t sum = 0;

	while ((line = json_line(&at))) {
		struct json_object *to = json_at(line, "remote.port");
		const char *exe;

		if (!strcmp(json_text(line, "event"), "decision")) {
			exe = json_at(line, "process.exe.path")
				      ? json_text(line, "process.exe.path")
				      : "";
			if ((!reason || !strcmp(json_text(line, "reason"), reason)) &&
			    (!path || !strcmp(exe, path)) &&
			    (!port || json_object_get_int64(to) == port))
				sum += json_object_get_uint64(json_at(line, "count"));
		}
		json_object_put(line);
	}
	free(text);
	return sum;
}

static void write_script(char path[96], const char *name, const char *interpreter,
			 unsigned int port)
{
	FILE *file;

	snprintf(path, 96, "%s/%s", world.scratch, name);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	fprintf(file, "#!%s\necho >/dev/tcp/127.0.0.1/%u && echo %s\n", interpreter, port, name);
	fclose(file);
	cr_assert_eq(chmod(path, 0755), 0);
}

/* `script` narrows: the interpreter has the rule's bits for that script only. */
Test(decision, script)
{
	char one[96], other[96], binaries[256], words[256];
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	struct cli cli;

	write_script(one, "one", "/usr/bin/bash", port);
	write_script(other, "other", "/usr/bin/bash", port);
	snprintf(binaries, sizeof(binaries), "{path: /usr/bin/bash, script: %s}", one);
	write_policy(port, binaries);
	snprintf(words, sizeof(words), "%s; %s; true", one, other);
	run_policy(&cli, words);
	cr_expect_str_eq(cli.out, "one\n", "%s", cli.err);
	cr_expect_eq(denied("binary", "/usr/bin/bash", port), 1);
	cr_expect_eq(denied(NULL, NULL, 0), 1);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

/*
 * Wildcards within the paths of scripts and of their interpreters: each in its turn, and as
 * the kernel will record the name, whichever way it was passed.
 */
Test(decision, script_wildcards)
{
	static const char *const paths[] = { "/usr/bin/bash", "/usr/b*/bash" };
	char one[96], other[96], binaries[256], words[512];
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	struct cli cli;

	write_script(one, "tool-one", "/usr/bin/bash", port);
	write_script(other, "other", "/usr/bin/bash", port);
	snprintf(words, sizeof(words), "%s; %s; cd %s; ./tool-one; cd /; %s; .%s; true", one, other,
		 world.scratch, other, one);
	for (int i = 0; i < 2; i++) {
		snprintf(binaries, sizeof(binaries), "{path: '%s', script: '%s/t*-one'}", paths[i],
			 world.scratch);
		write_policy(port, binaries);
		run_policy(&cli, words);
		cr_expect_str_eq(cli.out, "tool-one\ntool-one\ntool-one\n", "%s", cli.err);
		cr_expect_eq(denied("binary", "/usr/bin/bash", port), 2);
		cr_expect_eq(denied(NULL, NULL, 0), 2);
		cli_free(&cli);
	}
	/* The interpreter by a wildcard, the script by its name. */
	snprintf(binaries, sizeof(binaries), "{path: '/usr/b*/bash', script: %s}", other);
	write_policy(port, binaries);
	run_policy(&cli, words);
	cr_expect_str_eq(cli.out, "other\nother\n", "%s", cli.err);
	cr_expect_eq(denied("binary", "/usr/bin/bash", port), 3);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

/*
 * Behind env the script's name goes on to what env becomes: not from argv, not by another
 * program of that name, and not to what is executed next.
 */
Test(decision, script_by_env)
{
	char one[96], other[96], copied[96], env[PATH_MAX], interpreter[PATH_MAX + 8];
	char binaries[256], words[1024];
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	struct cli cli;

	world_copy_of("/usr/bin/env", "env", env);
	snprintf(interpreter, sizeof(interpreter), "%s bash", env);
	write_script(one, "one", "/usr/bin/env -S PATH=/none:/usr/bin bash", port);
	write_script(other, "other", "/usr/bin/env bash", port);
	write_script(copied, "copied", interpreter, port);
	snprintf(binaries, sizeof(binaries),
		 "{path: /usr/bin/bash, script: %s}, {path: /usr/bin/bash, script: %s}", one,
		 copied);
	write_policy(port, binaries);
	snprintf(
		words, sizeof(words),
		"%s && echo by-env; %s; %s; env bash %s; /usr/bin/bash %s; (exec -a %s bash %s); true",
		one, other, copied, one, one, one, one);
	run_policy(&cli, words);
	cr_expect_str_eq(cli.out, "one\nby-env\n", "%s", cli.err);
	cr_expect_eq(denied("binary", "/usr/bin/bash", port), 5);
	cr_expect_eq(denied(NULL, NULL, 0), 5);
	cli_free(&cli);
	snprintf(binaries, sizeof(binaries),
		 "{path: /usr/bin/bash, script: %s, descendants: false}", one);
	write_policy(port, binaries);
	snprintf(words, sizeof(words), "printf 'exec bash %s\\n' >>%s; %s; true", other, one, one);
	run_policy(&cli, words);
	cr_expect_str_eq(cli.out, "one\n", "%s", cli.err);
	cr_expect_eq(denied("binary", "/usr/bin/bash", port), 1);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

/* P1, P2, P3, P9 */
Test(decision, reasons)
{
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	char script[512];
	struct cli cli;

	write_policy(port, "{path: /usr/bin/bash}");
	snprintf(script, sizeof(script),
		 "echo >/dev/tcp/127.0.0.1/%u && echo allowed; echo >/dev/tcp/192.0.2.1/%u; "
		 "echo >/dev/tcp/127.0.0.1/1; echo >/dev/tcp/169.254.169.254/80; true",
		 port, port);
	run_policy(&cli, script);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_str_eq(cli.out, "allowed\n");
	cr_expect_eq(denied("endpoint", "/usr/bin/bash", port), 1);
	cr_expect_eq(denied("reserved-address", "/usr/bin/bash", 1), 1);
	cr_expect_eq(denied("reserved-address", "/usr/bin/bash", 80), 1);
	cr_expect_eq(denied(NULL, NULL, 0), 3);
	cr_expect_not_null(strstr(cli.err, "add to 'here': endpoints: [{cidr: \"192.0.2.1/32\""),
			   "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "\nsluice: 3 denied\n"), "%s", cli.err);
	cli_free(&cli);
	write_policy(port, "{path: /usr/bin/true}");
	run_policy(&cli, script);
	cr_expect_str_eq(cli.out, "");
	cr_expect_eq(denied("binary", "/usr/bin/bash", port), 1);
	cr_expect_eq(text_count(cli.err, "add to 'here': binaries: [{path: /usr/bin/bash}]"), 1,
		     "%s", cli.err);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

/* P4 */
Test(decision, links_in_the_policy)
{
	char real[PATH_MAX], link[PATH_MAX], dir[PATH_MAX], binaries[3 * PATH_MAX];
	char cmd[PATH_MAX + 64];
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	struct cli cli;

	world_copy_of("/usr/bin/bash", "real-shell", real);
	snprintf(link, sizeof(link), "%s/linked", world.scratch);
	snprintf(dir, sizeof(dir), "%s/directory", world.scratch);
	cr_assert_eq(symlink("real-shell", link), 0);
	cr_assert_eq(symlink(".", dir), 0);
	snprintf(cmd, sizeof(cmd), "%s -c 'echo >/dev/tcp/127.0.0.1/%u && echo allowed'", real,
		 port);
	for (int i = 0; i < 2; i++) {
		snprintf(binaries, sizeof(binaries), "{path: %s%s}", i ? dir : link,
			 i ? "/real-shell" : "");
		write_policy(port, binaries);
		run_policy(&cli, cmd);
		cr_expect_str_eq(cli.out, "allowed\n", "%s", cli.err);
		cr_expect_eq(denied(NULL, NULL, 0), 0);
		cr_expect_not_null(strstr(cli.err, "real-shell'\n"), "both spellings: %s", cli.err);
		cli_free(&cli);
	}
	load_end(&server);
	load_free(&server);
}

/* Another name of `file`, in directories that make its path `len` bytes long. */
static void long_path(char path[PATH_MAX], size_t len, const char *file)
{
	size_t at = (size_t)snprintf(path, PATH_MAX, "%s/%zu-", world.scratch, len);

	for (; at < len; at++) {
		bool slash = at % 200 == 0 && at + 1 < len;

		if (slash) {
			path[at] = '\0';
			cr_assert_eq(mkdir(path, 0755), 0, "%s", strerror(errno));
		}
		path[at] = slash ? '/' : 'p';
	}
	path[len] = '\0';
	cr_assert_eq(link(file, path), 0, "%s", strerror(errno));
}

/* On both sides of what the kernel matches, and the longest that there is. */
Test(decision, long_paths)
{
	static const size_t lengths[] = { 250, 251, 256, 4095 };
	char shell[PATH_MAX], path[PATH_MAX], binaries[PATH_MAX + 64], words[PATH_MAX + 128];
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	struct cli cli;

	world_copy_of("/usr/bin/bash", "shell", shell);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		long_path(path, lengths[i], shell);
		snprintf(binaries, sizeof(binaries), "{path: %s}", path);
		snprintf(words, sizeof(words),
			 "%s -c 'echo >/dev/tcp/127.0.0.1/%u && echo allowed'; "
			 "echo >/dev/tcp/127.0.0.1/%u; true",
			 path, port, port);
		write_policy(port, binaries);
		run_policy(&cli, words);
		cr_expect_str_eq(cli.out, "allowed\n", "%zu bytes: %s", lengths[i], cli.err);
		cr_expect_eq(denied("binary", "/usr/bin/bash", port), 1);
		cr_expect_eq(denied(NULL, NULL, 0), 1);
		cli_free(&cli);
	}
	load_end(&server);
	load_free(&server);
}

/* P8: other bytes at the path of a pin. */
Test(decision, bytes_that_were_replaced)
{
	static const char *const pin =
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	char binaries[256];
	struct cli cli;

	snprintf(binaries, sizeof(binaries), "{path: /usr/bin/bash, sha256: %s}", pin);
	write_policy(1, binaries);
	run_policy(&cli, "echo >/dev/tcp/127.0.0.1/1; sha256sum /usr/bin/bash");
	cr_expect_eq(denied("integrity", "/usr/bin/bash", 1), 1, "%s", cli.err);
	cr_expect_eq(denied(NULL, NULL, 0), 1);
	cli.out[64] = '\0';
	cr_expect_not_null(strstr(cli.err, cli.out), "%s not in %s", cli.out, cli.err);
	cr_expect_not_null(strstr(cli.err, pin), "%s", cli.err);
	cli_free(&cli);
}

/* Fault 1, N2 to N4: thousands of ENOTCONN and ESRCH, and few denials among them. */
Test(decision, only_denials_are_told)
{
	static const char *const script =
		"python=$(ls /usr/bin/python3.* | grep -E '3[.][0-9]+$' | head -n 1); "
		"exec $python -c '\n"
		"import errno, os, socket\n"
		"pid = os.fork()\n"
		"if not pid: os._exit(0)\n"
		"os.waitpid(pid, 0)\n"
		"n = 0\n"
		"for i in range(5000):\n"
		"  s = socket.socket()\n"
		"  try: s.getpeername()\n"
		"  except OSError as e: n += e.errno == errno.ENOTCONN\n"
		"  try: os.kill(pid, 0)\n"
		"  except OSError as e: n += e.errno == errno.ESRCH\n"
		"  if i % 1000 == 0:\n"
		"    try: s.connect((\"192.0.2.1\", 443))\n"
		"    except OSError as e: n += e.errno == errno.EACCES\n"
		"  s.close()\n"
		"print(n)'";
	struct cli cli;

	if (access("/usr/bin/python3", X_OK))
		cr_skip_test("no /usr/bin/python3");
	write_policy(1, "{path: /usr/bin/true}");
	run_policy(&cli, script);
	cr_expect_str_eq(cli.out, "10005\n", "%s", cli.err);
	cr_expect_eq(denied("endpoint", NULL, 443), 5);
	cr_expect_eq(denied(NULL, NULL, 0), 5);
	cr_expect_eq(text_count(cli.err, "denied: "), 1, "%s", cli.err);
	cr_expect_eq(text_count(cli.err, "warning"), 1, "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "\nsluice: 5 denied\n"), "%s", cli.err);
	cli_free(&cli);
}

/* Fault 3: clients that are denied and gone at once. */
Test(decision, clients_that_exit_at_once, .timeout = 300)
{
	struct cli cli;

	write_policy(1, "{path: /usr/bin/true}");
	run_policy(&cli, "for ((i = 0; i < 300; i++)); do (echo >/dev/tcp/192.0.2.1/443) "
			 "2>/dev/null; done; true");
	cr_expect_eq(cli.status, 0);
	cr_expect_eq(denied("endpoint", "/usr/bin/bash", 443), 300);
	cr_expect_eq(denied(NULL, NULL, 0), 300);
	cr_expect_not_null(strstr(cli.err, "\nsluice: 300 denied\n"), "%s", cli.err);
	cli_free(&cli);
}
