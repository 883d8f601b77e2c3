/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* S8, S9, S10, bad clients: each fails alone, with a reason. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "broker/caps.h"
#include "kernel/cgroup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

TestSuite(agent_bad, .init = agent_up, .fini = agent_down, .timeout = 120);

#define HELLO                                                            \
	"{\"method\":\"io.sluice.Hello\",\"parameters\":{\"component\":" \
	"{\"name\":\"bad\",\"version\":\"0\",\"min\":1,\"max\":1}}}"

/* A session that goes on whatever the others do. */
static struct box witness;

/* What the agent has done to connections is in its log, soon after. */
static bool is_logged(void *text)
{
	_cleanup_free_ char *log = agent_log();

	return strstr(log, text) != NULL;
}

static void expect_alive(const char *after)
{
	struct json_object *session;

	agent_do(witness.control, "Heartbeat", "{}");
	session = box_show(&witness);
	cr_expect_str_eq(json_text(session, "state"), "live", "after %s", after);
	cr_expect(json_object_get_boolean(json_at(session, "enforced")), "after %s", after);
	json_object_put(session);
}

/* Whether the agent has ended the connection: reads until then. */
static bool is_ended(int fd)
{
	char buf[4096];
	ssize_t n;

	do
		n = recv(fd, buf, sizeof(buf), 0);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

static void garbage(void)
{
	static const char *const texts[] = { "no json", "[]", "{\"method\":7}", "{\"a\":\"\xff\"}",
					     "{\"method\":\"x\",\"parameters\":[]}" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_fd_ int fd = agent_socket();

		cr_assert_gt(send(fd, texts[i], strlen(texts[i]) + 1, MSG_NOSIGNAL), 0);
		cr_expect(is_ended(fd), "%s", texts[i]);
	}
}

static void huge(void)
{
	_cleanup_fd_ int fd = agent_socket();
	static char chunk[1 << 20];
	ssize_t n;

	memset(chunk, ' ', sizeof(chunk));
	do
		n = send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL);
	while (n > 0);
	cr_expect(errno == EPIPE || errno == ECONNRESET, "%s", strerror(errno));
}

static void send_with_fds(int sock, const char *text, int fd, unsigned int count)
{
	char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)text, strlen(text) + 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	struct cmsghdr *c;

	msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	for (unsigned int i = 0; i < count; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	cr_assert_gt(sendmsg(sock, &msg, MSG_NOSIGNAL), 0);
}

static void descriptors(void)
{
	_cleanup_fd_ int fd = agent_socket(), more = agent_socket();
	pid_t worker = agent_worker();
	unsigned int before = agent_fds(worker);
	char answer[4096];

	for (int i = 0; i < 500; i++) {
		send_with_fds(fd, HELLO, STDERR_FILENO, SL_FDS_MAX);
		cr_assert_gt(recv(fd, answer, sizeof(answer), 0), 0);
	}
	cr_expect_leq(agent_fds(worker), before);
	/* More than a message may have. */
	send_with_fds(more, HELLO, STDERR_FILENO, SL_FDS_MAX + 1);
	cr_expect(is_ended(more));
}

/* Attach with what is no listener and no cgroup: nothing is made of it. */
static void wrong_descriptors(void)
{
	const struct sl_fds fds = { { STDERR_FILENO }, 1 };
	struct json_object *reply;
	struct box box;

	box_make(&box, NULL, NULL);
	box.listener = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	reply = box_refused(&box, agent_policy(false, 1), NULL, "Refused");
	cr_expect_str_eq(json_text(reply, "code"), "EBADF");
	cr_expect_str_neq(json_text(reply, "hint"), "");
	json_object_put(reply);
	sl_control_free(&box.control);
	box.control = agent_connect();
	reply = NULL;
	cr_expect_eq(sl_control_call(box.control, "io.sluice.Attach",
				     json_tokener_parse("{\"key\": \"00112233445566778899aabbccddee"
							"ff\", \"epoch\": 1, \"cgroup_fd\": 0, "
							"\"policy\": \"version: 1\"}"),
				     &fds, &reply, NULL),
		     -EREMOTEIO);
	cr_expect_str_neq(json_text(reply, "text"), "");
	json_object_put(reply);
	sl_control_free(&box.control);
	box.control = agent_connect();
	reply = agent_call(box.control, "List", "{}");
	cr_expect_eq(json_object_array_length(json_at(reply, "sessions")), 1);
	json_object_put(reply);
	box_free(&box);
}

/* It has all processes of the host in it, and no files to freeze and kill them by. */
static void root_cgroup(void)
{
	struct sl_control *control = agent_connect();
	char mount[PATH_MAX];
	struct json_object *reply;

	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	reply = agent_refused(control, "Refused", "Attach",
			      "{'key': '00112233445566778899aabbccddeeff', 'epoch': 1, "
			      "'cgroup': '%s', 'policy': 'version: 1'}",
			      mount);
	cr_expect_not_null(strstr(json_text(reply, "text"), "root of all cgroups"), "%s",
			   json_text(reply, "text"));
	cr_expect_str_neq(json_text(reply, "hint"), "");
	json_object_put(reply);
	sl_control_free(&control);
}

/* Asks and asks, and reads nothing: the agent does not go on with it. */
static int never_reads(void)
{
	static const char ask[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
	int fd = agent_socket();

	for (int i = 0; i < 100000; i++) {
		if (send(fd, ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	return fd;
}

/* In a child: what Hello answers to who it is. */
static int say_hello(void)
{
	_cleanup_fd_ int fd = agent_socket();
	char answer[4096] = "";

	if (send(fd, HELLO, sizeof(HELLO), MSG_NOSIGNAL) < 0 ||
	    recv(fd, answer, sizeof(answer) - 1, 0) <= 0)
		return 1;
	return strstr(answer, "\"error\"") ? 0 : 2;
}

static void strangers(void)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	/* Root, but inside. */
	if (!pid)
		_exit(sl_cgroup_enter(witness.cgroup, 0, NULL) ? 3 : say_hello());
	cr_expect_eq(held_wait(pid), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(setgid(65534) || setuid(65534) ? 3 : say_hello());
	cr_expect_eq(held_wait(pid), 0);
}

/* No descriptor is free: who connects waits until there is one. */
static void no_descriptors(void)
{
	pid_t worker = agent_worker();
	/* poll(2) asks for no more than this limit. */
	struct rlimit none = { 4, 0 }, before;
	_cleanup_fd_ int fd = -1;
	char answer[4096];

	cr_assert_eq(prlimit(worker, RLIMIT_NOFILE, NULL, &before), 0);
	none.rlim_max = before.rlim_max;
	cr_assert_eq(prlimit(worker, RLIMIT_NOFILE, &none, NULL), 0);
	fd = agent_socket();
	cr_assert_gt(send(fd, HELLO, sizeof(HELLO), MSG_NOSIGNAL), 0);
	/* What is there goes on, and is frozen if need be. */
	agent_do(witness.control, "Freeze", "{}");
	box_await_frozen(&witness, true);
	agent_do(witness.control, "Thaw", "{}");
	box_await_frozen(&witness, false);
	cr_assert_eq(prlimit(worker, RLIMIT_NOFILE, &before, NULL), 0);
	cr_expect_gt(recv(fd, answer, sizeof(answer), 0), 0);
}

/* A cgroup that was removed and made again is not the one that was attached. */
static void cgroup_replaced(void)
{
	struct sl_control *operator;
	struct json_object *session;
	struct sl_err err = {};
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	cr_assert_eq(rmdir(box.cgroup), 0);
	cr_assert_eq(sl_cgroup_create(box.cgroup, &err), 0, "%s", err.text);
	session = box_show(&box);
	cr_expect_not(json_object_get_boolean(json_at(session, "enforced")));
	cr_expect_str_eq(json_text(box_condition(session, "Enforced"), "reason"), "CgroupReplaced");
	json_object_put(session);
	/* Nothing can be in it any more. */
	box_await(&box, "state", "ended");
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "reason"), "its cgroup was removed");
	json_object_put(session);
	/* What is asked of the session does nothing to the other cgroup. */
	operator= agent_connect();
	agent_do(operator, "Freeze", "{'sandbox': '%s'}", box.sandbox);
	sl_control_free(&operator);
	box_await_frozen(&box, false);
	box_free(&box);
}

Test(agent_bad, each_client_fails_alone)
{
	_cleanup_fd_ int half = -1, unread = -1;

	box_make(&witness, NULL, NULL);
	box_attach(&witness, agent_policy(false, 1), NULL);
	garbage();
	expect_alive("garbage");
	cr_expect(eventually(is_logged, "connections ended: what was sent is no call ("));
	half = agent_socket();
	cr_assert_gt(send(half, HELLO, 20, MSG_NOSIGNAL), 0);
	expect_alive("half a message");
	huge();
	expect_alive("a huge message");
	descriptors();
	expect_alive("floods of descriptors");
	wrong_descriptors();
	expect_alive("wrong descriptors");
	root_cgroup();
	expect_alive("the root cgroup");
	unread = never_reads();
	cr_assert_geq(unread, 0);
	expect_alive("a client that does not read");
	strangers();
	expect_alive("strangers");
	no_descriptors();
	expect_alive("no free descriptor");
	cgroup_replaced();
	expect_alive("a cgroup that was replaced");
	box_free(&witness);
}

static void refuse_second(const char *socket, const char *state, const char *set, const char *what)
{
	const char *const argv[] = { getenv("SLUICED"), "--socket", socket, "--state-dir", state,
				     "--set",           set,        NULL };
	struct cli cli;

	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	cli_expect_error(&cli, 1, what);
	cli_free(&cli);
}

/* A number in /proc/PID/status, hexadecimal. */
static uint64_t status_of(pid_t pid, const char *name)
{
	_cleanup_file_ FILE *file = NULL;
	char path[64], line[256];
	size_t len = strlen(name);

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, len) && line[len] == ':')
			return strtoull(line + len + 1, NULL, 16);
	}
	cr_assert_fail("no %s", name);
	return 0;
}

/* A second agent in one of the places of the first. */
Test(agent_bad, second_agent)
{
	char socket[128], state[128], set[128];
	pid_t worker = agent_worker();

	snprintf(socket, sizeof(socket), "%s/other.sock", agent.dir);
	snprintf(state, sizeof(state), "%s/other", agent.dir);
	snprintf(set, sizeof(set), "%sx", agent.set);
	/* It has what it uses, and no more. */
	cr_expect_neq(status_of(worker, "CapEff"), 0);
	cr_expect_eq(status_of(worker, "CapEff") & ~sl_caps_mediating(), 0);
	cr_expect_eq(status_of(agent.pid, "CapEff") & ~sl_caps_mediating(), 0);
	cr_expect_eq(status_of(worker, "Seccomp"), SECCOMP_MODE_FILTER);
	cr_expect_eq(status_of(agent.pid, "Seccomp"), SECCOMP_MODE_FILTER);
	refuse_second(agent.socket, state, set, "has the socket");
	refuse_second(socket, agent.state, set, "has the state directory");
	refuse_second(socket, state, agent.set, "has the set");
	cr_expect_eq(agent_worker(), worker);
}

/* What systemd is told (sd_notify(3)). */
Test(agent_bad, service_manager)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int ready = 0, alive = 0;
	char text[64];
	ssize_t n;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", agent.dir);
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	agent_worker();
	cr_expect_eq(agent_end(SIGTERM), 0);
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	setenv("WATCHDOG_USEC", "100000", 1);
	agent_start();
	while (!ready || alive < 2) {
		n = recv(fd, text, sizeof(text) - 1, 0);
		cr_assert_gt(n, 0);
		text[n] = '\0';
		ready += !strcmp(text, "READY=1");
		alive += !strcmp(text, "WATCHDOG=1");
	}
	cr_expect_eq(ready, 1);
	cr_expect_eq(agent_end(SIGTERM), 0);
	do {
		n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
		cr_assert_gt(n, 0, "STOPPING=1 is missing");
		text[n] = '\0';
	} while (strcmp(text, "STOPPING=1") != 0);
}
