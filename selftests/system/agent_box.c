/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sandbox runtimes in miniature. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "broker/probe.h"
#include "kernel/cgroup.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

#define TAKE_MS 10000
#define DESTROY_MS 60000

/*
 * A descriptor that a process holds while its sandbox is attached is the sandbox's: a
 * listening socket of the test would become its own loopback.
 */
static void close_others(int keep)
{
	(void)close_range(3, (unsigned int)keep - 1, 0);
	(void)close_range((unsigned int)keep + 1, ~0U, 0);
}

static _Noreturn void child(struct box *box, const struct sl_filter_options *options, int in,
			    const char *const argv[])
{
	int out = open(box->output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	static const struct sl_filter_options none;
	struct sl_filter filter;
	unsigned long flags;
	const char *why;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	sl_cleanup_fd(&box->handoff.parent);
	close_others(box->handoff.child);
	if (sl_cgroup_enter(box->cgroup, 0, NULL))
		_exit(98);
	sl_probe_listener_flags(&flags, &why);
	if (sl_filter_make(&filter, options ?: &none, NULL))
		_exit(97);
	if (sl_handoff_give(&box->handoff, &filter, flags, NULL))
		_exit(96);
	execv(argv[0], (char *const *)argv);
	_exit(95);
}

void box_make(struct box *box, const struct sl_filter_options *filter, const char *const argv[])
{
	static unsigned int n;
	char mount[PATH_MAX / 2];
	uint8_t key[16];
	struct sl_err err = {};
	int in[2];

	*box = (struct box){ .handoff = { -1, -1 }, .listener = -1, .in = -1 };
	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), &err), 0, "%s", err.text);
	snprintf(box->cgroup, sizeof(box->cgroup), "%s/sl-test-%d-a%u", mount, getpid(), ++n);
	snprintf(box->output, sizeof(box->output), "%s/out-%u", agent.dir, n);
	cr_assert_eq(sl_cgroup_create(box->cgroup, &err), 0, "%s", err.text);
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(n + i);
	sl_hex(box->key, key, sizeof(key));
	box->control = agent_connect();
	if (!argv)
		return;
	cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
	cr_assert_eq(sl_handoff_new(&box->handoff, &err), 0, "%s", err.text);
	box->pid = fork();
	cr_assert_geq(box->pid, 0);
	if (!box->pid)
		child(box, filter, in[0], argv);
	close(in[0]);
	box->in = in[1];
	cr_assert_eq(sl_handoff_take(&box->handoff, TAKE_MS, &box->listener, &err), 0, "%s",
		     err.text);
}

static struct json_object *attach_params(struct box *box, const char *policy, const char *options)
{
	struct json_object *params = json_object_new_object(), *wanted;

	wanted = options ? json_tokener_parse(options) : json_object_new_object();
	cr_assert_not_null(wanted, "%s", options);
	/* A test that is slow is not to lose its sessions. */
	if (!json_object_object_get_ex(wanted, "silence_ms", NULL))
		json_object_object_add(wanted, "silence_ms", json_object_new_int(600000));
	json_object_object_add(params, "options", wanted);
	json_object_object_add(params, "key", json_object_new_string(box->key));
	json_object_object_add(params, "epoch", json_object_new_int64(++box->epoch));
	json_object_object_add(params, "cgroup", json_object_new_string(box->cgroup));
	json_object_object_add(params, "policy", json_object_new_string(policy));
	if (box->listener >= 0)
		json_object_object_add(params, "listener_fd", json_object_new_int(0));
	return params;
}

void box_attach(struct box *box, const char *policy, const char *options)
{
	const struct sl_fds fds = { { box->listener }, box->listener >= 0 };
	struct json_object *reply =
		agent_send(box->control, NULL, "Attach", attach_params(box, policy, options), &fds);

	snprintf(box->token, sizeof(box->token), "%s", json_text(reply, "token"));
	snprintf(box->sandbox, sizeof(box->sandbox), "%s", json_text(reply, "sandbox"));
	json_object_put(reply);
	/* The agent's alone from here on: its death is to be noticed. */
	sl_cleanup_fd(&box->listener);
}

void box_begin(struct box *box, const char *policy)
{
	struct sl_err err = {};

	cr_assert_eq(sl_control_begin(box->control, "io.sluice.Attach",
				      attach_params(box, policy, NULL), NULL, &err),
		     0, "%s", err.text);
}

struct json_object *box_refused(struct box *box, const char *policy, const char *options,
				const char *error)
{
	const struct sl_fds fds = { { box->listener }, box->listener >= 0 };

	return agent_send(box->control, error, "Attach", attach_params(box, policy, options), &fds);
}

void box_go(struct box *box)
{
	struct sl_err err = {};

	cr_assert_eq(sl_handoff_release(&box->handoff, &err), 0, "%s", err.text);
	sl_handoff_end(&box->handoff);
}

int box_wait(struct box *box)
{
	pid_t pid = box->pid;

	box->pid = 0;
	sl_cleanup_fd(&box->in);
	return held_wait(pid);
}

char *box_output(const struct box *box)
{
	return agent_text(box->output);
}

void box_recover(struct box *box)
{
	sl_control_free(&box->control);
	box->control = agent_connect();
	agent_do(box->control, "Recover", "{'token': '%s', 'epoch': %u}", box->token, ++box->epoch);
}

void box_free(struct box *box)
{
	struct sl_control *control;

	sl_handoff_end(&box->handoff);
	sl_cleanup_fd(&box->listener);
	sl_cleanup_fd(&box->in);
	sl_control_free(&box->control);
	if (box->sandbox[0]) {
		control = agent_connect();
		agent_do(control, "Detach", "{'sandbox': '%s', 'running': 'kill'}", box->sandbox);
		sl_control_free(&control);
	}
	sl_cgroup_kill(box->cgroup);
	if (box->pid)
		held_wait(box->pid);
	cr_expect_eq(sl_cgroup_destroy(box->cgroup, DESTROY_MS), 0);
}

struct json_object *box_show(const struct box *box)
{
	struct sl_control *control = agent_connect();
	struct json_object *reply = agent_call(control, "Show", "{'sandbox': '%s'}", box->sandbox);
	struct json_object *session = json_object_get(json_at(reply, "session"));

	cr_assert_not_null(session);
	json_object_put(reply);
	sl_control_free(&control);
	return session;
}

struct awaited {
	const struct box *box;
	const char *member, *text;
};

static bool shows(void *arg)
{
	const struct awaited *awaited = arg;
	struct json_object *session = box_show(awaited->box);
	bool same = !strcmp(json_text(session, awaited->member), awaited->text);

	json_object_put(session);
	return same;
}

void box_await(const struct box *box, const char *member, const char *text)
{
	struct awaited awaited = { box, member, text };

	cr_assert(eventually(shows, &awaited), "%s is not %s", member, text);
}

struct frozen {
	const struct box *box;
	char wanted;
};

static bool is_frozen(void *arg)
{
	const struct frozen *frozen = arg;
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX + 16], now = 0;

	snprintf(path, sizeof(path), "%s/cgroup.freeze", frozen->box->cgroup);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(read(fd, &now, 1), 1);
	return now == frozen->wanted;
}

void box_await_frozen(const struct box *box, bool frozen)
{
	struct frozen wanted = { box, frozen ? '1' : '0' };

	cr_assert(eventually(is_frozen, &wanted), "the cgroup %s frozen",
		  frozen ? "is not" : "stays");
}

struct json_object *box_find_condition(struct json_object *session, const char *type)
{
	struct json_object *list = json_at(session, "conditions");

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *condition = json_object_array_get_idx(list, i);

		if (!strcmp(json_text(condition, "type"), type))
			return condition;
	}
	return NULL;
}

struct json_object *box_condition(struct json_object *session, const char *type)
{
	struct json_object *condition = box_find_condition(session, type);

	cr_assert_not_null(condition, "no condition %s in %s", type,
			   json_object_to_json_string(session));
	return condition;
}

const char *agent_policy(bool glob, unsigned int port)
{
	static char text[PATH_MAX + 512];
	const char *load = getenv("SL_LOAD");

	cr_assert_not_null(load);
	/* A wildcard within the path: the kernel can't match it, somebody has to look. */
	snprintf(text, sizeof(text),
		 "version: 1\n"
		 "network_policies:\n"
		 "  test:\n"
		 "    endpoints: [{cidr: 127.0.0.1/32, port: %u, allow_reserved: true}]\n"
		 "    binaries: [{path: \"%.*s%s\"}]\n",
		 port, (int)strlen(load) - (glob ? 1 : 0), load, glob ? "*" : "");
	return text;
}

int box_connect(const struct box *box, unsigned int port)
{
	char server[32], cgroup[PATH_MAX];
	const char *const argv[] = { "/bin/sh",
				     "-c",
				     "echo 0 >\"$1/cgroup.procs\" && exec \"$2\" tcp-exit --count 1 "
				     "--quiet --server \"$3\"",
				     "sh",
				     cgroup,
				     getenv("SL_LOAD"),
				     server,
				     NULL };
	struct cli cli;
	int status;

	snprintf(server, sizeof(server), "127.0.0.1:%u", port);
	snprintf(cgroup, sizeof(cgroup), "%s", box->cgroup);
	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	status = cli.status;
	cli_free(&cli);
	return status;
}
