/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Leaks. In a sandbox sl-load runs without the leak checker, which forks a tracer: a process
 * more than the truth says. So each of its subcommands is run once more outside, with it;
 * and so are the commands of sluice. What it finds is an exit code, and a report.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "system/expect.h"

TestSuite(leaks, .init = world_up, .fini = world_down, .timeout = 300);

#define SKIPPED 77

/* TCP and UDP stand for servers, DIR for the scratch directory. */
static const char *const loads[] = {
	"tcp-send --server TCP --bytes 100 --count 2 --half-close",
	"tcp-idle --server TCP --count 3",
	"tcp-server --until-eof --listen 127.0.0.1:0",
	"tcp-server --until-eof --listen 127.0.0.1:0 --no-accept",
	"tcp-exit-server --until-eof --listen 127.0.0.1:0",
	"tcp-churn --server TCP --count 3",
	"tcp-fail --kind refused --count 3",
	"tcp-exit --server TCP --count 3",
	"self-connect --bytes 10",
	"port-share --server TCP --bind 127.0.0.1:0 --count 2",
	"udp-send --server UDP --bytes 10 --count 3",
	"udp-connect --server UDP",
	"udp-server --until-eof --listen 127.0.0.1:0",
	"raw-send --server 127.0.0.1:0 --bytes 10",
	"raw-server --until-eof --listen 127.0.0.1:0",
	"ping-send --server 127.0.0.1:0 --own-netns",
	"packet-send --bytes 10",
	"packet-server --until-eof",
	"tail --server TCP",
	"sleep 0",
	"exec-chain a b --dir DIR --server TCP",
	"exec-chain c d --dir DIR --fork",
	"self-exec-loop 3",
	"unlink-self --dir DIR",
	"memfd-exec",
	"fd-exec",
	"vfork-exec",
	"posix-spawn",
	"setuid 0",
	"double-fork",
	"orphan 0",
	"pid-reuse",
	"spawn-storm --count 3",
	"thread-connect --server TCP",
	"thread-exec",
	"threads --count 3 --jobs 3",
	"fork-exec-fd --server TCP --bytes 10 --dir DIR",
	"pass-fd --server TCP --bytes 10",
};

/*
 * The last two run these; or there the checker can't work: without /proc, and after a pid
 * namespace of its own has ended, in which it can't fork. `do` and `race` end by what the
 * guard answers, which there is none of outside.
 */
static const char *const not_run[] = {
	"fd-send", "fd-receive", "chroot-exec", "ns-pid", "do", "race",
};

static void append(char *line, size_t size, const char *text, size_t len)
{
	size_t have = strlen(line);

	cr_assert_lt(have + len, size);
	memcpy(line + have, text, len);
	line[have + len] = '\0';
}

/* Puts a value where its name stands in the line. */
static void fill(char *line, size_t size, const char *name, const char *value)
{
	char rest[512], *at = strstr(line, name);

	if (!at)
		return;
	snprintf(rest, sizeof(rest), "%s", at + strlen(name));
	*at = '\0';
	append(line, size, value, strlen(value));
	append(line, size, rest, strlen(rest));
}

static bool is_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_run); i++)
		if (!strcmp(not_run[i], name))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		if (strcspn(loads[i], " ") == strlen(name) &&
		    !strncmp(loads[i], name, strlen(name)))
			return true;
	return false;
}

Test(leaks, workload)
{
	char tcp[32], udp[32], line[512];
	struct load tcp_server, udp_server, load;

	snprintf(tcp, sizeof(tcp), "127.0.0.1:%u",
		 server_start(&tcp_server, "tcp-server --quiet --count 1000"));
	snprintf(udp, sizeof(udp), "127.0.0.1:%u",
		 server_start(&udp_server, "udp-server --count 1000"));
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		int code;

		snprintf(line, sizeof(line), "%s", loads[i]);
		fill(line, sizeof(line), "TCP", tcp);
		fill(line, sizeof(line), "UDP", udp);
		fill(line, sizeof(line), "DIR", world.scratch);
		load_start(&load, OUTSIDE, "%s", line);
		code = load_end(&load);
		if (code == SKIPPED)
			cr_log_info("not run, the kernel lacks it: %s", line);
		else
			cr_expect_eq(code, 0, "%s: exit %d: %s", line, code,
				     load.text ? load.text : "");
		load_free(&load);
	}
	cr_expect_eq(load_end(&tcp_server), 0);
	cr_expect_eq(load_end(&udp_server), 0);
	load_free(&tcp_server);
	load_free(&udp_server);
}

/* The list above is whole: what is added to sl-load has to be added there. */
Test(leaks, workload_is_all_of_it)
{
	struct load help;
	unsigned int n = 0;

	load_run(&help, OUTSIDE, "help");
	for (char *line = strstr(help.text, "subcommands:"), *next; line; line = next) {
		char name[64];

		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		if (strncmp(line, "  ", 2) != 0 || sscanf(line + 2, "%63[a-z0-9-]", name) != 1)
			continue;
		n++;
		cr_expect(is_known(name), "%s is not in the list", name);
	}
	cr_expect_gt(n, 30);
	load_free(&help);
}

/* Words of `sluice`, separated by blanks; the set is the world's. */
static void run_sluice(const char *words)
{
	char line[256], *argv[32] = { getenv("SLUICE"), "--set", world.dir }, *save = NULL;
	struct load load;
	int n = 3, code;

	cr_assert_not_null(argv[0], "SLUICE names the command");
	snprintf(line, sizeof(line), "%s", words);
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	load_exec(&load, OUTSIDE, argv);
	code = load_end(&load);
	cr_expect_eq(code, 0, "sluice %s: exit %d: %.400s", words, code,
		     load.text ? load.text : "");
	load_free(&load);
}

Test(leaks, commands)
{
	static const char *const commands[] = {
		"help",
		"version",
		"completion bash",
		"feature probe",
		"status",
		"sandbox list",
		"sock list",
		"proc list",
		"exe list",
		"exe sweep",
		"counter list",
		"-j exe list",
		"-j sock list",
		"-j proc list",
		"event watch --time 1s",
		"run -- /bin/true",
		"run --events /dev/null -- /bin/true",
	};
	struct load server, idle;

	load_start(&idle, INSIDE, "tcp-idle --server 127.0.0.1:%u --count 2 --timeout 280",
		   server_start(&server, "tcp-server --quiet --count 1000"));
	load_await(&idle, "open", 2);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		run_sluice(commands[i]);
	cr_expect_eq(load_end(&idle), 0);
	load_end(&server);
	load_free(&server);
	load_free(&idle);
}
