/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * B2, B3, B7, B8, B10, B15, B16, B19, B20: `sluice run`, where the filter and the
 * containment belong to it. One run for many calls: starting one takes its time.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/guarded.h"

TestSuite(bypass_run, .init = guarded_up, .fini = guarded_down, .timeout = 60);

#define LOAD getenv("SL_LOAD")

/* "VERB=ADDR" in a buffer of its own for each of a few calls. */
static const char *word(const char *verb, const char *arg)
{
	static char words[16][128];
	static unsigned int n;
	char *text = words[n++ % 16];

	snprintf(text, sizeof(words[0]), "%s=%s", verb, arg);
	return text;
}

#define EXPECT_DID(load, verb, n, errno_name)                                            \
	cr_expect_str_eq(did_errno((load), (verb), (n)), (errno_name), "%s: %s", (verb), \
			 did_errno((load), (verb), (n)))

/* B2, B3: without io_uring; what no hook would see is refused, the rest as ever. */
Test(bypass_run, io_uring_is_off)
{
	struct load load;

	cr_expect_eq(GUARDED_RUN(&load, "--", LOAD, "do", "uring-socket=17.3.0", "socket=tcp",
				 word("uring-connect", guarded.open.text),
				 word("x32-connect", guarded.open.text),
				 word("connect", guarded.open.text)),
		     0);
	EXPECT_DID(&load, "uring-socket", 0, "ENOSYS");
	EXPECT_DID(&load, "uring-connect", 0, "ENOSYS");
	EXPECT_DID(&load, "x32-connect", 0, "ENOSYS");
	EXPECT_DID(&load, "connect", 0, "0");
	cr_expect_eq(sink_take(&guarded.open), 1);
	load_free(&load);
}

/* B2 with --io-uring; B19: the raw kinds need a capability that the command has not. */
Test(bypass_run, io_uring_is_on)
{
	struct load load;

	cr_expect_eq(
		GUARDED_RUN(&load, "--io-uring", "--", LOAD, "do", "uring-socket=17.3.0",
			    "uring-socket=44.3.0", "uring-socket=2.3.255", "uring-socket=2.1.0",
			    word("uring-connect", guarded.open.text), "uring-socket=2.1.0",
			    word("uring-connect", guarded.shut[OTHER_PORT].text), "fork",
			    "socket=udp", word("uring-sendto", guarded.shut_udp[OTHER_ADDR].text)),
		0);
	EXPECT_DID(&load, "uring-socket", 0, "EPERM");
	EXPECT_DID(&load, "uring-socket", 1, "EPERM");
	cr_expect_str_neq(did_errno(&load, "uring-socket", 2), "0");
	EXPECT_DID(&load, "uring-socket", 3, "0");
	EXPECT_DID(&load, "uring-connect", 0, "0");
	EXPECT_DID(&load, "uring-connect", 1, "EACCES");
	EXPECT_DID(&load, "uring-sendto", 0, "EACCES");
	cr_expect_eq(sink_take(&guarded.open), 1);
	cr_expect_eq(guarded_leaks(), 0);
	load_free(&load);
}

/* B7: packet, vsock, XDP, raw, ping, SCTP, L2TP, Bluetooth, TIPC, key, ALG. */
Test(bypass_run, families)
{
	static const char *const refused[] = {
		"socket=17.3.768", "socket=17.2.768", "socket=40.1.0",  "socket=40.2.0",
		"socket=44.3.0",   "socket=2.3.255",  "socket=2.3.1",   "socket=2.2.1",
		"socket=10.3.58",  "socket=10.2.58",  "socket=2.1.132", "socket=2.5.132",
		"socket=2.2.115",  "socket=31.1.3",   "socket=30.1.0",  "socket=15.3.2",
		"socket=38.5.0",
	};
	const char *words[ARRAY_SIZE(refused) + 8] = { "--", LOAD, "do" };
	size_t n = 3, count = ARRAY_SIZE(refused);
	struct load load;

	for (size_t i = 0; i < count; i++)
		words[n++] = refused[i];
	/* AF_UNIX is unaffected, and so is what lists the interfaces (rtnetlink). */
	words[n++] = "socket=1.1.0";
	words[n++] = "socket=1.2.0";
	words[n++] = "socket=16.3.0";
	words[n++] = "ifaddrs";
	cr_expect_eq(guarded_run(&load, words), 0);
	for (size_t i = 0; i < count; i++)
		cr_expect_str_eq(did_errno(&load, "socket", (unsigned int)i), "EACCES", "%s: %s",
				 refused[i], did_errno(&load, "socket", (unsigned int)i));
	for (size_t i = count; i < count + 3; i++)
		EXPECT_DID(&load, "socket", (unsigned int)i, "0");
	EXPECT_DID(&load, "ifaddrs", 0, "0");
	load_free(&load);
}

/* The lines of what=length, to compare as a text. */
static char *lengths_of(const struct load *load)
{
	char *text = strdup("");
	size_t len = 0;

	for (const char *line = NULL; (line = fact_next(load, line, "length"));) {
		size_t n = strcspn(line, "\n") + 1;

		text = realloc(text, len + n + 1);
		cr_assert_not_null(text);
		memcpy(text + len, line, n);
		len += n;
		text[len] = '\0';
	}
	return text;
}

/* B8: lengths that no address has get the kernel's own answers. */
Test(bypass_run, address_lengths)
{
	_cleanup_free_ char *without = NULL, *with = NULL, *guard = NULL;
	const char *to = word("lengths", guarded.open.text);
	struct load load;

#define KINDS "socket=tcp", to, "socket=udp", to, "socket=tcp6", to, "socket=udp6", to
	load_run(&load, OUTSIDE, "do socket=tcp %s socket=udp %s socket=tcp6 %s socket=udp6 %s", to,
		 to, to, to);
	without = lengths_of(&load);
	cr_expect_eq(fact_count(&load, "length"), 4 * (8 * 4 + 1));
	load_free(&load);
	load_run(&load, INSIDE, "do socket=tcp %s socket=udp %s socket=tcp6 %s socket=udp6 %s", to,
		 to, to, to);
	guard = lengths_of(&load);
	load_free(&load);
	cr_expect_eq(GUARDED_RUN(&load, "--", LOAD, "do", KINDS), 0);
	with = lengths_of(&load);
	load_free(&load);
	cr_expect_str_eq(guard, without);
	cr_expect_str_eq(with, without);
}

/* B10 */
Test(bypass_run, empty_environment)
{
	struct load load;

	cr_expect_eq(GUARDED_RUN(&load, "--", "/usr/bin/env", "-i", LOAD, "do", "socket=tcp",
				 word("connect", guarded.shut[OTHER_PORT].text), "socket=tcp",
				 word("connect", guarded.open.text)),
		     0);
	EXPECT_DID(&load, "connect", 0, "EACCES");
	EXPECT_DID(&load, "connect", 1, "0");
	cr_expect_eq(sink_take(&guarded.open), 1);
	cr_expect_eq(guarded_leaks(), 0);
	load_free(&load);
}

static struct sink *socket_to;

/* A connected socket as descriptor 0. */
static void connected_stdin(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&socket_to->addr, sizeof(struct sockaddr_in)) ||
	    dup2(fd, STDIN_FILENO))
		_exit(98);
	close(fd);
}

/* B15 */
Test(bypass_run, inherited_socket)
{
	struct cli cli;

	socket_to = &guarded.shut[OTHER_PORT];
	CLI_BEFORE(&cli, connected_stdin, "run", "-q", "--policy", guarded.policy, "--", LOAD, "do",
		   "adopt=0", "send");
	cli_expect_error(&cli, 125, "descriptor 0");
	cli_free(&cli);
	CLI_BEFORE(&cli, connected_stdin, "run", "-q", "--pass-socket", "--policy", guarded.policy,
		   "--", LOAD, "do", "adopt=0", "send");
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_not_null(strstr(cli.out, "verb=send arg= result=1 errno=0"), "%s", cli.out);
	cli_free(&cli);
	cr_expect_eq(sink_take(socket_to), 2);
}

/* B16: refused, and mediated all the same, in a grandchild too. */
Test(bypass_run, leaving)
{
	const char *shut = word("connect", guarded.shut[OTHER_PORT].text);
	char cgroup[64];
	struct load load;

	cr_assert_eq(sl_cgroup_mount(cgroup, sizeof(cgroup), NULL), 0);
	cr_expect_eq(GUARDED_RUN(&load, "--", LOAD, "do", word("cgroup", cgroup), "netns",
				 "setns=/proc/1/ns/net", "detach", "fork", "fork", "socket=tcp",
				 shut, "socket=tcp", word("connect", guarded.open.text), "userns",
				 "socket=tcp", shut),
		     0);
	EXPECT_DID(&load, "cgroup", 0, "EACCES");
	EXPECT_DID(&load, "netns", 0, "EPERM");
	cr_expect_str_neq(did_errno(&load, "setns", 0), "0");
	EXPECT_DID(&load, "detach", 0, "EPERM");
	EXPECT_DID(&load, "connect", 0, "EACCES");
	EXPECT_DID(&load, "connect", 1, "0");
	/* Whether namespaces of one's own may be made is not ours to say. */
	EXPECT_DID(&load, "connect", 2, "EACCES");
	cr_expect_eq(sink_take(&guarded.open), 1);
	cr_expect_eq(guarded_leaks(), 0);
	load_free(&load);
}

/* B20, as root and as the user that the process outside belongs to. */
static void expect_closed(const char *user)
{
	char pid[16], pid_fd[32];
	struct load outside, load;
	const char *words[] = { "--user", user, "--", LOAD,    "do", word("poke", pid),
				NULL,     NULL, NULL, "trace", NULL };

	load_start(&outside, OUTSIDE, "do setuid=%s --until-eof socket=tcp connect=%s", user,
		   guarded.shut[OTHER_PORT].text);
	load_await(&outside, "did", 3);
	snprintf(pid, sizeof(pid), "%d", outside.pid);
	snprintf(pid_fd, sizeof(pid_fd), "%d.3", outside.pid);
	words[5] = word("poke", pid);
	words[6] = word("mem", pid);
	words[7] = word("getfd", pid_fd);
	words[8] = word("attach", pid);
	cr_expect_eq(guarded_run(&load, words), 0);
	cr_expect_str_neq(did_errno(&load, "poke", 0), "EFAULT");
	EXPECT_DID(&load, "poke", 0, "EPERM");
	cr_expect_str_neq(did_errno(&load, "mem", 0), "0");
	EXPECT_DID(&load, "getfd", 0, "EPERM");
	EXPECT_DID(&load, "attach", 0, "EPERM");
	EXPECT_DID(&load, "trace", 0, "0");
	load_free(&load);
	cr_expect_eq(load_end(&outside), 0);
	load_free(&outside);
	sink_take(&guarded.shut[OTHER_PORT]);
}

Test(bypass_run, processes_outside)
{
	expect_closed("0");
	expect_closed("65534");
}
