// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "run/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/parse.h"
#include "control/client.h"
#include "guard/guard.h"
#include "kernel/cgroup.h"
#include "kernel/shared.h"

#define SOCKET_DEFAULT "/run/sluice/control.sock"

/* A call waits for those of others who attach and detach at the same time. */
#define CALL_MS 30000
#define FINISH_MS 5000

/* How long an agent that is there waits for a run that has not died to come back. */
#define GRACE_MS 3000

struct sl_run_agent {
	struct sl_runtime *rt;
	char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	bool lost; /* and it was said */
	bool away; /* at the end, and long enough */
};

void sl_run_agent_free(struct sl_run_agent **agent)
{
	struct sl_run_agent *a = TAKE_PTR(*agent);

	if (!a)
		return;
	sl_runtime_free(&a->rt);
	free(a);
}

static int failed(const struct sl_run_agent *a, int ret, const char *what, struct sl_err *err)
{
	sl_err_set(err, -ret, "%s: %s", what, sl_runtime_error(a->rt));
	if (ret == -EPERM)
		return sl_err_hint(err, "the agent takes root outside of all sandboxes: use "
					"--agent " SL_RUN_AGENT_NONE " for a run without it");
	return sl_runtime_hint(a->rt)[0] ? sl_err_hint(err, "%s", sl_runtime_hint(a->rt)) : ret;
}

/* A socket that nobody serves is what an agent that was killed has left. */
static bool somebody_listens(const char *socket)
{
	struct sl_control *control = NULL;
	int ret = sl_control_connect(&control, socket, CALL_MS, NULL);

	sl_control_free(&control);
	return ret != -ENOENT && ret != -ECONNREFUSED;
}

int sl_run_agent_open(struct sl_run_agent **out, const char *socket, struct sl_err *err)
{
	_cleanup_(sl_run_agent_free) struct sl_run_agent *a = NULL;
	int ret;

	if ((socket && !strcmp(socket, SL_RUN_AGENT_NONE)) ||
	    (!socket && !somebody_listens(SOCKET_DEFAULT))) {
		*out = NULL;
		return 0;
	}
	socket = socket ?: SOCKET_DEFAULT;
	a = calloc(1, sizeof(*a));
	if (!a)
		return sl_err_sys(err, ENOMEM, "the agent");
	ret = sl_runtime_new(&a->rt, "sluice run", SL_VERSION);
	if (ret)
		return sl_err_sys(err, -ret, "the agent");
	ret = sl_runtime_connect(a->rt, socket, CALL_MS);
	if (ret)
		return failed(a, ret, "the agent", err);
	strcpy(a->socket, socket);
	*out = TAKE_PTR(a);
	return 0;
}

/* The agent may see other files at the same paths: then the policy means those of this process. */
static pid_t mounts_of_this(void)
{
	struct stat self, first;

	/* Where pids are not the agent's there is no way to tell it. */
	return !stat("/proc/self/ns/pid", &self) && !stat("/proc/1/ns/pid", &first) &&
			       self.st_ino == first.st_ino
		       ? getpid()
		       : 0;
}

static enum sl_mode mode_of(const char *mode)
{
	static const char *const words[] = { "", "observe", "audit", "enforce" };

	for (unsigned int i = 1; mode && i < ARRAY_SIZE(words); i++)
		if (!strcmp(mode, words[i]))
			return (enum sl_mode)i;
	return SL_MODE_DEFAULT;
}

/* Where the agent says that the sandbox is. */
static int open_set(struct sl_run_agent *a, struct sl_set **set, unsigned int *sandbox,
		    struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *opened = NULL;
	const struct sl_runtime_session *session;
	struct json_object *json, *dir;
	uint32_t id;
	int ret = sl_runtime_show(a->rt, &session);

	if (ret)
		return failed(a, ret, "the agent shows no session", err);
	json = json_tokener_parse(session->json);
	if (!json_object_object_get_ex(json, "set", &dir) ||
	    sl_parse_u32(session->sandbox ?: "", 1, UINT32_MAX, &id)) {
		json_object_put(json);
		sl_err_set(err, EPROTO, "the agent does not say where its set is");
		return sl_err_hint(err, "it is older than this command: start it anew");
	}
	ret = sl_set_open(&opened, json_object_get_string(dir), err);
	json_object_put(json);
	if (ret)
		return ret;
	*set = TAKE_PTR(opened);
	*sandbox = id;
	return 0;
}

/* Whom to ask, each for itself; the texts are in `copy`. */
static void split(const char *upstreams[SL_RESOLVER_UPSTREAMS + 2], char *copy)
{
	unsigned int n = 0;

	/* One too many: the agent says that it is. */
	while (copy && n <= SL_RESOLVER_UPSTREAMS)
		upstreams[n++] = strsep(&copy, ",");
	upstreams[n] = NULL;
}

static int attach_egress(struct sl_run_agent *a, struct sl_runtime_attach *wanted,
			 const struct sl_run_attach *attach)
{
	static const enum sl_net_way nets[] = { SL_NET_HOST, SL_NET_RELAY };
	static const enum sl_dns_way ways[] = { SL_DNS_AUTO, SL_DNS_POLICY, SL_DNS_HOST };
	const struct sl_reach_options *reach = attach->egress;
	const char *upstreams[SL_RESOLVER_UPSTREAMS + 2];
	struct sl_runtime_egress egress = SL_RUNTIME_EGRESS_INIT;
	_cleanup_free_ char *copy = NULL;

	_Static_assert(ARRAY_SIZE(nets) == SL_REACH_NET_MAX, "in this order");
	_Static_assert(ARRAY_SIZE(ways) == SL_REACH_DNS_MAX, "in this order");
	if (!reach)
		return sl_runtime_attach(a->rt, wanted);
	if (reach->upstream) {
		copy = strdup(reach->upstream);
		if (!copy)
			return -ENOMEM;
		split(upstreams, copy);
		egress.upstreams = upstreams;
	}
	egress.net = nets[reach->net];
	egress.dns = ways[reach->dns];
	egress.netns_fd = attach->netns;
	egress.proxy = reach->proxy;
	egress.inspect = reach->inspect;
	wanted->egress = &egress;
	return sl_runtime_attach(a->rt, wanted);
}

int sl_run_agent_attach(struct sl_run_agent *a, const struct sl_run_attach *attach,
			struct sl_set **set, unsigned int *sandbox, struct sl_err *err)
{
	struct sl_runtime_attach wanted = SL_RUNTIME_ATTACH_INIT;
	_cleanup_fd_ int cgroup = -1;
	int ret = sl_cgroup_open(&cgroup, attach->cgroup, err);

	if (ret)
		return ret;
	wanted.cgroup_fd = cgroup;
	wanted.policy = attach->policy;
	wanted.policy_name = attach->policy ? "the policy of sluice run" : NULL;
	wanted.listener_fd = attach->listener;
	wanted.plan = attach->hold_connect ? SL_PLAN_CONNECT : SL_PLAN_EXEC;
	wanted.mode = attach->policy ? mode_of(attach->mode) : SL_MODE_OBSERVE;
	/* One that is stopped says nothing, and its command goes on. */
	wanted.silence_ms = SL_SILENCE_NEVER;
	wanted.grace_ms = GRACE_MS;
	wanted.run_on_loss = true;
	wanted.end = SL_END_BE_REMOVED;
	wanted.mounts_of = mounts_of_this();
	ret = attach_egress(a, &wanted, attach);
	if (ret)
		return failed(a, ret, "the agent makes no sandbox", err);
	ret = open_set(a, set, sandbox, err);
	if (ret)
		(void)sl_runtime_detach(a->rt, SL_DETACH_KILL);
	return ret;
}

/* A call would wait its whole time for an agent that is dead: the end of a run does not. */
static bool is_there(struct sl_run_agent *a)
{
	struct pollfd fd = { .fd = sl_runtime_fd(a->rt), .events = POLLIN };
	int64_t until = sl_monotonic_ms() + FINISH_MS, left;

	while (!a->away && !sl_runtime_dispatch(a->rt) &&
	       sl_runtime_state(a->rt) == SL_RUNTIME_LOST) {
		left = until - sl_monotonic_ms();
		a->away = left <= 0;
		if (!a->away)
			poll(&fd, 1, (int)left);
	}
	return !a->away;
}

void sl_run_agent_egress(struct sl_run_agent *a, struct sl_egress_stats *out)
{
	const struct sl_runtime_session *session;
	struct json_object *json, *egress, *value;
	const struct {
		const char *name;
		uint64_t *count;
	} told[] = { { "unleased", &out->unleased },
		     { "crowded", &out->crowded },
		     { "limited", &out->limited },
		     { "lost", &out->lost },
		     { "strangers", &out->strangers } };

	if (!is_there(a) || sl_runtime_show(a->rt, &session))
		return;
	json = json_tokener_parse(session->json);
	for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
		if (json_object_object_get_ex(json, "egress", &egress) &&
		    json_object_object_get_ex(egress, told[i].name, &value))
			*told[i].count = json_object_get_uint64(value);
	}
	json_object_put(json);
}

const char *sl_run_agent_token(const struct sl_run_agent *a)
{
	return sl_runtime_token(a->rt);
}

const char *sl_run_agent_socket(const struct sl_run_agent *a)
{
	return a->socket;
}

int sl_run_agent_fd(const struct sl_run_agent *a)
{
	return sl_runtime_fd(a->rt);
}

int sl_run_agent_tick(struct sl_run_agent *a, struct sl_err *err)
{
	int ret = sl_runtime_dispatch(a->rt);
	bool lost = sl_runtime_state(a->rt) == SL_RUNTIME_LOST;

	if (ret)
		return failed(a, ret, "the agent gave the sandbox up", err);
	if (lost && !a->lost)
		sl_log_warning("the agent is gone; what is allowed stays as it is, and calls that "
			       "wait for it do so until it is back");
	else if (!lost && a->lost)
		sl_log_notice("the agent is back");
	a->lost = lost;
	return 0;
}

int sl_run_agent_check(struct sl_run_agent *a, struct sl_err *err)
{
	const struct sl_runtime_session *session;
	char reason[512];
	int ret;

	if (!is_there(a))
		return 0;
	ret = sl_runtime_show(a->rt, &session);
	if (sl_runtime_state(a->rt) == SL_RUNTIME_OVER)
		return failed(a, ret ?: -ESHUTDOWN, "the agent gave the sandbox up", err);
	/* That it does not answer is no word about the command. */
	if (ret || !session->reason)
		return 0;
	sl_escape_text(reason, sizeof(reason), session->reason);
	return sl_err_set(err, ESHUTDOWN, "the agent gave the sandbox up: %s", reason);
}

void sl_run_agent_detach(struct sl_run_agent *a, const struct sl_set *set, unsigned int sandbox)
{
	struct sl_err err = { 0 };
	int ret;

	if (is_there(a) && !sl_runtime_detach(a->rt, SL_DETACH_KILL))
		return;
	ret = sl_shared_detach(sl_set_dir(set), sandbox, sl_guard_forget, &err);
	if (ret && ret != -ENOENT)
		sl_log_warning("sandbox %u could not be detached: %s", sandbox, err.text);
}

void sl_run_agent_finish(const char *socket, const char *token)
{
	struct sl_runtime *rt = NULL;

	if (sl_runtime_new(&rt, "sluice run", SL_VERSION))
		return;
	/* Else rule 3. */
	if (!sl_runtime_connect(rt, socket, FINISH_MS) &&
	    !sl_runtime_resume(rt, token, SL_SILENCE_NEVER))
		(void)sl_runtime_detach(rt, SL_DETACH_KILL);
	sl_runtime_free(&rt);
}
