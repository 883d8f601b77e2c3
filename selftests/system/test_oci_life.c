/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Containers from their start to their end, with who serves them or without. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "kernel/cgroup.h"
#include "system/expect.h"
#include "system/oci.h"
#include "system/scale.h"

static void up(void)
{
	oci_up();
	oci_need();
}

TestSuite(oci_life, .init = up, .fini = oci_down, .timeout = 120);

static unsigned int listeners(void)
{
	struct sl_control *control = agent_connect();
	struct json_object *status = agent_call(control, "Status", "{}");
	unsigned int n = (unsigned int)json_object_get_int(json_at(status, "listeners"));

	json_object_put(status);
	sl_control_free(&control);
	return n;
}

static bool has_listeners(void *arg)
{
	return listeners() == *(unsigned int *)arg;
}

/* A message of who says that a process of the host was added to a container. */
static void say_joined(const char *container)
{
	const struct sl_fds one = { .fd = { STDIN_FILENO }, .count = 1 };
	char text[256], byte;
	int fd = oci_dial();

	snprintf(text, sizeof(text),
		 "{\"state\":{\"id\":\"%s\",\"status\":\"running\"},\"pid\":1,"
		 "\"fds\":[\"seccompFd\"],\"metadata\":\"web\"}",
		 container);
	cr_expect_gt(sl_fds_send(fd, text, strlen(text), &one), 0);
	cr_expect_leq(read(fd, &byte, 1), 0);
	close(fd);
}

/* The set stays as long as the agent does; nothing of a sandbox does. */
static void expect_no_pins(void)
{
	char path[PATH_MAX];
	struct dirent *entry;
	unsigned int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sandbox", agent.set);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	cr_expect_eq(n, 0, "pins of %u sandboxes are left", n);
}

/* A second process is the sandbox's, held and decided as the first, also by its files. */
Test(oci_life, exec)
{
	unsigned int one = 1;

	oci_start("web", "web");
	oci_exec("web", "sl-l1d", "EACCES");
	OCI_MUST("delete", "--force", "web");
	oci_await_sessions(0);

	oci_start("glob", "glob");
	say_joined("glob");
	oci_exec("glob", "sl-l2d", "ECONNREFUSED");
	oci_exec("glob", "other", "EACCES");
	/* Whose listener ends with it. */
	cr_expect(eventually(has_listeners, &one), "%u listeners", listeners());
	/* With the next worker, too. */
	kill(agent_worker(), SIGKILL);
	oci_exec("glob", "sl-l3d", "ECONNREFUSED");
	OCI_MUST("delete", "--force", "glob");
	oci_await_sessions(0);
	cr_expect_not_null(strstr(oci_serve_end(SIGTERM),
				  "container glob: process 1 is not started"),
			   "%s", oci.serve.err);
}

/* A shell that was added to a container and runs this when a line comes on its stdin. */
static int add_shell(struct cli *cli, const char *container, const char *command)
{
	char fifo[160], script[1024];
	int in;

	snprintf(fifo, sizeof(fifo), "%s/line", agent.dir);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	in = open(fifo, O_RDWR | O_CLOEXEC);
	cr_assert_geq(in, 0);
	snprintf(script, sizeof(script),
		 "exec runc --root '%s' exec '%s' /usr/bin/sh -c 'echo ready; read x; %s' <'%s' "
		 "2>&1",
		 oci.root, container, command, fifo);
	cli_start(cli, NULL, (const char *const[]){ "/bin/sh", "-c", script, NULL });
	cli_await(cli, "ready");
	return in;
}

/*
 * A process that was added is the sandbox's for the next worker as well, under its next
 * policy, and when it is frozen and thawed.
 */
Test(oci_life, exec_stays_a_member)
{
	unsigned int two = 2;
	struct sl_control *control;
	_cleanup_fd_ int in = -1;
	char policy[512];
	struct cli cli;

	oci_copy("sl-l2d");
	oci_copy("other-3d");
	oci_start("first", "web");
	oci_start("glob", "glob");
	in = add_shell(&cli, "glob",
		       "/sl-l2d tcp-send --connect-only --server 127.0.0.1:9; read x; "
		       "/other-3d tcp-send --connect-only --server 127.0.0.1:9");
	/* What the keeper holds is in another order then: the added one comes first. */
	OCI_MUST("delete", "--force", "first");
	oci_await_sessions(1);
	cr_expect(eventually(has_listeners, &two), "%u listeners", listeners());
	kill(agent_worker(), SIGKILL);
	cr_expect_eq(listeners(), 2);
	cr_expect_eq(write(in, "\n", 1), 1);
	cli_await(&cli, "errno=ECONNREFUSED");

	snprintf(policy, sizeof(policy), "%s", OCI_OWN_POLICY("", "/other*d"));
	for (char *at = policy; *at; at++)
		*at = *at == '\'' ? ' ' : *at;
	control = agent_connect();
	agent_do(control, "UpdatePolicy", "{'sandbox': '2', 'policy': '%s'}", policy);
	agent_do(control, "Freeze", "{'sandbox': '2'}");
	cr_expect_eq(write(in, "\n", 1), 1);
	agent_do(control, "Thaw", "{'sandbox': '2'}");
	sl_control_free(&control);
	cli_end(&cli);
	cr_expect_eq(text_count(cli.out, "errno=ECONNREFUSED"), 4, "%s", cli.out);
	cli_free(&cli);
}

/* Nobody serves: what runs goes on, and nothing is started. The next one takes it up. */
Test(oci_life, serve_is_killed)
{
	struct cli cli;

	oci_start("stays", "glob");
	oci_start("ends", "web");
	oci_await_kept(2);
	oci_serve_end(SIGKILL);

	oci_config("late", "own", OCI_CONNECT);
	OCI_RUNC(&cli, "run", "--bundle", oci.bundle, "late");
	cr_expect_neq(cli.status, 0);
	cr_expect_null(strstr(cli.out, "errno="), "it ran: %s", cli.out);
	cli_free(&cli);
	OCI_RUNC(&cli, "exec", "stays", "/sl-load", "tcp-send", "--connect-only", "--server",
		 "127.0.0.1:9");
	cr_expect_neq(cli.status, 0);
	cr_expect_null(strstr(cli.out, "errno="), "it ran: %s", cli.out);
	cli_free(&cli);
	OCI_MUST("delete", "--force", "ends");
	oci_await_sessions(2);

	oci_serve_start();
	oci_await_sessions(1);
	oci_exec("stays", "sl-l2d", "ECONNREFUSED");
	oci_await_kept(1);
	OCI_MUST("delete", "--force", "stays");
	oci_await_sessions(0);
	oci_await_kept(0);
	oci_serve_end(SIGTERM);
	cr_expect_not_null(strstr(oci.serve.err, "container stays: sandbox"), "%s", oci.serve.err);
}

/* The same, while the agent is killed as well: it is waited for. */
Test(oci_life, agent_and_serve_are_killed)
{
	oci_start("box", "own");
	oci_serve_end(SIGKILL);
	agent_end(SIGKILL);
	oci_serve_start();
	OCI_MUST("delete", "--force", "box");
	agent_start();
	oci_await_kept(0);
	oci_await_sessions(0);
	oci_serve_end(SIGTERM);
	cr_expect_not_null(strstr(oci.serve.err, "container box: gone"), "%s", oci.serve.err);
}

/* What was killed before it knew what became of an attach, and what it can't read. */
Test(oci_life, what_is_kept_is_not_whole)
{
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;
	char text[PATH_MAX + 128], cgroup[PATH_MAX], name[32] = "";

	oci_start("box", "own");
	oci_serve_end(SIGKILL);
	dir = opendir(oci.state);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			snprintf(name, sizeof(name), "%.20s", entry->d_name);
	}
	oci_cgroup(cgroup, sizeof(cgroup), "box");
	snprintf(text, sizeof(text),
		 "{\"id\":\"box\",\"cgroup\":\"%s\",\"cgroup_id\":\"%s\",\"token\":\"\"}", cgroup,
		 name);
	oci_write(oci.state, name, text);
	oci_write(oci.state, "7", "{\"id\":\"x\"");
	oci_write(oci.state, "new", "");
	oci_serve_start();
	oci_await_kept(1);
	OCI_MUST("delete", "--force", "box");
	oci_await_sessions(0);
	oci_await_kept(0);
	oci_serve_end(SIGTERM);
	cr_expect_not_null(strstr(oci.serve.err, "of no use"), "%s", oci.serve.err);
}

/* However a container ends, nothing of it is left. */
Test(oci_life, every_end)
{
	char cgroup[PATH_MAX];

	oci_start("killed", "own");
	OCI_MUST("kill", "killed", "KILL");
	oci_await_sessions(0);
	OCI_MUST("delete", "killed");

	oci_start("forced", "own");
	OCI_MUST("delete", "--force", "forced");
	oci_await_sessions(0);

	/* Behind the runtime's back. */
	oci_start("gone", "own");
	oci_cgroup(cgroup, sizeof(cgroup), "gone");
	cr_expect_eq(sl_cgroup_destroy(cgroup, 5000), 0);
	oci_await_sessions(0);
	oci_await_kept(0);
	expect_no_pins();
}

struct count {
	pid_t pid;
	unsigned int fds;
};

static bool has_fds(void *arg)
{
	const struct count *count = arg;

	return agent_fds(count->pid) <= count->fds;
}

static void expect_fds(const char *who, struct count count)
{
	cr_expect(eventually(has_fds, &count), "%s has %u descriptors, %u before", who,
		  agent_fds(count.pid), count.fds);
}

/* Nor is anything of many, one after the other in the same cgroup. */
Test(oci_life, many_ends, .timeout = 600)
{
	struct count keeper = { agent.pid, agent_fds(agent.pid) };
	struct count serve = { oci.serve.pid, agent_fds(oci.serve.pid) };
	struct count worker = { agent_worker(), 0 };
	struct cli cli;

	oci_config("box", "own", OCI_CONNECT);
	for (int i = 0; i < SCALED(100); i++) {
		OCI_RUNC(&cli, "run", "--bundle", oci.bundle, "box");
		cr_expect_not_null(strstr(cli.out, "errno=ECONNREFUSED"), "%d: %s", i, cli.out);
		cli_free(&cli);
		if (i)
			continue;
		/* What is opened at the first use stays open. */
		oci_await_sessions(0);
		worker.fds = agent_fds(worker.pid);
	}
	oci_await_sessions(0);
	oci_await_kept(0);
	cr_expect_eq(listeners(), 0);
	expect_fds("the keeper", keeper);
	expect_fds("the worker", worker);
	expect_fds("who serves", serve);
	expect_no_pins();
}
