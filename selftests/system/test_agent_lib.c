/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libsluice, and the example runtime that is made with it, with sluiced. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

#define WAIT_MS 60000

static char cgroup[PATH_MAX], policy_path[128], fifo[128], address[32];
static struct sockaddr_in server_addr;
static int server;

/* An agent, a server outside of all sandboxes, and the name of a cgroup. */
static void up(void)
{
	char mount[PATH_MAX / 2];
	struct sl_control *control;
	socklen_t len = sizeof(server_addr);

	agent_up();
	control = agent_connect();
	sl_control_free(&control);
	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	snprintf(cgroup, sizeof(cgroup), "%s/sl-test-%d-lib", mount, getpid());
	snprintf(policy_path, sizeof(policy_path), "%s/policy.yaml", agent.dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", agent.dir);
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	server_addr.sin_family = AF_INET;
	server_addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(server, (struct sockaddr *)&server_addr, len), 0);
	cr_assert_eq(listen(server, 16), 0);
	cr_assert_eq(getsockname(server, (struct sockaddr *)&server_addr, &len), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(server_addr.sin_port));
}

static void down(void)
{
	/* Of an example that failed. */
	if (cgroup[0] && !access(cgroup, F_OK)) {
		sl_cgroup_kill(cgroup);
		sl_cgroup_destroy(cgroup, 5000);
	}
	close(server);
	agent_down();
}

TestSuite(agent_lib, .init = up, .fini = down, .timeout = 120);

static void write_policy(const char *text)
{
	_cleanup_file_ FILE *file = fopen(policy_path, "we");

	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
}

static const char *policy(bool glob, int to)
{
	return agent_policy(glob, (unsigned int)(ntohs(server_addr.sin_port) + to));
}

/* All that is printed comes on stdout. */
static void example_start(struct cli *cli, const char *const command[])
{
	const char *argv[24] = {
		"/bin/sh",    "-c",   "exec \"$@\" 2>&1", "sh", getenv("SL_EXAMPLE"),
		agent.socket, cgroup, policy_path
	};
	size_t n = 8;

	cr_assert_not_null(argv[4], "SL_EXAMPLE names the program");
	while (*command)
		argv[n++] = *command++;
	cli_start(cli, NULL, argv);
}

static void expect_nothing_left(void)
{
	cr_expect_eq(access(cgroup, F_OK), -1);
	cr_expect_eq(agent_sessions(), 0);
}

/* What the policy names is reached, all else is not. */
Test(agent_lib, example)
{
	const char *const command[] = { getenv("SL_LOAD"), "tcp-send", "--connect-only",
					"--server",        address,    NULL };
	struct cli cli;
	int fd;

	write_policy(policy(true, 0));
	example_start(&cli, command);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.out);
	cr_expect_null(strstr(cli.out, "example-runtime"), "%s", cli.out);
	cli_free(&cli);
	fd = accept(server, NULL, NULL);
	cr_expect_geq(fd, 0);
	close(fd);
	expect_nothing_left();
	write_policy(policy(false, 1));
	example_start(&cli, command);
	cli_end(&cli);
	cr_expect_neq(cli.status, 0);
	cr_expect_not_null(strstr(cli.out, "errno=EACCES"), "%s", cli.out);
	cr_expect_eq(accept(server, NULL, NULL), -1);
	cli_free(&cli);
	expect_nothing_left();
}

/* Refused before anything is made or run, with the cause. */
Test(agent_lib, example_is_refused)
{
	static const char *const command[] = { "/bin/echo", "ran", NULL };
	struct cli cli;

	write_policy("version: 1\nnonsense: 2\n");
	example_start(&cli, command);
	cli_end(&cli);
	cr_expect_eq(cli.status, 125);
	cr_expect_not_null(strstr(cli.out, "nonsense"), "%s", cli.out);
	cr_expect_null(strstr(cli.out, "ran"), "%s", cli.out);
	cli_free(&cli);
	expect_nothing_left();
}

/* The worker is killed, then the whole agent: the command goes on, under its policy. */
Test(agent_lib, example_recovers)
{
	const char *const command[] = {
		"/bin/sh",  "-c",       "echo started; read line <\"$1\"; shift; exec \"$@\"",
		"sh",       fifo,       getenv("SL_LOAD"),
		"tcp-exit", "--count",  "1",
		"--quiet",  "--server", address,
		NULL
	};
	struct cli cli;
	int fd;

	cr_assert_eq(mkfifo(fifo, 0600), 0);
	write_policy(policy(true, 0));
	example_start(&cli, command);
	cli_await(&cli, "started");
	cr_assert_eq(kill(agent_worker(), SIGKILL), 0);
	cli_await(&cli, "recovered");
	fd = open(fifo, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(write(fd, "go\n", 3), 3);
	close(fd);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.out);
	cr_expect_eq(text_count(cli.out, "recovered"), 1, "%s", cli.out);
	cli_free(&cli);
	fd = accept(server, NULL, NULL);
	cr_expect_geq(fd, 0);
	close(fd);
	expect_nothing_left();
}

/* A process at a gate, in its cgroup; the listener. */
static pid_t start_gated(struct sl_gate *gate, unsigned int plan, int *listener)
{
	const char *load = getenv("SL_LOAD");
	pid_t child;

	cr_assert_not_null(load);
	cr_assert_eq(sl_gate_set(gate, plan, 0), 0, "%s", sl_gate_error(gate));
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		if (sl_cgroup_enter(cgroup, 0, NULL) || sl_gate_pass(gate))
			_exit(99);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
		execl(load, load, "tcp-send", "--connect-only", "--server", address, NULL);
		_exit(98);
	}
	cr_assert_eq(sl_gate_listener(gate, WAIT_MS, listener), 0, "%s", sl_gate_error(gate));
	return child;
}

static void expect_client(const struct sl_runtime_owner *owner, pid_t pid)
{
	cr_expect_eq(owner->pid, pid);
	cr_expect_str_eq(owner->exe, getenv("SL_LOAD"));
	cr_expect(owner->closed);
	cr_expect_gt(owner->start_ns, 0);
	cr_expect_not_null(owner->sandbox);
}

/* Who connected, and is gone: by the accepted socket and by its ends. */
static void check_owner(struct sl_runtime *rt, pid_t child)
{
	const struct sl_runtime_owner *owner;
	struct pollfd pollfd = { .fd = server, .events = POLLIN };
	_cleanup_fd_ int fd = -1;
	struct sockaddr_in client;
	socklen_t len = sizeof(client);

	cr_assert_eq(poll(&pollfd, 1, WAIT_MS), 1);
	fd = accept(server, (struct sockaddr *)&client, &len);
	cr_assert_geq(fd, 0);
	cr_expect_eq(held_wait(child), 0);
	cr_assert_eq(sl_runtime_resolve_fd(rt, fd, &owner), 0, "%s", sl_runtime_error(rt));
	expect_client(owner, child);
	cr_assert_eq(sl_runtime_resolve_tuple(rt, SOCK_STREAM, (struct sockaddr *)&client,
					      (struct sockaddr *)&server_addr, 0, &owner),
		     0, "%s", sl_runtime_error(rt));
	expect_client(owner, child);
	client.sin_port = htons(1);
	cr_expect_eq(sl_runtime_resolve_tuple(rt, SOCK_STREAM, (struct sockaddr *)&client,
					      (struct sockaddr *)&server_addr, 0, &owner),
		     -ENOENT);
}

static unsigned int shown, gone;

static void see(const struct sl_runtime_session *session, void *data)
{
	(void)data;
	shown += !session->gone;
	gone += session->gone;
}

static bool has_come(void *arg)
{
	cr_assert_eq(sl_runtime_dispatch(arg), 0, "%s", sl_runtime_error(arg));
	return shown > 0;
}

static bool has_gone(void *arg)
{
	return has_come(arg) && gone > 0;
}

static void check_calls(struct sl_runtime *rt)
{
	struct sl_runtime_report report = SL_RUNTIME_REPORT_INIT;
	const struct sl_runtime_session *session;

	report.type = "Ready";
	report.reason = "Tested";
	report.status = SL_STATUS_TRUE;
	cr_expect_eq(sl_runtime_report(rt, &report), 0, "%s", sl_runtime_error(rt));
	report.type = "not a word";
	cr_expect_lt(sl_runtime_report(rt, &report), 0);
	cr_expect_eq(sl_runtime_freeze(rt), 0, "%s", sl_runtime_error(rt));
	cr_assert_eq(sl_runtime_show(rt, &session), 0, "%s", sl_runtime_error(rt));
	cr_expect(session->freeze_asked && session->connected && session->enforced);
	cr_expect_str_eq(session->wanted, "frozen");
	cr_expect_str_eq(session->cgroup, cgroup);
	cr_expect_not_null(strstr(session->json, "Tested"), "%s", session->json);
	cr_expect_eq(sl_runtime_thaw(rt), 0, "%s", sl_runtime_error(rt));
	cr_expect_eq(sl_runtime_update(rt, policy(false, 1), NULL, SL_MODE_DEFAULT), 0, "%s",
		     sl_runtime_error(rt));
	cr_expect_eq(sl_runtime_update(rt, "version: 7\n", "p.yaml", SL_MODE_DEFAULT), -EINVAL);
	cr_expect_not_null(strstr(sl_runtime_error(rt), "p.yaml:1:"), "%s", sl_runtime_error(rt));
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_LIVE);
}

Test(agent_lib, session)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;
	struct sl_runtime *rt = NULL, *watch = NULL;
	const struct sl_runtime_session *session;
	struct sl_gate *gate = NULL;
	pid_t child;

	cr_assert_eq(sl_runtime_new(&rt, "test", "1"), 0);
	cr_assert_eq(sl_runtime_new(&watch, "test", "1"), 0);
	cr_assert_eq(sl_runtime_connect(rt, agent.socket, WAIT_MS), 0, "%s", sl_runtime_error(rt));
	cr_assert_eq(sl_runtime_connect(watch, agent.socket, WAIT_MS), 0);
	cr_assert_eq(sl_runtime_watch(watch, see, NULL), 0);
	cr_assert_eq(sl_cgroup_create(cgroup, NULL), 0);
	cr_assert_eq(sl_gate_new(&gate), 0);
	attach.policy = policy(true, 0);
	cr_assert_eq(sl_runtime_plan(rt, attach.policy, NULL, SL_HOLD_AUTO, &attach.plan), 0, "%s",
		     sl_runtime_error(rt));
	cr_expect_eq(attach.plan, SL_PLAN_EXEC);
	child = start_gated(gate, attach.plan, &attach.listener_fd);
	attach.cgroup_fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(sl_runtime_attach(rt, &attach), 0, "%s", sl_runtime_error(rt));
	close(attach.listener_fd);
	close(attach.cgroup_fd);
	cr_assert_eq(sl_gate_open(gate), 0, "%s", sl_gate_error(gate));
	cr_assert(eventually(has_come, watch));
	check_owner(rt, child);
	check_calls(rt);
	cr_expect_eq(sl_runtime_end(rt, SL_END_DEFAULT, "tested enough"), 0, "%s",
		     sl_runtime_error(rt));
	cr_assert_eq(sl_runtime_show(rt, &session), 0, "%s", sl_runtime_error(rt));
	cr_expect_str_eq(session->state, "ended");
	cr_expect_not_null(strstr(session->reason, "tested enough"), "%s", session->reason);
	cr_expect_eq(sl_runtime_detach(rt, SL_DETACH_KILL), 0, "%s", sl_runtime_error(rt));
	cr_assert(eventually(has_gone, watch));
	cr_expect_eq(agent_sessions(), 0);
	cr_expect_eq(rmdir(cgroup), 0);
	sl_gate_free(&gate);
	sl_runtime_free(&watch);
	sl_runtime_free(&rt);
}
