/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * S3, S9, S15: sessions that say nothing but that they are there, over jumps of the clocks;
 * runtimes and agents in the wrong place.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/cgroup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

TestSuite(agent_place, .init = agent_up, .fini = agent_down, .timeout = 120);

#define WAIT_MS 60000
#define SILENCE_MS 1000
#define IDLE_MS 3000

static struct box box;

/* --- S3 --- */

static void attach(struct sl_runtime **rt, unsigned int silence_ms)
{
	struct sl_runtime_attach wanted = SL_RUNTIME_ATTACH_INIT;

	box_make(&box, NULL, NULL);
	cr_assert_eq(sl_runtime_new(rt, "test", "1"), 0);
	cr_assert_eq(sl_runtime_connect(*rt, agent.socket, WAIT_MS), 0, "%s",
		     sl_runtime_error(*rt));
	wanted.cgroup = box.cgroup;
	wanted.policy = agent_policy(false, 1);
	wanted.silence_ms = silence_ms;
	wanted.grace_ms = 1;
	cr_assert_eq(sl_runtime_attach(*rt, &wanted), 0, "%s", sl_runtime_error(*rt));
	snprintf(box.sandbox, sizeof(box.sandbox), "%s", sl_runtime_sandbox(*rt));
}

/* Does what libsluice says is to be done, until then, or until the state is that. */
static void dispatch(struct sl_runtime *rt, int64_t until_ms, enum sl_runtime_state state)
{
	struct pollfd fd = { .fd = sl_runtime_fd(rt), .events = POLLIN };
	int64_t left = until_ms - sl_monotonic_ms();

	for (; left > 0 && sl_runtime_state(rt) != state; left = until_ms - sl_monotonic_ms()) {
		cr_assert_geq(poll(&fd, 1, (int)left), 0);
		cr_assert_eq(sl_runtime_dispatch(rt), 0, "%s", sl_runtime_error(rt));
	}
}

static uint64_t epoch(void)
{
	struct json_object *session = box_show(&box);
	uint64_t value = json_object_get_uint64(json_at(session, "epoch"));

	cr_expect_str_eq(json_text(session, "state"), "live");
	json_object_put(session);
	return value;
}

/*
 * Nothing that a session was given expires: idle for longer than silence and grace it is
 * there, and its token, renewed by nobody, is good for a recovery.
 */
Test(agent_place, idle_past_the_old_life)
{
	struct sl_runtime *rt = NULL;

	attach(&rt, SILENCE_MS);
	dispatch(rt, sl_monotonic_ms() + IDLE_MS, SL_RUNTIME_OVER);
	cr_expect_eq(epoch(), 1, "it was lost meanwhile");
	cr_assert_eq(kill(agent_worker(), SIGKILL), 0);
	while (epoch() != 2)
		dispatch(rt, sl_monotonic_ms() + 10, SL_RUNTIME_OVER);
	sl_runtime_free(&rt);
	box_free(&box);
}

/* In the agent's process: all clocks that count since the start are 30 days ahead. */
static void month_ahead(void)
{
	static const char offsets[] = "monotonic 2592000 0\nboottime 2592000 0\n";
	_cleanup_fd_ int fd = -1;

	cli_must(unshare(CLONE_NEWTIME));
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	cli_must(write(fd, offsets, strlen(offsets)) == (ssize_t)strlen(offsets) ? 0 : -1);
}

/* An agent whose clock is a month ahead of what wrote the sessions, and then a month behind. */
Test(agent_place, clocks_jump)
{
	struct sl_runtime *rt = NULL;

	if (access("/proc/self/timens_offsets", F_OK))
		cr_skip_test("this kernel has no time namespaces");
	attach(&rt, WAIT_MS);
	for (uint64_t i = 2; i <= 3; i++) {
		agent.before = i == 2 ? month_ahead : NULL;
		cr_expect_eq(agent_end(SIGTERM), 0);
		agent_start();
		dispatch(rt, sl_monotonic_ms() + WAIT_MS, SL_RUNTIME_LOST);
		dispatch(rt, sl_monotonic_ms() + WAIT_MS, SL_RUNTIME_LIVE);
		cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_LIVE, "%s", sl_runtime_error(rt));
		cr_expect_geq(epoch(), i);
	}
	sl_runtime_free(&rt);
	box_free(&box);
}

/* --- S9 --- */

static void expect_refused(const char *path, const char *text)
{
	struct json_object *reply;
	struct box wrong;

	box_make(&wrong, NULL, NULL);
	cr_assert_eq(rmdir(wrong.cgroup), 0);
	snprintf(wrong.cgroup, sizeof(wrong.cgroup), "%s", path);
	reply = box_refused(&wrong, agent_policy(false, 1), NULL, "Refused");
	cr_expect_not_null(strstr(json_text(reply, "text"), text), "%s", json_text(reply, "text"));
	cr_expect_str_neq(json_text(reply, "hint"), "");
	json_object_put(reply);
	sl_control_free(&wrong.control);
}

/* What is no cgroup of cgroup2 is refused by name. */
Test(agent_place, wrong_mount)
{
	expect_refused(agent.dir, "is not a cgroup2 directory");
	expect_refused("/proc", "is not a cgroup2 directory");
	expect_refused("/nowhere/cgroup", "No such file");
	expect_refused("", "names no cgroup");
}

static char private_mount[128];

/* A runtime in a cgroup namespace of its own, which sees its own cgroup as the root. */
static int attach_from_inside(bool by_fd)
{
	struct sl_runtime_attach wanted = SL_RUNTIME_ATTACH_INIT;
	struct sl_runtime *rt = NULL;
	char path[PATH_MAX];
	int ret;

	if (sl_cgroup_enter(box.cgroup, 0, NULL) || unshare(CLONE_NEWCGROUP | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", private_mount, "cgroup2", 0, NULL))
		return 2;
	snprintf(path, sizeof(path), "%s/below", private_mount);
	wanted.cgroup = path;
	wanted.policy = agent_policy(false, 1);
	if (by_fd) {
		wanted.cgroup = NULL;
		wanted.cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (sl_runtime_new(&rt, "test", "1") || sl_runtime_connect(rt, agent.socket, WAIT_MS))
		return 3;
	ret = sl_runtime_attach(rt, &wanted);
	if (!by_fd)
		return ret == -ENOENT && strstr(sl_runtime_hint(rt), "directory") ? 0 : 4;
	return ret ? 5 : 0;
}

static int in_child(bool by_fd)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(attach_from_inside(by_fd));
	return held_wait(pid);
}

/* By a path it is refused, by the directory it is the right one. */
Test(agent_place, private_cgroup_namespace)
{
	struct json_object *reply, *session;
	struct sl_control *control = agent_connect();
	char below[PATH_MAX + 8];

	snprintf(private_mount, sizeof(private_mount), "%s/cgroup", agent.dir);
	cr_assert_eq(mkdir(private_mount, 0700), 0);
	box_make(&box, NULL, NULL);
	snprintf(below, sizeof(below), "%s/below", box.cgroup);
	cr_assert_eq(sl_cgroup_create(below, NULL), 0);
	cr_expect_eq(in_child(false), 0);
	cr_expect_eq(in_child(true), 0);
	reply = agent_call(control, "List", "{}");
	cr_assert_eq(json_object_array_length(json_at(reply, "sessions")), 1);
	session = json_object_array_get_idx(json_at(reply, "sessions"), 0);
	cr_expect_str_eq(json_text(session, "cgroup"), below);
	snprintf(box.sandbox, sizeof(box.sandbox), "%s", json_text(session, "sandbox"));
	json_object_put(reply);
	sl_control_free(&control);
	box_free(&box);
}

static void no_privilege(void)
{
	cli_must(setgid(65534));
	cli_must(setuid(65534));
}

static int attach_as_nobody(void)
{
	struct sl_runtime_attach wanted = SL_RUNTIME_ATTACH_INIT;
	struct sl_runtime *rt = NULL;

	no_privilege();
	wanted.cgroup = box.cgroup;
	wanted.policy = agent_policy(false, 1);
	if (sl_runtime_new(&rt, "test", "1") || sl_runtime_connect(rt, agent.socket, WAIT_MS))
		return 3;
	if (sl_runtime_attach(rt, &wanted) != -EPERM)
		return 4;
	return strstr(sl_runtime_error(rt), "does not let this user") ? 0 : 5;
}

Test(agent_place, without_privilege)
{
	pid_t pid;

	box_make(&box, NULL, NULL);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(attach_as_nobody());
	cr_expect_eq(held_wait(pid), 0);
	box_free(&box);
}

/* --- S15: an agent that can't work does not start, and says why --- */

static void no_btf(void)
{
	cli_own_mounts();
	cli_must(mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL));
}

Test(agent_place, agent_does_not_start)
{
	char socket[128], state[128], set[128];
	const char *const argv[] = { getenv("SLUICED"), "--socket", socket, "--state-dir", state,
				     "--set",           set,        NULL };
	static const struct {
		cli_before before;
		const char *text;
	} cases[] = {
		{ no_btf, "BTF" },
		{ no_privilege, "not enough privilege" },
	};
	struct cli cli;

	snprintf(socket, sizeof(socket), "%s/other.sock", agent.dir);
	snprintf(state, sizeof(state), "%s/other", agent.dir);
	snprintf(set, sizeof(set), "%sx", agent.set);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cli_start(&cli, cases[i].before, argv);
		cli_end(&cli);
		cli_expect_error(&cli, 1, cases[i].text);
		cli_free(&cli);
	}
}
