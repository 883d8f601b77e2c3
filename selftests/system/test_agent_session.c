/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* S1, S2, S4, S5, S6: sessions with sluiced, as a runtime sees them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"
#include "system/world.h"

TestSuite(agent_session, .init = agent_up, .fini = agent_down, .timeout = 120);

#define STREAMS 175

static int streams[STREAMS];

static void accept_streams(int server)
{
	struct pollfd fd = { .fd = server, .events = POLLIN };

	for (int i = 0; i < STREAMS; i++) {
		cr_assert_eq(poll(&fd, 1, 10000), 1, "%d of %d streams came", i, STREAMS);
		streams[i] = accept(server, NULL, NULL);
		cr_assert_geq(streams[i], 0);
	}
}

/* Neither end has closed it, and it takes what is sent. */
static unsigned int live_streams(void)
{
	unsigned int n = 0;
	char byte;

	for (int i = 0; i < STREAMS; i++)
		n += send(streams[i], "x", 1, MSG_NOSIGNAL) == 1 &&
		     recv(streams[i], &byte, 1, MSG_DONTWAIT) < 0;
	return n;
}

/* Streams of a sandbox over the cut of its control connection. */
Test(agent_session, connection_cut_with_streams)
{
	unsigned int port;
	int server = held_server(&port);
	char address[32], count[16];
	const char *const argv[] = { getenv("SL_LOAD"), "tcp-idle", "--count", count,
				     "--server",        address,    NULL };
	struct json_object *session;
	struct box box;

	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	snprintf(count, sizeof(count), "%d", STREAMS);
	box_make(&box, &hold_exec, argv);
	box_attach(&box, agent_policy(true, port), NULL);
	box_go(&box);
	accept_streams(server);

	sl_control_free(&box.control);
	box_await_frozen(&box, true);
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "state"), "lost");
	cr_expect_str_neq(json_text(session, "cause"), "");
	cr_expect_str_eq(json_text(box_condition(session, "Session"), "reason"), "Lost");
	json_object_put(session);

	box_recover(&box);
	box_await_frozen(&box, false);
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "state"), "live");
	cr_expect(json_object_get_boolean(json_at(session, "enforced")));
	json_object_put(session);
	cr_expect_eq(live_streams(), STREAMS);
	cr_expect_eq(box_connect(&box, port), 0);
	/* Its policy is what it was: another port is denied. */
	cr_expect_neq(box_connect(&box, port == 1 ? 2 : port - 1), 0);

	close(box.in);
	box.in = -1;
	cr_expect_eq(box_wait(&box), 0);
	box_free(&box);
}

static void recover_before_the_end_is_noticed(void)
{
	struct json_object *session, *reply;
	struct sl_control *old, *other;
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	old = TAKE_PTR(box.control);
	box_recover(&box);
	/* The old one was ended; what it still says is not about the session. */
	cr_expect_lt(sl_control_call(old, "io.sluice.Heartbeat", NULL, NULL, &session, NULL), 0);
	sl_control_free(&old);
	agent_do(box.control, "Heartbeat", "{}");
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "state"), "live");
	cr_expect_eq(json_object_get_int(json_at(session, "epoch")), 2);
	json_object_put(session);
	box_await_frozen(&box, false);

	/* Epochs only rise. */
	other = agent_connect();
	reply = agent_refused(other, "StaleEpoch", "Recover", "{'token': '%s', 'epoch': 2}",
			      box.token);
	cr_expect_eq(json_object_get_int(json_at(reply, "epoch")), 2);
	json_object_put(reply);
	sl_control_free(&other);
	/* The one that is live was not touched. */
	agent_do(box.control, "Heartbeat", "{}");
	/* Who has no token asks again with the key: the same session, nothing is made twice. */
	sl_control_free(&box.control);
	box.control = agent_connect();
	box_attach(&box, agent_policy(false, 1), NULL);
	reply = agent_call(box.control, "List", "{}");
	cr_expect_eq(json_object_array_length(json_at(reply, "sessions")), 2);
	json_object_put(reply);
	other = agent_connect();
	box.token[0] = box.token[0] == '0' ? '1' : '0';
	json_object_put(agent_refused(other, "UnknownToken", "Recover",
				      "{'token': '%s', 'epoch': 99}", box.token));
	sl_control_free(&other);
	box_free(&box);
}

Test(agent_session, versions_without_overlap)
{
	struct sl_control *control;
	struct json_object *reply;

	cr_assert_eq(sl_control_new(&control, agent_socket(), 10000), 0);
	/* Nothing may be asked before. */
	json_object_put(agent_refused(control, "NoHello", "List", "{}"));
	reply = agent_refused(
		control, "IncompatibleVersion", "Hello",
		"{'component': {'name': 'runtime', 'version': '7.5', 'min': 7, 'max': 9}}");
	cr_expect(strstr(json_text(reply, "text"), "runtime"));
	cr_expect(strstr(json_text(reply, "text"), "sluiced"));
	cr_expect(strstr(json_text(reply, "text"), "7"));
	cr_expect_eq(json_object_get_int(json_at(reply, "component.min")), 1);
	json_object_put(reply);
	/* Final: the connection was ended. */
	cr_expect_lt(sl_control_call(control, "io.sluice.List", NULL, NULL, &reply, NULL), 0);
	sl_control_free(&control);
}

#define REPORTS 1000

static void report_refused_again_and_again(void)
{
	struct json_object *session, *condition;
	struct box box;
	char *log;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	for (int i = 0; i < REPORTS; i++)
		agent_do(box.control, "Report",
			 "{'type': 'Upload', 'status': 'False', 'reason': 'Refused', "
			 "'message': 'try\\n%d', 'bad': true}",
			 i);
	session = box_show(&box);
	condition = box_condition(session, "Upload");
	cr_expect_eq(json_object_get_int(json_at(condition, "count")), REPORTS);
	cr_expect_str_eq(json_text(condition, "level"), "error");
	json_object_put(session);
	log = agent_log();
	/* When it came, when it was a warning, when an error. */
	cr_expect_eq(text_count(log, "Upload is False"), 3, "%s", log);
	/* What the agent says itself is not a client's to say. */
	cr_expect_eq(sl_control_call(box.control, "io.sluice.Report",
				     json_tokener_parse("{\"type\": \"Enforced\", \"status\": "
							"\"True\", \"reason\": \"Mine\"}"),
				     NULL, &session, NULL),
		     -EREMOTEIO);
	json_object_put(session);
	/* What a client says adds no line. */
	cr_expect_eq(text_count(log, "\n999"), 0);
	free(log);
	box_free(&box);
}

static void make_away(struct box *box, const char *end)
{
	const char *const argv[] = { "/bin/sleep", "1000", NULL };
	char options[128];

	snprintf(options, sizeof(options),
		 "{\"silence_ms\": 5000, \"grace_ms\": 1, \"end\": \"%s\"}", end);
	box_make(box, NULL, argv);
	box_attach(box, agent_policy(false, 1), options);
	box_go(box);
	sl_control_free(&box->control);
}

static void expect_over(const struct box *box, const char *end)
{
	struct json_object *session = box_show(box), *reply;
	struct sl_control *control = agent_connect();

	cr_expect_str_eq(json_text(session, "state"), "ended");
	cr_expect_str_eq(json_text(session, "end"), end);
	cr_expect(strstr(json_text(session, "reason"), "within 1 ms"), "%s",
		  json_text(session, "reason"));
	cr_expect(strstr(json_text(session, "reason"), "closed"));
	/* Final for the runtime, with the reason. */
	reply = agent_refused(control, "SessionOver", "Recover", "{'token': '%s', 'epoch': 9}",
			      box->token);
	cr_expect_str_eq(json_text(reply, "reason"), json_text(session, "reason"));
	json_object_put(reply);
	json_object_put(session);
	sl_control_free(&control);
}

/* Runtimes that stay away, to the end of their sessions; the reasons are kept over a restart. */
Test(agent_session, grace_over)
{
	static const char *const ends[] = { "frozen", "continue", "kill" };
	struct box boxes[ARRAY_SIZE(ends)];

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		make_away(&boxes[i], ends[i]);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		box_await(&boxes[i], "state", "ended");
	box_await_frozen(&boxes[0], true);
	cr_expect_eq(box_wait(&boxes[2]), 128 + SIGKILL);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
			expect_over(&boxes[i], ends[i]);
		box_await_frozen(&boxes[1], false);
		cr_expect_eq(kill(boxes[0].pid, 0), 0);
		cr_expect_eq(kill(boxes[1].pid, 0), 0);
		if (round)
			break;
		cr_expect_eq(agent_end(SIGTERM), 0);
		agent_start();
	}
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		box_free(&boxes[i]);
}

/* A connection that stays and says nothing is lost too, and one that beats is not. */
static void silence(void)
{
	struct json_object *session;
	struct box silent, beating;

	box_make(&silent, NULL, NULL);
	box_make(&beating, NULL, NULL);
	box_attach(&silent, agent_policy(false, 1), "{\"silence_ms\": 400}");
	box_attach(&beating, agent_policy(false, 1), "{\"silence_ms\": 2000}");
	do {
		agent_do(beating.control, "Heartbeat", "{}");
		session = box_show(&silent);
		if (!strcmp(json_text(session, "state"), "lost"))
			break;
		json_object_put(session);
	} while (true);
	cr_expect(strstr(json_text(session, "cause"), "400 ms"), "%s", json_text(session, "cause"));
	json_object_put(session);
	box_await(&beating, "state", "live");
	box_free(&silent);
	box_free(&beating);
}

static void freeze_thaw_end(void)
{
	const char *const argv[] = { "/bin/sleep", "1000", NULL };
	struct sl_control *operator;
	struct json_object *session;
	struct box box;

	box_make(&box, &hold_exec, argv);
	box_attach(&box, agent_policy(false, 1), NULL);
	box_go(&box);
	agent_do(box.control, "Freeze", "{}");
	box_await_frozen(&box, true);
	/* A loss and its recovery do not end it; an operator's thaw does. */
	box_recover(&box);
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "wanted"), "frozen");
	json_object_put(session);
	box_await_frozen(&box, true);
	operator= agent_connect();
	agent_do(operator, "Thaw", "{'sandbox': '%s'}", box.sandbox);
	box_await_frozen(&box, false);
	/* Not while something runs, and nothing changes then. */
	json_object_put(
		agent_refused(operator, "Busy", "Detach", "{'sandbox': '%s'}", box.sandbox));
	agent_do(box.control, "Heartbeat", "{}");
	agent_do(operator, "End", "{'sandbox': '%s', 'end': 'frozen', 'reason': 'by the test'}",
		 box.sandbox);
	sl_control_free(&operator);
	box_await_frozen(&box, true);
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "reason"), "by the test");
	json_object_put(session);
	box_free(&box);
}

/* Changes reach who watches, the last one as well. */
static void watch(void)
{
	struct sl_control *watcher = agent_connect();
	struct json_object *reply;
	char last[16] = "";
	struct box box;
	bool more;

	cr_assert_eq(sl_control_more(watcher, "io.sluice.Watch", NULL, NULL), 0);
	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	sl_control_free(&box.control);
	box_await(&box, "state", "lost");
	box_recover(&box);
	box_free(&box);
	while (strcmp(last, "gone") != 0) {
		cr_assert_eq(sl_control_next(watcher, 10000, &reply, &more, NULL), 0);
		cr_expect(more);
		cr_expect_eq(json_object_get_int(json_at(reply, "lost")), 0);
		snprintf(last, sizeof(last), "%s", json_text(reply, "event"));
		json_object_put(reply);
	}
	sl_control_free(&watcher);
}

/* What `sluice` shows and does by way of the agent, and without. */
static void seen_by_sluice(void)
{
	struct json_object *json;
	struct cli cli;
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	CLI(&cli, "-j", "--set", agent.set, "--agent", agent.socket, "sandbox", "show",
	    box.sandbox);
	json = json_of(cli.out);
	cr_expect_str_eq(json_text(json, "session.state"), "live");
	json_object_put(json);
	cli_free(&cli);
	CLI(&cli, "--set", agent.set, "--agent", agent.socket, "sandbox", "list");
	cr_expect_not_null(strstr(cli.out, " SINCE "), "since when is it live? %s", cli.out);
	cli_free(&cli);
	CLI(&cli, "-j", "--set", agent.set, "--agent", agent.socket, "status", "--no-canary");
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	json = json_of(cli.out);
	cr_expect_eq(json_object_array_length(json_at(json, "agent.sessions")), 2);
	json_object_put(json);
	cli_free(&cli);
	CLI(&cli, "--set", agent.set, "--agent", agent.socket, "sandbox", "freeze", box.sandbox);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cli_free(&cli);
	box_await_frozen(&box, true);
	CLI(&cli, "--set", agent.set, "--agent", agent.socket, "sandbox", "thaw", box.sandbox);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cli_free(&cli);
	box_await_frozen(&box, false);
	/* The set alone: the agent's is not the usual socket. */
	CLI(&cli, "--set", agent.set, "sandbox", "list");
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	cr_expect_null(strstr(cli.out, "SESSION"));
	cli_free(&cli);
	CLI(&cli, "--agent", "/nowhere/control.sock", "sandbox", "list");
	cli_expect_error(&cli, 1, "can't reach the agent");
	cli_free(&cli);
	box_free(&box);
}

/* Beside one that is there all the time, whose set they share: to load one takes a second. */
Test(agent_session, one_after_the_other)
{
	struct box other;

	box_make(&other, NULL, NULL);
	box_attach(&other, agent_policy(false, 1), NULL);
	recover_before_the_end_is_noticed();
	report_refused_again_and_again();
	silence();
	freeze_thaw_end();
	watch();
	seen_by_sluice();
	agent_do(other.control, "Heartbeat", "{}");
	box_free(&other);
}
