/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* S13, S14: what the agent's log and the command make of many denials, and of bad names. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"
#include "system/world.h"

TestSuite(agent_log, .init = agent_up, .fini = agent_down, .timeout = 120);

#define EQUAL 1000
#define DIFFERENT 10000
#define LINES_MAX 64 /* user/agent/decisions.c: at once, and one more a second */

static struct box box;

/* In a member: connections that are denied at once; 0 when all were. */
static int connect_all(unsigned int port, unsigned int count, bool other_ports)
{
	for (unsigned int i = 0; i < count; i++) {
		_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockaddr_in to = { .sin_family = AF_INET,
					  .sin_port = htons((uint16_t)port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

		if (other_ports)
			to.sin_port = htons((uint16_t)(port + i));
		if (!connect(fd, (struct sockaddr *)&to, sizeof(to)) || errno != EACCES)
			return 1;
	}
	return 0;
}

static void denied(unsigned int port, unsigned int count, bool other_ports)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(sl_cgroup_enter(box.cgroup, 0, NULL) ? 2
							   : connect_all(port, count, other_ports));
	cr_expect_eq(held_wait(pid), 0);
}

/* Lines about connections to this port, or to any of 127.0.0.1. */
static unsigned int lines(const char *text)
{
	char *log = agent_log();
	unsigned int n = text_count(log, text);

	free(log);
	return n;
}

static bool has_line(void *arg)
{
	return lines(arg) > 0;
}

static long resident_kib(pid_t pid)
{
	char path[64], *text, *at;
	long kib;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	text = agent_text(path);
	at = strstr(text, "VmRSS:");
	cr_assert_not_null(at);
	kib = atol(at + strlen("VmRSS:"));
	free(text);
	return kib;
}

Test(agent_log, many_denials)
{
	pid_t worker = agent_worker();
	long before;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	/* The first is told at once, the others with their number, in a minute. */
	denied(60001, 1, false);
	cr_assert(eventually(has_line, "127.0.0.1:60001"));
	denied(60001, EQUAL - 1, false);
	before = resident_kib(worker);
	denied(40000, DIFFERENT, true);
	/* At the end of a look that has seen them all. */
	denied(60002, 1, false);
	cr_assert(eventually(has_line, "more kinds of denials"));
	cr_expect_eq(lines("127.0.0.1:60001"), 1);
	cr_expect_leq(lines("127.0.0.1:4"), LINES_MAX + 10);
	cr_expect_eq(lines("more kinds of denials"), 1);
	/* A row of the kernel's table and one of the log's, and no more. */
	cr_expect_lt(resident_kib(worker) - before, 8192);
	box_free(&box);
}

/* Every byte that is no part of a line of text, or could be taken for its end. */
static const char bad_name[] = "a\n\"\x1b[31m\\\xff\xc3(\xe2\x80\xae\t\x7f";

static void expect_plain(const char *text, const char *what)
{
	for (const char *at = text; *at; at++)
		cr_assert(*at == '\n' || isprint((unsigned char)*at), "%s has byte %02x", what,
			  (unsigned char)*at);
}

static void expect_escaped(const char *const words[])
{
	const char *argv[12] = { "sluice", "-j", "--set", agent.set, "--agent", agent.socket };
	struct json_object *json;
	struct cli cli;
	size_t n = 6;

	while (*words)
		argv[n++] = *words++;
	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	/* Strict: not UTF-8 is no JSON. */
	json = json_of(cli.out);
	cr_expect_not_null(strstr(cli.out, "\\u001b"), "%s", cli.out);
	json_object_put(json);
	cli_free(&cli);
	/* The same as a table. */
	argv[1] = "-q";
	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	expect_plain(cli.out, argv[n - 2]);
	cli_free(&cli);
}

static char *bad_program(void)
{
	static char path[256];
	struct cli cli;
	const char *const argv[] = { "/bin/cp", getenv("SL_LOAD"), path, NULL };

	snprintf(path, sizeof(path), "%s/%s", agent.dir, bad_name);
	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	cr_assert_eq(cli.status, 0, "%s", cli.err);
	cli_free(&cli);
	return path;
}

/* The workload's names in the log, in tables and as JSON. */
Test(agent_log, bad_names)
{
	const char *const argv[] = { bad_program(), "tcp-send",        "--connect-only",
				     "--server",    "127.0.0.1:60003", NULL };
	char *log;

	box_make(&box, NULL, argv);
	box_attach(&box, agent_policy(false, 1), NULL);
	box_go(&box);
	cr_expect_neq(box_wait(&box), 0);
	cr_assert(eventually(has_line, "127.0.0.1:60003"));
	log = agent_log();
	expect_plain(log, "the log");
	cr_expect_not_null(strstr(log, "\\x1b[31m"), "%s", log);
	free(log);
	expect_escaped((const char *const[]){ "decision", "list", NULL });
	expect_escaped((const char *const[]){ "exe", "list", NULL });
	box_free(&box);
}
