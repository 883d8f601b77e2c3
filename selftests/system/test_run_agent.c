/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice run by way of an agent: the same as without, whoever of the two dies. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/scale.h"

static char fifo[128];
static int fifo_fd = -1;

static void up(void)
{
	agent_up();
	/* It serves. */
	(void)agent_worker();
	snprintf(fifo, sizeof(fifo), "%s/fifo", agent.dir);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	fifo_fd = open(fifo, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fifo_fd, 0);
}

static void down(void)
{
	sl_cleanup_fd(&fifo_fd);
	agent_down();
}

TestSuite(run_agent, .init = up, .fini = down, .timeout = 120);

/* The next line that a script reads from the fifo. */
static void go(void)
{
	cr_assert_eq(write(fifo_fd, "\n", 1), 1);
}

static bool left_nothing(void *run)
{
	return run_left_nothing(*(pid_t *)run);
}

static bool has_nothing(void *run)
{
	char sandbox[128];
	struct stat st;

	snprintf(sandbox, sizeof(sandbox), "%s/sandbox/1", agent.set);
	return run_left_nothing(*(pid_t *)run) && !agent_sessions() && stat(sandbox, &st);
}

/* Twice the time that is usual: the agent waits 3 s for a run that may come back. */
static void expect_nothing(pid_t run)
{
	cr_expect(eventually(has_nothing, &run) || eventually(has_nothing, &run),
		  "something of the run is left: %u sessions", agent_sessions());
}

static const char *policy_file(const char *text)
{
	static char path[128];
	_cleanup_file_ FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/policy.yaml", agent.dir);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	fputs(text, file);
	return path;
}

Test(run_agent, exit_statuses)
{
	static const struct {
		const char *script;
		int status;
	} cases[] = { { "exit 0", 0 }, { "exit 7", 7 }, { "kill -TERM $$", 128 + SIGTERM } };
	struct stat before, after;
	struct cli cli;

	cr_assert_eq(stat(agent.set, &before), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLI(&cli, "run", "-q", "--", "sh", "-c", cases[i].script);
		cr_expect_eq(cli.status, cases[i].status, "%s: %s", cases[i].script, cli.err);
		cr_expect_str_eq(cli.err, "");
		/* At once: it is gone when the command line comes back. */
		cr_expect(has_nothing(&cli.pid));
		cli_free(&cli);
	}
	CLI(&cli, "run", "-q", "--", "/tmp");
	cli_expect_error(&cli, 126, "can't run '/tmp'");
	cr_expect(has_nothing(&cli.pid));
	cli_free(&cli);
	CLI(&cli, "run", "--policy", policy_file("version: 1\nnetwork_policies: {}\n"), "-q", "--",
	    "no-such-command");
	cli_expect_error(&cli, 127, "can't run 'no-such-command'");
	cr_expect(has_nothing(&cli.pid));
	cli_free(&cli);
	/* The set was there before the first, and is after the last. */
	cr_assert_eq(stat(agent.set, &after), 0);
	cr_expect_eq(before.st_ino, after.st_ino);
}

/* What is denied, told, advised and counted, and how it ends: as a run without an agent. */
static void expect_same(const char *const argv[], const char *const without[], const char *text)
{
	struct cli with, alone;

	cli_start(&with, NULL, argv);
	cli_end(&with);
	cli_start(&alone, NULL, without);
	cli_end(&alone);
	cr_expect_eq(with.status, alone.status, "%d, without %d: %s", with.status, alone.status,
		     with.err);
	cr_expect_not_null(strstr(with.err, text), "no '%s' in: %s", text, with.err);
	text_without_numbers(with.err);
	text_without_numbers(alone.err);
	cr_expect_str_eq(with.err, alone.err, "with: %s\nwithout: %s", with.err, alone.err);
	cr_expect(has_nothing(&with.pid));
	cli_free(&with);
	cli_free(&alone);
}

#define EXPECT_SAME(text, ...)                                                                     \
	expect_same(CLI_ARGV("run", __VA_ARGS__), CLI_ARGV("--agent", "none", "run", __VA_ARGS__), \
		    (text))

Test(run_agent, same_as_without)
{
	const char *quiet = "\"$0\" udp-send --server 192.0.2.1:9 2>/dev/null";
	char load[PATH_MAX];

	snprintf(load, sizeof(load), "%s", getenv("SL_LOAD"));
	EXPECT_SAME("warning: denied: ", "--policy", policy_file(agent_policy(false, 9)), "--",
		    "sh", "-c",
		    "exec 2>/dev/null; \"$0\" udp-send --server 127.0.0.1:9; "
		    "\"$0\" udp-send --server 192.0.2.1:9",
		    load);
	/* Its files are looked at while exec is held. */
	EXPECT_SAME("add", "--policy", policy_file(agent_policy(true, 9)), "--", "sh", "-c", quiet,
		    load);
	EXPECT_SAME("add", "--hold", "connect", "--policy", policy_file(agent_policy(true, 9)),
		    "--", "sh", "-c", quiet, load);
	EXPECT_SAME("would be denied", "--mode", "audit", "--policy",
		    policy_file(agent_policy(false, 9)), "--", load, "udp-send", "--server",
		    "192.0.2.1:9");
	EXPECT_SAME("hint", "--policy", policy_file("version: 1\nnonsense: 1\n"), "--", "true");
	EXPECT_SAME("family", "--policy", policy_file(agent_policy(false, 9)), "--", load, "do",
		    "socket=17.3.0");
}

#define SOCKETS SCALED(5000)

static unsigned int member_of(const struct cli *cli, const char *path)
{
	char *line = strdup(cli->err), *last;
	struct json_object *json;
	unsigned int n;

	cr_assert_not_null(line);
	cr_assert_gt(strlen(line), 1, "exit %d", cli->status);
	line[strlen(line) - 1] = '\0';
	last = strrchr(line, '\n');
	json = json_of(last ? last + 1 : line);
	n = (unsigned int)json_object_get_int(json_at(json, path));
	json_object_put(json);
	free(line);
	return n;
}

static char *events_of(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	cr_assert_not_null(text);
	cr_assert_eq(read(fd, text, (size_t)st.st_size), st.st_size);
	return text;
}

/* Each of two at once gets all of its own events, and nobody's else. */
Test(run_agent, events_are_complete)
{
	const char *script = "\"$0\" tcp-fail --kind refused --count $1 --quiet --timeout 100";
	char count[2][16], file[2][128];
	struct json_object *line;
	struct cli cli[2];

	for (unsigned int i = 0; i < 2; i++) {
		snprintf(count[i], sizeof(count[i]), "%u", SOCKETS / (i + 1));
		snprintf(file[i], sizeof(file[i]), "%s/events%u", agent.dir, i);
		cli_start(&cli[i], NULL,
			  CLI_ARGV("-j", "run", "--events", file[i], "--", "sh", "-c", script,
				   getenv("SL_LOAD"), count[i]));
	}
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int closes = 0;
		_cleanup_free_ char *all = NULL;
		const char *text;

		cli_end(&cli[i]);
		text = all = events_of(file[i]);
		cr_expect_eq(cli[i].status, 0, "%s", cli[i].err);
		while ((line = json_line(&text))) {
			closes += !strcmp(json_text(line, "event"), "close");
			json_object_put(line);
		}
		/* And the one by which sl-load finds a port that refuses. */
		cr_expect_eq(closes, SOCKETS / (i + 1) + 1, "%u closes", closes);
		cr_expect_eq(member_of(&cli[i], "summary.missing"), 0);
		cr_expect_eq(member_of(&cli[i], "summary.sockets"), SOCKETS / (i + 1) + 1);
		cli_free(&cli[i]);
	}
}

/* The one that stands still loses its own, is told how many, and costs the others nothing. */
Test(run_agent, a_slow_reader_loses_its_own)
{
	const char *slow = "read x <\"$1\"; \"$0\" tcp-fail --kind refused --count 500 --quiet; "
			   "echo done; read x <\"$1\"";
	struct cli stopped, other;

	cli_start(&stopped, NULL,
		  CLI_ARGV("-j", "run", "--ring-bytes", "4K", "--", "sh", "-c",
			   "echo ready; exec sh -c \"$0\" \"$1\" \"$2\"", slow, getenv("SL_LOAD"),
			   fifo));
	cli_await(&stopped, "ready");
	cr_assert_eq(kill(stopped.pid, SIGSTOP), 0);
	go();
	CLI(&other, "-j", "run", "--", getenv("SL_LOAD"), "tcp-fail", "--kind", "refused",
	    "--count", "500", "--quiet");
	cli_await(&stopped, "done");
	cr_expect_eq(member_of(&other, "summary.missing"), 0);
	cr_expect_eq(member_of(&other, "summary.sockets"), 501);
	cr_expect_eq(text_count(other.err, "event_lost"), 0, "%s", other.err);
	cr_assert_eq(kill(stopped.pid, SIGCONT), 0);
	go();
	cli_end(&stopped);
	cr_expect_gt(member_of(&stopped, "summary.missing"), 0);
	cr_expect_eq(member_of(&stopped, "summary.sockets"), 501);
	cr_expect_eq(text_count(stopped.err, "--ring-bytes"), 1, "%s", stopped.err);
	cli_free(&stopped);
	cli_free(&other);
}

static void start_two(struct cli *cli)
{
	cli_start(cli, NULL,
		  CLI_ARGV("run", "-q", "--policy", policy_file(agent_policy(true, 9)), "--", "sh",
			   "-c", "(setsid sleep 1000 &); echo ready; exec sleep 1000"));
	cli_await(cli, "ready");
}

/* Its output ends once the last of its processes has gone. */
static void expect_killed(struct cli *cli)
{
	cli_end(cli);
	cr_expect_eq(cli->status, 128 + SIGKILL, "exit %d: %s", cli->status, cli->err);
	expect_nothing(cli->pid);
	cli_free(cli);
}

Test(run_agent, killed_run)
{
	struct cli cli;

	start_two(&cli);
	cr_assert_eq(kill(cli.pid, SIGKILL), 0);
	expect_killed(&cli);
}

/* Then it is the agent alone that knows. */
Test(run_agent, killed_run_and_keeper)
{
	struct cli cli;

	start_two(&cli);
	cr_assert_neq(run_keeper(cli.pid), 0);
	cr_assert_eq(kill(run_keeper(cli.pid), SIGKILL), 0);
	cr_assert_eq(kill(cli.pid, SIGKILL), 0);
	expect_killed(&cli);
}

/* And here nobody is there but the keeper; what the next agent finds, it removes. */
Test(run_agent, killed_run_of_a_dead_agent)
{
	struct cli cli;

	start_two(&cli);
	cr_assert_eq(agent_end(SIGKILL), 128 + SIGKILL);
	cr_assert_eq(kill(cli.pid, SIGKILL), 0);
	cli_end(&cli);
	cr_expect(eventually(left_nothing, &cli.pid), "the keeper has killed nobody");
	agent_start();
	expect_nothing(cli.pid);
	cli_free(&cli);
}

static bool is_connected(void *arg)
{
	struct sl_control *control = agent_connect();
	struct json_object *list = agent_call(control, "List", "{}"), *rows;
	bool connected;

	(void)arg;
	rows = json_at(list, "sessions");
	connected =
		json_object_array_length(rows) == 1 &&
		json_object_get_boolean(json_at(json_object_array_get_idx(rows, 0), "connected"));
	json_object_put(list);
	sl_control_free(&control);
	return connected;
}

static bool is_other_worker(void *arg)
{
	return agent_worker() != *(pid_t *)arg;
}

/* A connection that lives, and one more at each step. */
static const char stepping[] =
	"exec 3<>\"$1\"; sleep 1000 | \"$0\" tcp-idle --server \"$2\" --timeout 100 & "
	"for step in 1 2 3; do read x <&3; "
	"\"$0\" tcp-exit --count 1 --quiet --server \"$2\" && echo step$step; done; exit 5";

static void start_stepping(struct cli *cli, struct load *server, bool glob)
{
	unsigned int port = server_start(server, "tcp-server --quiet --fork --count 10000");
	char to[32];

	snprintf(to, sizeof(to), "127.0.0.1:%u", port);
	cli_start(cli, NULL,
		  CLI_ARGV("run", "--policy", policy_file(agent_policy(glob, port)), "--", "sh",
			   "-c", stepping, getenv("SL_LOAD"), fifo, to));
	cli_await(cli, "what=open");
	go();
	cli_await(cli, "step1");
}

static void end_stepping(struct cli *cli, struct load *server)
{
	go();
	cli_end(cli);
	cr_expect_eq(cli->status, 5, "exit %d: %s", cli->status, cli->err);
	cr_expect_not_null(strstr(cli->out, "step3"), "%s", cli->err);
	/* Those of the three steps, and the one that lived. */
	cr_expect_eq(text_count(cli->err, "sluice: 4 sockets"), 1, "%s", cli->err);
	cr_expect_eq(text_count(cli->err, "denied"), 0, "%s", cli->err);
	cr_expect(has_nothing(&cli->pid));
	cli_free(cli);
	load_end(server);
	load_free(server);
}

/* Execs are held: the next worker answers them, and the run recovers its session. */
Test(run_agent, worker_is_killed)
{
	struct load server;
	struct cli cli;
	pid_t worker;

	start_stepping(&cli, &server, true);
	worker = agent_worker();
	cr_assert_eq(kill(worker, SIGKILL), 0);
	go();
	cli_await(&cli, "step2");
	cr_expect(eventually(is_other_worker, &worker));
	cr_expect(eventually(is_connected, NULL));
	end_stepping(&cli, &server);
}

/* While there is no agent the kernel decides by the same policy. */
Test(run_agent, agent_is_killed)
{
	struct load server;
	struct cli cli;

	start_stepping(&cli, &server, false);
	cr_assert_eq(agent_end(SIGKILL), 128 + SIGKILL);
	go();
	cli_await(&cli, "step2");
	agent_start();
	cr_expect(eventually(is_connected, NULL));
	end_stepping(&cli, &server);
}

/* The end of a run of which the agent is dead: nothing stays, then or for the next agent. */
Test(run_agent, ends_without_its_agent)
{
	struct load server;
	struct cli cli;

	start_stepping(&cli, &server, false);
	cr_assert_eq(agent_end(SIGKILL), 128 + SIGKILL);
	go();
	cli_await(&cli, "step2");
	go();
	cli_end(&cli);
	cr_expect_eq(cli.status, 5, "exit %d: %s", cli.status, cli.err);
	cr_expect(run_left_nothing(cli.pid));
	agent_start();
	expect_nothing(cli.pid);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

/* Somebody ends the session: the command does not go on with nobody who holds it. */
Test(run_agent, session_is_ended)
{
	struct sl_control *control;
	struct cli cli;

	start_two(&cli);
	control = agent_connect();
	agent_do(control, "End", "{'sandbox': '1', 'reason': 'a test says so'}");
	cli_end(&cli);
	cr_expect_eq(cli.status, 125, "exit %d: %s", cli.status, cli.err);
	cr_expect_not_null(strstr(cli.err, "a test says so"), "%s", cli.err);
	sl_control_free(&control);
	expect_nothing(cli.pid);
	cli_free(&cli);
}

/* A run in a run is refused: members of sandboxes have no say. */
Test(run_agent, members_are_refused)
{
	struct cli cli;

	CLI(&cli, "run", "-q", "--", getenv("SLUICE"), "--agent", agent.socket, "run", "--",
	    "true");
	cr_expect_eq(cli.status, 125, "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "--agent none"), "%s", cli.err);
	cr_expect(has_nothing(&cli.pid));
	cli_free(&cli);
}

#define RUNS 20

Test(run_agent, many_at_once)
{
	char script[RUNS][128];
	struct cli cli[RUNS];

	for (int i = 0; i < RUNS; i++) {
		snprintf(script[i], sizeof(script[i]),
			 "\"$0\" tcp-fail --kind refused --count 20 "
			 "--quiet && exit %d",
			 i + 1);
		cli_start(&cli[i], NULL,
			  CLI_ARGV("-j", "run", "--", "sh", "-c", script[i], getenv("SL_LOAD")));
	}
	for (int i = 0; i < RUNS; i++) {
		cli_end(&cli[i]);
		cr_expect_eq(cli[i].status, i + 1, "exit %d: %s", cli[i].status, cli[i].err);
		cr_expect_eq(member_of(&cli[i], "summary.sockets"), 21, "%s", cli[i].err);
		cr_expect(run_left_nothing(cli[i].pid));
		cli_free(&cli[i]);
	}
	cr_expect_eq(agent_sessions(), 0);
}
