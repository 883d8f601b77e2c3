/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the agent does without room on its disk, memory, or places for clients. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

/* Whatever a test that failed has left. */
static void down(void)
{
	(void)umount2(agent.state, MNT_DETACH);
	agent_down();
}

TestSuite(agent_lack, .init = agent_up, .fini = down, .timeout = 120);

/* A session that goes on whatever happens to others. */
static struct box witness;

static void expect_alive(void)
{
	struct json_object *session;

	agent_do(witness.control, "Heartbeat", "{}");
	session = box_show(&witness);
	cr_expect_str_eq(json_text(session, "state"), "live");
	cr_expect(json_object_get_boolean(json_at(session, "enforced")));
	json_object_put(session);
}

static bool has_line(void *arg)
{
	char *log = agent_log();
	bool found = strstr(log, arg);

	free(log);
	return found;
}

/* --- the disk --- */

/* The state directory on a file system of its own, whose room is known. */
static void small_disk(void)
{
	agent_worker();
	cr_expect_eq(agent_end(SIGTERM), 0);
	cr_assert_eq(mount("none", agent.state, "tmpfs", 0, "size=512k,mode=0700"), 0);
	agent_start();
	agent_worker();
}

static void fill(char *path, size_t size)
{
	static const char page[4096];
	_cleanup_fd_ int fd = -1;

	snprintf(path, size, "%s/filler", agent.state);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	while (write(fd, page, sizeof(page)) > 0)
		;
	cr_assert_eq(errno, ENOSPC);
}

/*
 * What is attached goes on, and what is asked for is remembered, by the next keeper, too: there was
 * room for that, beforehand. Nothing new is attached, which says why.
 */
Test(agent_lack, full_disk)
{
	struct json_object *reply, *session;
	struct sl_control *operator;
	struct box box, refused;
	char filler[128];
	pid_t worker;

	small_disk();
	box_make(&witness, NULL, NULL);
	box_attach(&witness, agent_policy(false, 1), NULL);
	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	fill(filler, sizeof(filler));
	box_make(&refused, NULL, NULL);
	reply = box_refused(&refused, agent_policy(false, 1), NULL, "Refused");
	cr_expect_str_eq(json_text(reply, "code"), "ENOSPC");
	cr_expect_not_null(strstr(json_text(reply, "text"), "No space left"), "%s",
			   json_text(reply, "text"));
	json_object_put(reply);
	cr_expect_eq(agent_sessions(), 2);
	box_recover(&box);
	operator= agent_connect();
	agent_do(operator, "End", "{'sandbox': '%s', 'reason': 'no room for it'}", box.sandbox);
	agent_do(operator, "Freeze", "{'sandbox': '%s'}", witness.sandbox);
	agent_do(operator, "Thaw", "{'sandbox': '%s'}", witness.sandbox);
	agent_do(operator, "Freeze", "{'sandbox': '%s'}", witness.sandbox);
	sl_control_free(&operator);
	expect_alive();
	/* With a worker that was killed: the records are the keeper's. */
	cr_assert_eq(kill(agent_worker(), SIGKILL), 0);
	box_recover(&witness);
	expect_alive();
	box_await(&box, "reason", "no room for it");
	/* And with it: there was room for that, before there was none. */
	worker = agent_worker();
	cr_expect_eq(agent_end(SIGKILL), 128 + SIGKILL);
	/* It has the socket, too. */
	cr_expect_eq(held_wait(worker), 128 + SIGKILL);
	agent_start();
	session = box_show(&box);
	cr_expect_str_eq(json_text(session, "reason"), "no room for it");
	json_object_put(session);
	box_recover(&witness);
	session = box_show(&witness);
	cr_expect(json_object_get_boolean(json_at(session, "freeze_asked")));
	json_object_put(session);
	box_await_frozen(&witness, true);
	agent_do(witness.control, "Thaw", "{}");
	box_await_frozen(&witness, false);
	cr_expect_not(has_line("can't write"));
	cr_assert_eq(unlink(filler), 0);
	box_free(&refused);
	box_free(&box);
	box_free(&witness);
}

/* --- memory --- */

static rlim_t address_space(pid_t pid)
{
	char path[64], *text;
	unsigned long pages;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	text = agent_text(path);
	pages = strtoul(text, NULL, 10);
	free(text);
	return pages * (rlim_t)getpagesize();
}

/* A policy of a megabyte, of which each byte is valid. */
static char *long_policy(void)
{
	const char *policy = agent_policy(false, 1);
	size_t len = 1 << 20, used = strlen(policy);
	char *text = malloc(len + 1);

	cr_assert_not_null(text);
	memcpy(text, policy, used);
	while (used < len) {
		text[used] = used % 80 ? '#' : '\n';
		used++;
	}
	text[len] = '\0';
	return text;
}

/* The worker gets no more memory: who asks for it fails, and the others go on. */
Test(agent_lack, no_memory)
{
	pid_t worker = agent_worker();
	struct rlimit none, before;
	char *policy = long_policy();
	struct json_object *reply = NULL;
	struct sl_err err = {};
	struct box box;
	int ret;

#ifdef __SANITIZE_ADDRESS__
	free(policy);
	cr_skip_test("the sanitizer ends what gets no memory");
#endif
	box_make(&witness, NULL, NULL);
	box_attach(&witness, agent_policy(false, 1), NULL);
	box_make(&box, NULL, NULL);
	cr_assert_eq(prlimit(worker, RLIMIT_AS, NULL, &before), 0);
	none = (struct rlimit){ address_space(worker) + 4096, before.rlim_max };
	cr_assert_eq(prlimit(worker, RLIMIT_AS, &none, NULL), 0);
	for (int i = 0; i < 20; i++) {
		struct sl_control *control = agent_connect();
		struct json_object *params = json_object_new_object();

		json_object_object_add(params, "policy", json_object_new_string(policy));
		ret = sl_control_call(control, "io.sluice.Plan", params, NULL, &reply, &err);
		cr_expect_lt(ret, 0, "a megabyte was there");
		json_object_put(reply);
		reply = NULL;
		sl_control_free(&control);
		expect_alive();
	}
	cr_assert_eq(prlimit(worker, RLIMIT_AS, &before, NULL), 0);
	cr_expect_eq(agent_worker(), worker);
	box_attach(&box, policy, NULL);
	free(policy);
	box_free(&box);
	box_free(&witness);
}

/* --- places for clients --- */

#define CLIENTS 2000 /* twice of what there is room for */

static void raise_files(void)
{
	struct rlimit files;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	cr_assert_gt(files.rlim_cur, CLIENTS + 100);
}

static unsigned int ended(const int fds[])
{
	unsigned int n = 0;
	char byte;

	for (int i = 0; i < CLIENTS; i++)
		n += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
	return n;
}

static bool are_ended(void *arg)
{
	return ended(arg) >= CLIENTS / 2 - 100;
}

/* Those beyond the bound are turned away, those who were there go on. */
Test(agent_lack, thousands_of_clients)
{
	static int fds[CLIENTS];

	box_make(&witness, NULL, NULL);
	box_attach(&witness, agent_policy(false, 1), NULL);
	raise_files();
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = agent_socket();
	cr_expect(eventually(are_ended, fds));
	agent_do(witness.control, "Heartbeat", "{}");
	agent_do(witness.control, "Freeze", "{}");
	box_await_frozen(&witness, true);
	agent_do(witness.control, "Thaw", "{}");
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	expect_alive();
	box_free(&witness);
}
