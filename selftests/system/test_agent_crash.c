/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* N13, S7, S11: sluiced killed at any instant, and what it finds when it starts. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"
#include "system/scale.h"
#include "system/world.h"

TestSuite(agent_crash, .init = agent_up, .fini = agent_down, .timeout = 240);

#define CALLS SCALED(1000)
#define KILLS 5

static const struct sl_filter_options hold_calls = { .hold = SL_HOLD_CONNECT };

static bool has_ended(const struct box *box)
{
	siginfo_t info = { .si_pid = 0 };

	cr_assert_eq(waitid(P_PID, (id_t)box->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid;
}

/* Waits until this worker has received a call, or there are none any more. */
static void await_call(const struct box *box)
{
	struct sl_control *control = agent_connect();
	struct json_object *status;
	int64_t calls = 0;

	while (!calls && !has_ended(box)) {
		status = agent_call(control, "Status", "{}");
		calls = json_object_get_int64(json_at(status, "calls"));
		json_object_put(status);
	}
	sl_control_free(&control);
}

static unsigned int restarts(void)
{
	struct sl_control *control = agent_connect();
	struct json_object *status = agent_call(control, "Status", "{}");
	unsigned int n = (unsigned int)json_object_get_uint64(json_at(status, "restarts"));

	json_object_put(status);
	sl_control_free(&control);
	return n;
}

static bool no_listeners(void *arg)
{
	struct sl_control *control = agent_connect();
	struct json_object *status = agent_call(control, "Status", "{}");
	unsigned int n = (unsigned int)json_object_get_uint64(json_at(status, "listeners"));

	(void)arg;
	json_object_put(status);
	sl_control_free(&control);
	return !n;
}

static bool has_fds(void *arg)
{
	return agent_fds(agent.pid) == *(unsigned int *)arg;
}

/*
 * 1,000 clients, 250 at a time, of which each one's connect() is held, under a policy whose
 * binary somebody has to look at; workers are killed meanwhile. Each is answered, by the policy.
 */
static void connect_and_kill(bool allowed)
{
	unsigned int port, kills = 0, before = restarts(), fds = agent_fds(agent.pid);
	int server = held_server(&port);
	char address[32], count[16], jobs[16], expected[16], *out;
	const char *const argv[] = { getenv("SL_LOAD"), "tcp-exit", "--count",  count,
				     "--jobs",          jobs,       "--server", address,
				     "--timeout",       "180",      NULL };
	struct json_object *status;
	struct sl_control *control;
	struct box box;

	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	snprintf(count, sizeof(count), "%d", CALLS);
	snprintf(jobs, sizeof(jobs), "%d", CALLS / 4);
	box_make(&box, &hold_calls, argv);
	box_attach(&box, agent_policy(true, allowed ? port : 1), "{\"hold\": \"connect\"}");
	box_go(&box);
	for (; kills < KILLS && !has_ended(&box); kills++) {
		pid_t worker = agent_worker();

		await_call(&box);
		cr_assert_eq(kill(worker, SIGKILL), 0);
	}
	cr_expect_gt(kills, 1, "it was over before a worker could be killed");
	box_recover(&box);
	cr_expect_eq(box_wait(&box), allowed ? 0 : 1);
	/* Of each child its errno: none was let through, none saw ENOSYS or was forgotten. */
	out = box_output(&box);
	snprintf(expected, sizeof(expected), " exit=%d\n", allowed ? 0 : EACCES);
	cr_expect_eq(text_count(out, expected), CALLS, "%s", out);
	free(out);
	cr_expect_eq(held_accepted(server), allowed ? CALLS : 0);
	control = agent_connect();
	status = agent_call(control, "Status", "{}");
	cr_expect_eq(json_object_get_int(json_at(status, "faults")), 0);
	cr_expect_eq(json_object_get_uint64(json_at(status, "restarts")), before + kills);
	json_object_put(status);
	sl_control_free(&control);
	close(server);
	box_free(&box);
	/* With its last task, a listener is nobody's any more: neither the worker's nor the keeper's. */
	cr_expect(eventually(no_listeners, NULL));
	cr_expect(eventually(has_fds, &fds), "the keeper has %u descriptors, it had %u",
		  agent_fds(agent.pid), fds);
}

Test(agent_crash, workers_killed_with_calls_in_hand)
{
	connect_and_kill(true);
	connect_and_kill(false);
}

/* A worker whose loop stands still is followed up; its calls and sessions are there. */
Test(agent_crash, worker_hangs)
{
	const char *const argv[] = { "/bin/sh", "-c", "exec /bin/true", NULL };
	struct box box;
	pid_t worker;
	char *log;

	agent_worker();
	cr_expect_eq(agent_end(SIGTERM), 0);
	cr_assert_eq(setenv("WATCHDOG_USEC", "2000000", 1), 0);
	agent_start();
	box_make(&box, &hold_exec, argv);
	box_attach(&box, agent_policy(true, 1), NULL);
	worker = agent_worker();
	cr_assert_eq(kill(worker, SIGSTOP), 0);
	box_go(&box);
	/* Whoever comes meanwhile waits for the next one. */
	cr_expect_neq(agent_worker(), worker);
	box_recover(&box);
	cr_expect_eq(box_wait(&box), 0);
	cr_expect_eq(restarts(), 1);
	log = agent_log();
	cr_expect_not_null(strstr(log, "has done nothing for 2000 ms"), "%s", log);
	free(log);
	box_free(&box);
}

/* Lets so many come that were not sent when this was called. */
static void await_clients(int server, unsigned int count)
{
	struct pollfd fd = { .fd = server, .events = POLLIN };

	held_accepted(server);
	while (count--) {
		cr_assert_eq(poll(&fd, 1, 20000), 1, "no client comes any more");
		close(accept(server, NULL, NULL));
	}
}

static void address_of(int fd, char *out, size_t size, unsigned int *port)
{
	struct sockaddr_in addr = { .sin_port = 0 };
	socklen_t len = sizeof(addr);

	cr_assert_eq(getpeername(fd, (struct sockaddr *)&addr, &len), 0);
	*port = ntohs(addr.sin_port);
	snprintf(out, size, "{'addr': '127.0.0.1', 'port': %u}", *port);
}

/* Who owns the other end of a connection that was accepted, as the agent tells it. */
static void expect_known(int stream, unsigned int server_port)
{
	struct sl_control *control = agent_connect();
	const struct sl_fds fds = { { stream }, 1 };
	struct json_object *params, *reply;
	struct sl_err err = {};
	unsigned int port;
	char peer[64];

	address_of(stream, peer, sizeof(peer), &port);
	reply = agent_call(control, "ResolveTuple",
			   "{'transport': 'tcp', 'local': %s, 'remote': {'addr': '127.0.0.1', "
			   "'port': %u}}",
			   peer, server_port);
	cr_expect_str_eq(json_text(reply, "socket.found"), "live");
	cr_expect_str_eq(json_text(reply, "socket.socket.process.exe.path"), getenv("SL_LOAD"));
	json_object_put(reply);
	params = json_tokener_parse("{\"socket_fd\": 0}");
	cr_expect_eq(sl_control_call(control, "io.sluice.ResolveFd", params, &fds, &reply, &err), 0,
		     "%s", err.text);
	cr_expect_str_eq(json_text(reply, "socket.socket.process.exe.path"), getenv("SL_LOAD"));
	json_object_put(reply);
	sl_control_free(&control);
}

/*
 * The agent killed whole, and started again, while its sandbox works: what is denied never
 * arrives, what is allowed goes on, sockets of before are known.
 */
Test(agent_crash, agent_killed_under_load)
{
	unsigned int port, shut_port;
	int server = held_server(&port), shut = held_server(&shut_port), stream;
	char script[2048];
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	struct pollfd first = { .fd = server, .events = POLLIN };
	const char *const sleeper[] = { "/bin/sleep", "1000", NULL };
	struct json_object *session;
	struct box box, mediated;

	snprintf(script, sizeof(script),
		 "exec 3<&0; L=%s; S='--quiet --count 20 --server 127.0.0.1:'\n"
		 "$L tcp-idle --count 1 --server 127.0.0.1:%u <&3 &\n"
		 "until [ -e %s/go ]; do /bin/sleep 0.01; done\n"
		 "while :; do $L tcp-exit ${S}%u; done 2>/dev/null &\n"
		 "while :; do $L tcp-exit ${S}%u; done 2>/dev/null",
		 getenv("SL_LOAD"), port, agent.dir, shut_port, port);
	box_make(&box, NULL, argv);
	box_attach(&box, agent_policy(false, port), "{\"freeze_on_loss\": false}");
	box_go(&box);
	cr_assert_eq(poll(&first, 1, 20000), 1);
	box_make(&mediated, &hold_exec, sleeper);
	box_attach(&mediated, agent_policy(true, port), "{\"freeze_on_loss\": false}");
	box_go(&mediated);
	stream = accept(server, NULL, NULL);
	snprintf(script, sizeof(script), "%s/go", agent.dir);
	cr_assert_eq(mkdir(script, 0700), 0);
	await_clients(server, 20);
	cr_expect_eq(agent_end(SIGKILL), 128 + SIGKILL);
	await_clients(server, 40);
	agent_start();
	await_clients(server, 40);
	box_recover(&box);
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "state"), "live");
	cr_expect(json_object_get_boolean(json_at(session, "enforced")), "%s",
		  json_object_to_json_string(session));
	json_object_put(session);
	expect_known(stream, port);
	/* What a listener was held for is said to be lost with the keeper. */
	session = box_show(&mediated);
	cr_expect_str_eq(json_text(box_condition(session, "Listener"), "reason"), "KeeperDied");
	cr_expect_not(json_object_get_boolean(json_at(session, "listener")));
	json_object_put(session);
	await_clients(server, 20);
	cr_expect_eq(held_accepted(shut), 0);
	box_free(&mediated);
	close(stream);
	close(shut);
	close(server);
	box_free(&box);
}

/* A set of another schema is refused, and what it enforces is left alone. */
Test(agent_crash, set_of_another_schema)
{
	struct sl_config config;
	struct sl_err err = {};
	struct sl_set *set;
	__u32 zero = 0;
	char *log;

	agent_worker();
	cr_expect_eq(agent_end(SIGTERM), 0);
	cr_assert_eq(sl_set_create(&set, agent.set, NULL, &err), 0, "%s", err.text);
	cr_assert_eq(bpf_map_lookup_elem(sl_set_map_fd(set, SL_MAP_CONFIG), &zero, &config), 0);
	config.schema++;
	cr_assert_eq(bpf_map_update_elem(sl_set_map_fd(set, SL_MAP_CONFIG), &zero, &config, 0), 0);
	agent_start();
	cr_expect_eq(held_wait(agent.pid), 1);
	agent.pid = 0;
	log = agent_log();
	cr_expect(strstr(log, "has schema"), "%s", log);
	free(log);
	cr_expect_not(sl_set_gone(set));
	sl_set_free(&set);
}
