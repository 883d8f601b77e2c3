/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * S1 to S6 with a runtime by libsluice and a workload whose data moves: the connection
 * between runtime and agent is cut, and no stream loses a byte.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/cgroup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/cut.h"
#include "system/expect.h"
#include "system/flow.h"
#include "system/held.h"
#include "system/scale.h"

#define WAIT_MS 60000
#define LONG_CUT_MS SCALED(5000)
#define GRACE_MS 300

#define MOVED 32768 /* bytes of each stream by which it has moved */

static struct sl_runtime *rt;
static struct sl_gate *gate;
static struct box box; /* its cgroup and its number */
static struct cut cut;
static unsigned int port;
static int server;
static pid_t workload;
static int dispatched; /* the latest answer of dispatch */

static void up(void)
{
	char path[128];

	agent_up();
	snprintf(path, sizeof(path), "%s/cut.sock", agent.dir);
	cut_up(&cut, path, agent.socket);
	server = held_server(&port);
	cr_assert_eq(sl_runtime_new(&rt, "test", "1"), 0);
}

static void down(void)
{
	sl_gate_free(&gate);
	sl_runtime_free(&rt);
	cut_down(&cut);
	close(server);
	agent_down();
}

TestSuite(agent_cut, .init = up, .fini = down, .timeout = 120);

/* --- a workload that sends back what it is sent, on many streams --- */

static void start_workload(unsigned int plan, int *listener)
{
	char address[32], count[16], timeout[16];
	const char *load = getenv("SL_LOAD");

	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	snprintf(count, sizeof(count), "%d", FLOWS);
	snprintf(timeout, sizeof(timeout), "%d", 2 * WAIT_MS / 1000);
	cr_assert_not_null(load);
	cr_assert_eq(sl_gate_new(&gate), 0);
	cr_assert_eq(sl_gate_set(gate, plan, 0), 0, "%s", sl_gate_error(gate));
	workload = fork();
	cr_assert_geq(workload, 0);
	if (!workload) {
		if (sl_cgroup_enter(box.cgroup, 0, NULL) || sl_gate_pass(gate))
			_exit(99);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
		execl(load, load, "tcp-idle", "--echo", "--server", address, "--count", count,
		      "--timeout", timeout, NULL);
		_exit(98);
	}
	cr_assert_eq(sl_gate_listener(gate, WAIT_MS, listener), 0, "%s", sl_gate_error(gate));
}

/* A session by libsluice, through the place where it can be cut. */
static void start_session(unsigned int grace_ms, enum sl_end end)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;

	box_make(&box, NULL, NULL);
	cr_assert_eq(sl_runtime_connect(rt, cut.socket, WAIT_MS), 0, "%s", sl_runtime_error(rt));
	attach.policy = agent_policy(true, port);
	cr_assert_eq(sl_runtime_plan(rt, attach.policy, NULL, SL_HOLD_AUTO, &attach.plan), 0, "%s",
		     sl_runtime_error(rt));
	start_workload(attach.plan, &attach.listener_fd);
	attach.cgroup = box.cgroup;
	attach.silence_ms = WAIT_MS;
	attach.grace_ms = grace_ms;
	attach.end = end;
	cr_assert_eq(sl_runtime_attach(rt, &attach), 0, "%s", sl_runtime_error(rt));
	close(attach.listener_fd);
	snprintf(box.sandbox, sizeof(box.sandbox), "%s", sl_runtime_sandbox(rt));
	cr_assert_eq(sl_gate_open(gate), 0, "%s", sl_gate_error(gate));
	flows_accept(server);
}

/* --- data that moves, while the runtime does what it has to --- */

/* One round; how many streams were ready. */
static unsigned int pump(int timeout_ms)
{
	struct pollfd fd = { .fd = sl_runtime_fd(rt), .events = POLLIN };
	unsigned int ready = flows_round(&fd, timeout_ms);

	if (fd.revents && sl_runtime_state(rt) != SL_RUNTIME_OVER)
		dispatched = sl_runtime_dispatch(rt);
	return ready;
}

/* Until each stream has brought back so much more. */
static void expect_all_move(const char *when)
{
	int64_t end_ms = sl_monotonic_ms() + WAIT_MS;
	uint64_t wanted[FLOWS];
	int moved = 0;

	for (int i = 0; i < FLOWS; i++)
		wanted[i] = flows[i].received + MOVED;
	while (moved < FLOWS) {
		cr_assert_lt(sl_monotonic_ms(), end_ms, "%s: stream %d does not move", when, moved);
		pump(100);
		while (moved < FLOWS && flows[moved].received >= wanted[moved])
			moved++;
	}
}

/* What Show says meanwhile, asked for from somewhere else. */
static void pump_until(const char *member, const char *text)
{
	int64_t end_ms = sl_monotonic_ms() + WAIT_MS;
	bool same = false;

	while (!same) {
		int64_t next_ms = sl_monotonic_ms() + 20;
		struct json_object *session = box_show(&box);

		same = !strcmp(json_text(session, member), text);
		cr_assert_lt(next_ms, end_ms, "%s does not become %s: %s", member, text,
			     json_object_to_json_string(session));
		json_object_put(session);
		while (!same && sl_monotonic_ms() < next_ms)
			pump(5);
	}
}

static void pump_until_live(uint64_t epoch)
{
	int64_t end_ms = sl_monotonic_ms() + WAIT_MS;
	struct json_object *session;

	while (sl_runtime_state(rt) != SL_RUNTIME_LIVE) {
		cr_assert_lt(sl_monotonic_ms(), end_ms, "%s", sl_runtime_error(rt));
		pump(5);
	}
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "state"), "live");
	cr_expect_eq(json_object_get_uint64(json_at(session, "epoch")), epoch);
	cr_expect(json_object_get_boolean(json_at(session, "enforced")));
	json_object_put(session);
}

static void expect_all_came_back(void)
{
	flows_end();
	cr_expect_eq(held_wait(workload), 0);
}

static unsigned int log_count(const char *text)
{
	char *log = agent_log();
	unsigned int n = text_count(log, text);

	free(log);
	return n;
}

/* --- cuts --- */

/* The runtime is back before the agent knows that it was away. */
static void cut_unnoticed(void)
{
	struct json_object *session;

	cut_now(&cut, CUT_RUNTIME, 4);
	while (sl_runtime_state(rt) == SL_RUNTIME_LIVE)
		pump(100);
	pump_until_live(2);
	expect_all_move("recovered before the old end was noticed");
	/* Nothing was lost, nothing is frozen. */
	cr_expect_eq(log_count("had not ended was displaced"), 1);
	cr_expect_eq(log_count("Session is False"), 0);
	cut_release(&cut);
	expect_all_move("the old end arrives");
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "state"), "live");
	cr_expect_eq(json_object_get_uint64(json_at(session, "epoch")), 2);
	json_object_put(session);
	cr_expect_eq(log_count("Session is False"), 0);
}

static void cut_for_a_moment(void)
{
	cut_now(&cut, CUT_BOTH, 4);
	while (sl_runtime_state(rt) == SL_RUNTIME_LIVE)
		pump(100);
	pump_until_live(3);
	box_await_frozen(&box, false);
	expect_all_move("after 4 ms");
	cr_expect_eq(log_count("Session is False: Lost: the connection was closed"), 1);
}

static bool is_frozen(void *arg)
{
	char path[PATH_MAX + 16], *text;
	bool frozen;

	(void)arg;
	snprintf(path, sizeof(path), "%s/cgroup.events", box.cgroup);
	text = agent_text(path);
	frozen = strstr(text, "frozen 1");
	free(text);
	return frozen;
}

static void cut_for_seconds(void)
{
	int64_t end_ms;
	uint64_t before;

	cut_now(&cut, CUT_BOTH, CUT_FOR_EVER);
	pump_until("state", "lost");
	cr_assert(eventually(is_frozen, NULL));
	while (pump(0))
		;
	before = flows_received();
	end_ms = sl_monotonic_ms() + LONG_CUT_MS;
	while (sl_monotonic_ms() < end_ms)
		pump((int)(end_ms - sl_monotonic_ms()));
	cr_expect_eq(flows_received(), before, "a frozen workload sends");
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_LOST);
	cr_expect_eq(dispatched, 0, "no end: %s", sl_runtime_error(rt));
	cut_heal(&cut);
	pump_until("state", "live");
	box_await_frozen(&box, false);
	expect_all_move("after seconds");
}

Test(agent_cut, streams_go_on)
{
	start_session(WAIT_MS, SL_END_DEFAULT);
	expect_all_move("at the start");
	cut_unnoticed();
	cut_for_a_moment();
	cut_for_seconds();
	cr_expect_eq(box_connect(&box, port), 0);
	cr_expect_neq(box_connect(&box, port == 1 ? 2 : port - 1), 0);
	close(accept(server, NULL, NULL));
	expect_all_came_back();
	cr_expect_eq(sl_runtime_detach(rt, SL_DETACH_REFUSE), 0, "%s", sl_runtime_error(rt));
	box.sandbox[0] = '\0';
	box_free(&box);
}

/* Past the grace time: the end that was asked for, and its cause on both sides. */
static void cut_past_the_grace(void)
{
	struct json_object *session;
	const char *reason;

	cut_now(&cut, CUT_BOTH, CUT_FOR_EVER);
	pump_until("state", "ended");
	session = box_show(&box);
	reason = json_text(session, "reason");
	cr_expect_str_eq(reason, "no recovery within 300 ms after the loss: the connection was "
				 "closed");
	cut_heal(&cut);
	while (sl_runtime_state(rt) != SL_RUNTIME_OVER)
		pump(100);
	cr_expect_eq(dispatched, -ESHUTDOWN);
	cr_expect(strstr(sl_runtime_error(rt), reason), "%s", sl_runtime_error(rt));
	json_object_put(session);
}

Test(agent_cut, past_the_grace_goes_on)
{
	start_session(GRACE_MS, SL_END_GO_ON);
	expect_all_move("at the start");
	cut_past_the_grace();
	expect_all_move("under its last policy");
	cr_expect_neq(box_connect(&box, port == 1 ? 2 : port - 1), 0);
	expect_all_came_back();
	box_free(&box);
}

Test(agent_cut, past_the_grace_stays_frozen)
{
	uint64_t before;

	start_session(GRACE_MS, SL_END_STAY_FROZEN);
	expect_all_move("at the start");
	cut_past_the_grace();
	cr_assert(eventually(is_frozen, NULL));
	while (pump(0))
		;
	before = flows_received();
	/* Nobody's connection was ended for it, and nothing comes on them. */
	pump(0);
	cr_expect_eq(flows_received(), before);
	box_free(&box);
	held_wait(workload);
	flows_close();
}

/* --- beside the streams --- */

static void report_refused(void)
{
	struct sl_runtime_report report = SL_RUNTIME_REPORT_INIT;
	struct json_object *session, *condition;

	report.type = "Status";
	report.status = SL_STATUS_FALSE;
	report.reason = "Refused";
	report.message = "the gateway refused the status report";
	report.bad = true;
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(sl_runtime_report(rt, &report), 0, "%s", sl_runtime_error(rt));
	session = box_show(&box);
	condition = box_condition(session, "Status");
	cr_expect_eq(json_object_get_int(json_at(condition, "count")), 1000);
	cr_expect_str_eq(json_text(condition, "level"), "error");
	cr_expect_str_eq(json_text(condition, "message"), report.message);
	json_object_put(session);
	cr_expect_eq(log_count("Status is False: Refused"), 3);
}

/*
 * Components of other versions are refused before anything is launched, also when one is
 * exchanged while a session lives: its workload is then the grace time's.
 */
Test(agent_cut, reports_and_mixed_versions)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;
	struct sl_runtime *other = NULL;

	box_make(&box, NULL, NULL);
	cr_assert_eq(sl_runtime_connect(rt, cut.socket, WAIT_MS), 0, "%s", sl_runtime_error(rt));
	attach.cgroup = box.cgroup;
	attach.policy = agent_policy(false, port);
	cr_assert_eq(sl_runtime_attach(rt, &attach), 0, "%s", sl_runtime_error(rt));
	snprintf(box.sandbox, sizeof(box.sandbox), "%s", sl_runtime_sandbox(rt));
	report_refused();
	cut_other_version(&cut);
	cr_assert_eq(sl_runtime_new(&other, "newer", "7.5"), 0);
	cr_expect_eq(sl_runtime_connect(other, cut.socket, WAIT_MS), -EPROTONOSUPPORT);
	cr_expect(strstr(sl_runtime_error(other), "newer"), "%s", sl_runtime_error(other));
	cr_expect(strstr(sl_runtime_error(other), "sluiced"), "%s", sl_runtime_error(other));
	cr_expect(strstr(sl_runtime_error(other), "7"), "%s", sl_runtime_error(other));
	cr_expect_eq(sl_runtime_attach(other, &attach), -EPROTONOSUPPORT);
	cr_expect_str_eq(sl_runtime_sandbox(other), "");
	sl_runtime_free(&other);
	/* The session of who came before was not touched. */
	box_await(&box, "state", "live");
	box_free(&box);
}
