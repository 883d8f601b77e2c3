/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Egress of sandboxes that the agent hosts, by libsluice and by `sluice run`: an agent, a DNS
 * server and a server in a network namespace of the test's, with addresses that are nobody's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "kernel/netns.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/guarded.h"
#include "system/held.h"

#define WAIT_MS 30000

static struct {
	struct cli dns;
	struct load server;
	unsigned int port;
} here;

/* --- the world --- */

static void write_file(const char *name, const char *text, const char *over)
{
	_cleanup_file_ FILE *file = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", agent.dir, name);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
	if (over)
		cr_assert_eq(mount(path, over, NULL, MS_BIND, NULL), 0, "%s", strerror(errno));
}

static void up(void)
{
	char command[512];

	cr_assert_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0, "%s", strerror(errno));
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	cr_assert_eq(system("ip link set lo up && ip addr add 192.0.2.53/32 dev lo && "
			    "ip addr add 192.0.2.80/32 dev lo"),
		     0);
	agent_up();
	(void)agent_worker();
	write_file("resolv.conf", "nameserver 192.0.2.53\n", "/etc/resolv.conf");
	write_file("nsswitch.conf", "hosts: dns\n", "/etc/nsswitch.conf");
	write_file("hosts", "192.0.2.80 www.test\n192.0.2.80 two.test\n192.0.2.80 other.test\n",
		   NULL);
	snprintf(command, sizeof(command),
		 "exec dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts "
		 "--addn-hosts=%s/hosts --local=/test/ --pid-file= --user=root --group=root "
		 "--listen-address=192.0.2.53 --bind-interfaces --log-facility=- 2>&1",
		 agent.dir);
	cli_start(&here.dns, NULL, (const char *const[]){ "/bin/sh", "-c", command, NULL });
	cli_await(&here.dns, "names\n");
	here.port = server_start_at(&here.server, OUTSIDE,
				    "tcp-server --echo --quiet --fork --count 10000",
				    "192.0.2.80:0");
}

static void down(void)
{
	load_end(&here.server);
	load_free(&here.server);
	kill(here.dns.pid, SIGKILL);
	cli_end(&here.dns);
	cli_free(&here.dns);
	umount("/etc/resolv.conf");
	umount("/etc/nsswitch.conf");
	agent_down();
}

TestSuite(agent_egress, .init = up, .fini = down, .timeout = 120);

static const char *policy(const char *name)
{
	static char text[PATH_MAX + 512];

	snprintf(text, sizeof(text),
		 "version: 1\nnetwork_policies:\n  names:\n    endpoints:\n"
		 "      - { host: two.test, port: %u, allowed_ips: [192.0.2.0/24] }\n"
		 "      - { host: %s, port: %u, allowed_ips: [192.0.2.0/24] }\n"
		 "    binaries: [{ path: %s }]\n",
		 here.port, name, here.port, getenv("SL_LOAD"));
	return text;
}

/* --- a runtime in miniature --- */

struct runtime {
	struct sl_runtime *rt;
	struct sl_gate *gate;
	char cgroup[PATH_MAX], output[128];
	int netns; /* -1: the test's */
	int in;    /* write end of its stdin */
	pid_t pid;
};

/*
 * Two names, of which the second is used: by its address at each step, and looked up again at
 * the end; what is printed says what came of it.
 */
static const char script[] =
	"by() { getent ahosts $1 | { while read a x; do case $a in *:*) ;; *) echo $a; break;; esac; "
	"done; }; }\n"
	"echo two $(by two.test); A=$(by www.test); echo www $A\n"
	"go() { \"$0\" tcp-send --recv recv --bytes 10 --count 1 --server $1 >&2; }\n"
	"for step in 1 2 3 4; do\n"
	"  read line; go $A:$1 && echo step$step || echo denied$step\n"
	"done\n"
	"by other.test | grep . || echo no other\n"
	"echo again $(by www.test) two $(by two.test)\n";

static _Noreturn void child(struct runtime *r, int in)
{
	char port[16];
	int out = open(r->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	snprintf(port, sizeof(port), "%u", here.port);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if ((r->netns >= 0 && setns(r->netns, CLONE_NEWNET)) || sl_cgroup_enter(r->cgroup, 0, NULL))
		_exit(98);
	if (sl_gate_pass(r->gate))
		_exit(97);
	execl("/bin/sh", "sh", "-c", script, getenv("SL_LOAD"), port, NULL);
	_exit(96);
}

static void runtime_make(struct runtime *r, int netns)
{
	static unsigned int n;
	char mount[PATH_MAX / 2];
	unsigned int plan;
	int in[2];

	*r = (struct runtime){ .netns = netns, .in = -1 };
	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	snprintf(r->cgroup, sizeof(r->cgroup), "%s/sl-test-%d-e%u", mount, getpid(), ++n);
	snprintf(r->output, sizeof(r->output), "%s/out-%u", agent.dir, n);
	cr_assert_eq(sl_cgroup_create(r->cgroup, NULL), 0);
	cr_assert_eq(sl_runtime_new(&r->rt, "test", "1"), 0);
	cr_assert_eq(sl_runtime_connect(r->rt, agent.socket, WAIT_MS), 0, "%s",
		     sl_runtime_error(r->rt));
	cr_assert_eq(sl_runtime_plan(r->rt, policy("www.test"), NULL, SL_HOLD_AUTO, &plan), 0);
	cr_assert_eq(sl_gate_new(&r->gate), 0);
	cr_assert_eq(sl_gate_set(r->gate, plan, 0), 0, "%s", sl_gate_error(r->gate));
	cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
	r->pid = fork();
	cr_assert_geq(r->pid, 0);
	if (!r->pid)
		child(r, in[0]);
	close(in[0]);
	r->in = in[1];
}

static int runtime_attach(struct runtime *r, const struct sl_runtime_egress *egress)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;
	int ret;

	attach.cgroup = r->cgroup;
	attach.policy = policy("www.test");
	attach.egress = egress;
	/* It outlives the agent's death by itself. */
	attach.silence_ms = SL_SILENCE_NEVER;
	attach.grace_ms = 600000;
	attach.run_on_loss = true;
	cr_assert_eq(sl_gate_listener(r->gate, WAIT_MS, &attach.listener_fd), 0, "%s",
		     sl_gate_error(r->gate));
	ret = sl_runtime_attach(r->rt, &attach);
	close(attach.listener_fd);
	return ret;
}

/* Ends all of it. */
static void runtime_free(struct runtime *r)
{
	if (sl_runtime_sandbox(r->rt)[0]) {
		(void)sl_runtime_recover(r->rt, WAIT_MS);
		cr_expect_eq(sl_runtime_detach(r->rt, SL_DETACH_KILL), 0, "%s",
			     sl_runtime_error(r->rt));
	}
	sl_gate_free(&r->gate);
	sl_runtime_free(&r->rt);
	sl_cleanup_fd(&r->in);
	sl_cgroup_kill(r->cgroup);
	waitpid(r->pid, NULL, 0);
	cr_expect_eq(sl_cgroup_destroy(r->cgroup, WAIT_MS), 0);
}

struct awaited {
	const struct runtime *r;
	const char *text;
};

static bool has_said(void *arg)
{
	const struct awaited *awaited = arg;
	_cleanup_free_ char *said = agent_text(awaited->r->output);

	return strstr(said, awaited->text);
}

static void await(const struct runtime *r, const char *text)
{
	struct awaited awaited = { r, text };
	_cleanup_free_ char *said = NULL;
	bool came = eventually(has_said, &awaited);

	said = agent_text(r->output);
	cr_assert(came, "no '%s' in: %s", text, said);
}

/* One more connection to the address of before, and what it is to print then. */
static void step(const struct runtime *r, const char *text)
{
	cr_assert_eq(write(r->in, "\n", 1), 1);
	await(r, text);
}

/* The session, from a connection of its own; freed by the caller. */
static struct json_object *show(const struct runtime *r)
{
	struct sl_control *control = agent_connect();
	struct json_object *reply =
		agent_call(control, "Show", "{'sandbox': '%s'}", sl_runtime_sandbox(r->rt));
	struct json_object *session = json_object_get(json_at(reply, "session"));

	json_object_put(reply);
	sl_control_free(&control);
	return session;
}

static uint64_t count(const struct runtime *r, const char *what)
{
	struct json_object *session = show(r);
	uint64_t value = json_object_get_uint64(json_at(session, what));

	json_object_put(session);
	return value;
}

static bool serves(void *arg)
{
	struct json_object *session = show(arg);
	bool serving = json_object_get_boolean(json_at(session, "egress.serving"));

	json_object_put(session);
	return serving;
}

/* Then the next one to take a connection is another. */
static bool is_reaped(void *arg)
{
	return kill(*(pid_t *)arg, 0) && errno == ESRCH;
}

/* --- tests --- */

/*
 * What was resolved before is reached after the worker's death, and after the keeper's; then
 * the policy takes it back.
 */
static void expect_goes_on(struct runtime *r, bool relay)
{
	pid_t worker = agent_worker();

	await(r, relay ? "two 198.18.0.1\nwww 198.18.0.2\n" : "two 192.0.2.80\nwww 192.0.2.80\n");
	step(r, "step1");
	cr_expect_geq(count(r, "egress.queries"), 2);
	cr_expect_eq(count(r, "egress.streams"), relay ? 1 : 0);
	cr_expect_eq(count(r, "egress.strangers"), 0);
	cr_expect_gt(count(r, "egress.leases"), 0);

	cr_assert_eq(kill(worker, SIGKILL), 0);
	cr_assert(eventually(is_reaped, &worker));
	cr_assert(eventually(serves, r));
	step(r, "step2");
	cr_expect_eq(count(r, "egress.streams"), relay ? 1 : 0);

	worker = agent_worker();
	cr_assert_eq(agent_end(SIGKILL), 128 + SIGKILL);
	/* It dies with its keeper, a little later, and takes connections until then. */
	cr_assert_eq(held_wait(worker), 128 + SIGKILL);
	agent_start();
	cr_assert(eventually(serves, r));
	step(r, "step3");

	cr_assert_eq(sl_runtime_recover(r->rt, WAIT_MS), 0, "%s", sl_runtime_error(r->rt));
	cr_assert_eq(sl_runtime_update(r->rt, policy("later.test"), NULL, SL_MODE_DEFAULT), 0, "%s",
		     sl_runtime_error(r->rt));
	step(r, relay ? "denied4" : "step4"); /* two.test has the same address there */
	await(r, "no other");
	await(r, relay ? "again two 198.18.0.1\n" : "again two 192.0.2.80\n");
	cr_expect_geq(count(r, "egress.refused_names"), 2);
}

Test(agent_egress, relay)
{
	struct sl_runtime_egress egress = SL_RUNTIME_EGRESS_INIT;
	struct runtime r;
	int netns;

	cr_assert_eq(sl_netns_new(&netns, NULL), 0);
	runtime_make(&r, netns);
	egress.net = SL_NET_RELAY;
	egress.netns_fd = netns;
	cr_assert_eq(runtime_attach(&r, &egress), 0, "%s", sl_runtime_error(r.rt));
	close(netns);
	cr_assert_eq(sl_gate_open(r.gate), 0);
	expect_goes_on(&r, true);
	runtime_free(&r);
	cr_expect_eq(agent_sessions(), 0);
}

Test(agent_egress, host)
{
	struct sl_runtime_egress egress = SL_RUNTIME_EGRESS_INIT;
	static const char *const upstreams[] = { "192.0.2.53", NULL };
	struct runtime r;

	runtime_make(&r, -1);
	egress.upstreams = upstreams;
	cr_assert_eq(runtime_attach(&r, &egress), 0, "%s", sl_runtime_error(r.rt));
	cr_assert_eq(sl_gate_open(r.gate), 0);
	expect_goes_on(&r, false);
	runtime_free(&r);
	cr_expect_eq(agent_sessions(), 0);
}

static void expect_refused(struct runtime *r, const struct sl_runtime_egress *egress, int ret,
			   const char *text)
{
	cr_expect_eq(runtime_attach(r, egress), ret);
	cr_expect_not_null(strstr(sl_runtime_error(r->rt), text), "no '%s' in: %s", text,
			   sl_runtime_error(r->rt));
	cr_expect_eq(agent_sessions(), 0);
	runtime_free(r);
}

static int take_port(void *arg)
{
	const struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(53) };
	int *fd = arg;

	*fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return *fd < 0 || bind(*fd, (const struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
}

/* With the cause, and nothing is left: the same goes well once the cause is gone. */
Test(agent_egress, refused)
{
	struct sl_runtime_egress egress = SL_RUNTIME_EGRESS_INIT;
	static const char *const upstreams[] = { "nobody", NULL };
	struct runtime r;
	int netns, taken = -1;

	cr_assert_eq(sl_netns_new(&netns, NULL), 0);
	egress.net = SL_NET_RELAY;
	runtime_make(&r, -1);
	expect_refused(&r, &egress, -EINVAL, "a network namespace of the sandbox's own");
	egress.netns_fd = here.dns.fds[0];
	runtime_make(&r, -1);
	expect_refused(&r, &egress, -EINVAL, "no network namespace");
	egress.netns_fd = netns;
	egress.upstreams = upstreams;
	runtime_make(&r, netns);
	expect_refused(&r, &egress, -EINVAL, "nobody");
	egress.upstreams = NULL;
	egress.dns = SL_DNS_HOST;
	runtime_make(&r, netns);
	expect_refused(&r, &egress, -EINVAL, "no DNS but policy DNS");
	egress.dns = SL_DNS_AUTO;

	cr_assert_eq(sl_netns_run(netns, take_port, &taken), 0);
	runtime_make(&r, netns);
	expect_refused(&r, &egress, -EADDRINUSE, "the listener of DNS");
	close(taken);
	runtime_make(&r, netns);
	cr_assert_eq(runtime_attach(&r, &egress), 0, "%s", sl_runtime_error(r.rt));
	cr_assert_eq(sl_gate_open(r.gate), 0);
	await(&r, "www 198.18.0");
	step(&r, "step1");
	runtime_free(&r);
	close(netns);
}

/* sluice run, by the agent and without it: what is reached, denied and told is the same. */
static void expect_run(const char *by, const char *net)
{
	const char *command =
		"A=$(getent ahosts www.test | grep -o '^[0-9.]* ' | head -1); A=${A%% *}; "
		"\"$0\" tcp-send --recv recv --bytes 10 --count 1 --server $A:$1 >&2 "
		"&& echo reached; getent ahosts other.test || echo no other; "
		"\"$0\" tcp-send --bytes 10 --count 1 --server 192.0.2.80:1 "
		">/dev/null 2>&1 || echo refused";
	char path[128], port[16];
	struct cli cli;

	snprintf(path, sizeof(path), "%s/policy.yaml", agent.dir);
	snprintf(port, sizeof(port), "%u", here.port);
	write_file("policy.yaml", policy("www.test"), NULL);
	CLI(&cli, "--agent", by, "run", "--net", net, "--policy", path, "--", "sh", "-c", command,
	    getenv("SL_LOAD"), port);
	cr_expect_eq(cli.status, 0, "%s %s: %s", by, net, cli.err);
	cr_expect_not_null(strstr(cli.out, "reached\nno other\nrefused\n"), "%s %s: %s%s", by, net,
			   cli.out, cli.err);
	cr_expect_not_null(strstr(cli.err, "other.test: endpoint: no rule names"), "%s %s: %s", by,
			   net, cli.err);
	cr_expect_not_null(strstr(cli.err, "192.0.2.80:1"), "%s %s: %s", by, net, cli.err);
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}

Test(agent_egress, run_with_and_without)
{
	static const char *const nets[] = { "host", "relay" };

	for (size_t i = 0; i < ARRAY_SIZE(nets); i++) {
		expect_run(agent.socket, nets[i]);
		expect_run("none", nets[i]);
	}
	cr_expect_eq(agent_sessions(), 0);
}

/* A policy without names, for which nothing else is served: what it allows goes to the proxy. */
static void expect_proxied(const char *socket, const struct sink *proxy, struct sink *target)
{
	char policy[512], command[64], path[128];
	struct cli cli;

	snprintf(
		policy, sizeof(policy),
		"version: 1\nnetwork_policies:\n  t:\n    endpoints: [{ cidr: 192.0.2.80/32, port: "
		"%u }]\n    binaries: [{ path: %s }]\n",
		target->port, world_load());
	write_file("proxied.yaml", policy, NULL);
	snprintf(path, sizeof(path), "%s/proxied.yaml", agent.dir);
	snprintf(command, sizeof(command), "192.0.2.80:%u", target->port);
	CLI(&cli, "--agent", socket, "run", "--policy", path, "--proxy", proxy->text, "--",
	    world_load(), "tcp-send", "--connect-only", "--server", command);
	cr_expect_eq(cli.status, 0, "%s: %s", socket, cli.err);
	cli_free(&cli);
}

Test(agent_egress, run_with_a_transparent_proxy)
{
	const char *const sockets[] = { agent.socket, "none" };
	struct sink proxy, target;

	sink_open(&proxy, false, "127.0.0.1", 0);
	sink_open(&target, false, "192.0.2.80", 0);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++) {
		expect_proxied(sockets[i], &proxy, &target);
		cr_expect_eq(sink_take(&target), 0, "%s: it went around the proxy", sockets[i]);
		cr_expect_eq(sink_take(&proxy), 1, "%s: the proxy got nothing", sockets[i]);
	}
	cr_expect_eq(agent_sessions(), 0);
}
