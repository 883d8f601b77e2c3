/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attach: from a client's request to a sandbox under its policy. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/load.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/hex.h"
#include "base/log.h"
#include "kernel/cgroup.h"
#include "kernel/shared.h"
#include "run/enforce.h"

#define SILENCE_MS 10000
#define GRACE_MS 60000

/* Names of options, in the order of the enums that follow. */
static const char *const mode_words[] = { "observe", "audit", "enforce" };
static const enum sl_guard_mode modes[] = { SL_GUARD_OBSERVE, SL_GUARD_AUDIT, SL_GUARD_ENFORCE,
					    SL_GUARD_MODE_MAX };
#define MODE_OBSERVE 0
static const char *const hold_words[] = { "exec", "connect" };
_Static_assert(SL_RUN_HOLD_CONNECT == SL_RUN_HOLD_EXEC + 1, "in this order");

struct options {
	unsigned int mode, hold, end;
	uint64_t silence_ms, grace_ms;
	bool freeze_on_loss;
};

static const struct sl_param option_params[] = {
	SL_PARAM_ENUM(struct options, mode, mode_words, .optional = true),
	SL_PARAM_ENUM(struct options, hold, hold_words, .optional = true),
	SL_PARAM(UINT, struct options, silence_ms, .optional = true, .max = SL_SILENCE_MAX_MS),
	SL_PARAM(UINT, struct options, grace_ms, .optional = true, .max = SL_GRACE_MAX_MS),
	SL_PARAM(BOOL, struct options, freeze_on_loss, .optional = true),
	SL_PARAM_ENUM(struct options, end, sl_session_end_names, .optional = true),
	{ 0 },
};

struct params {
	const char *key, *cgroup, *name, *policy, *policy_name;
	uint64_t epoch, cgroup_fd, listener_fd, mounts_of;
	struct json_object *options, *egress;
};

#define NO_FD UINT64_MAX

/* In place of a policy that was not given: in mode observe it denies nothing. */
static const char observing[] = "version: 1\n";

static const struct sl_param params[] = {
	SL_PARAM(STRING, struct params, key, .max = 2 * SL_SESSION_KEY),
	SL_PARAM(UINT, struct params, epoch),
	SL_PARAM(STRING, struct params, cgroup, .optional = true),
	SL_PARAM(UINT, struct params, cgroup_fd, .optional = true, .max = SL_FDS_MAX - 1),
	SL_PARAM(STRING, struct params, name, .optional = true, .max = SL_SANDBOX_NAME_MAX - 1),
	SL_PARAM(STRING, struct params, policy, .optional = true, .max = SL_POLICY_FILE_MAX),
	SL_PARAM(STRING, struct params, policy_name, .optional = true),
	SL_PARAM(UINT, struct params, listener_fd, .optional = true, .max = SL_FDS_MAX - 1),
	SL_PARAM(UINT, struct params, mounts_of, .optional = true, .max = INT_MAX),
	SL_PARAM(OBJECT, struct params, options, .optional = true),
	SL_PARAM(OBJECT, struct params, egress, .optional = true),
	{ 0 },
};

/* One attach, from the call to its answer. */
struct attach {
	struct sl_job job;
	struct sl_agent *agent;
	struct json_object *json; /* the call's parameters, which `read` borrows from */
	struct params read;
	struct options options;
	struct sl_record_new wanted;
	char cgroup[PATH_MAX], copy[PATH_MAX];
	uint8_t no_digest[SL_SHA256_LEN];
	int listener;
	struct sl_serve *serve;
	uint64_t serve_tag;
	uint64_t conn;
	unsigned int row, sandbox;
	struct sl_load load;
	struct sl_err err;
	int ret;
};

static void attach_free(struct attach **attach)
{
	struct attach *a = *attach;

	if (!a)
		return;
	sl_load_end(&a->load);
	sl_serve_free(&a->serve);
	sl_cleanup_fd(&a->listener);
	json_object_put(a->json);
	free(a);
	*attach = NULL;
}

/* --- in a job --- */

/* Takes back what was made, so that nothing of it is left. */
static void take_back(struct attach *a)
{
	struct sl_err err = { 0 };

	if (a->sandbox)
		(void)sl_shared_detach(a->agent->options->set_dir, a->sandbox, sl_guard_forget,
				       &err);
	if (err.code)
		sl_log_err(SL_LOG_ERROR, &err);
	sl_serve_drop(a->serve, a->agent->link);
	sl_copies_clean(a->agent->copies, a->wanted.key, 0);
	(void)sl_store_remove(a->agent->store, a->wanted.key, NULL);
}

static int attach_steps(struct attach *a)
{
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	struct sl_agent *agent = a->agent;
	int ret = sl_load_open(&a->load, &a->err);

	/* Whatever becomes of the disk, this one's end is to be noted. */
	ret = ret ?: sl_store_reserve(agent->store, a->wanted.key, &a->err);
	ret = ret
		      ?: sl_shared_attach(agent->options->set_dir, a->cgroup, a->read.name, NULL,
					  &a->sandbox, &a->err);
	ret = ret ?: sl_agent_set(agent, &set, &a->err);
	if (ret)
		return ret;
	if (!sl_agent_sandbox(set->set, a->sandbox, a->wanted.cgroup_id))
		return sl_err_set(&a->err, ESTALE, "the cgroup was replaced meanwhile");
	if (a->read.mounts_of)
		ret = sl_guard_mounts_of(set->set, a->sandbox, (pid_t)a->read.mounts_of, &a->err);
	ret = ret
		      ?: sl_serve_keep(a->serve, agent->link, agent->copies, a->wanted.key,
				       a->serve_tag, &a->err);
	ret = ret ?: sl_load_into(&a->load, set, a->sandbox, &a->err);
	ret = ret ?: sl_copies_set_from(agent->copies, a->wanted.key, a->read.policy_name);
	if (ret)
		return a->err.code ? ret : sl_err_sys(&a->err, -ret, "can't note the policy");
	/* Last, since it can't be taken back. */
	return a->listener < 0 ? 0
			       : sl_held_listen(agent->held, &a->listener, a->wanted.listener,
						a->load.use, &a->err);
}

static void run(struct sl_job *job)
{
	struct attach *a = (struct attach *)job;

	a->ret = attach_steps(a);
	if (a->ret)
		take_back(a);
}

/* --- in the loop --- */

static void reply(struct sl_agent *agent, struct sl_request *request, unsigned int row)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	struct json_object *json = json_object_new_object();
	char token[2 * SL_SESSION_TOKEN + 1], id[16];

	sl_hex(token, record->token, sizeof(record->token));
	snprintf(id, sizeof(id), "%u", record->sandbox);
	if (json && !sl_json_add(json, "sandbox", json_object_new_string(id)) &&
	    !sl_json_add(json, "epoch",
			 json_object_new_uint64(sl_record_epoch(agent->records, row))))
		sl_json_add(json, "token", json_object_new_string(token));
	sl_request_reply(request, json);
}

static void succeed(struct attach *a, struct sl_request *request)
{
	struct sl_agent *agent = a->agent;
	struct sl_box *box = agent->boxes[a->row];
	struct sl_step step;

	box->attaching = true;
	box->serve = TAKE_PTR(a->serve);
	sl_agent_box_use(agent, a->row, TAKE_PTR(a->load.use), a->load.policy_id);
	sl_session_attached(agent->sessions, a->row, a->sandbox, sl_monotonic_ms(), &step);
	sl_record_set_policy(agent->records, a->row, a->load.path, a->load.sha256);
	sl_agent_do(agent, &step);
	(void)sl_agent_enforced(agent, a->row);
	box->attaching = box->unsaved = false;
	sl_agent_save(agent, a->row);
	if (request)
		reply(agent, request, a->row);
}

static void done(struct sl_job *job)
{
	_cleanup_(attach_free) struct attach *a = (struct attach *)job;
	struct sl_agent *agent = a->agent;
	struct sl_request *request = sl_conn_request(agent, a->conn);

	/* The agent stops: it was not begun, and its record goes with the keeper. */
	if (job->dropped)
		return;
	if (!a->ret) {
		succeed(a, request);
		return;
	}
	sl_log_notice("'%s' was not attached: %s", a->cgroup, a->err.text);
	sl_session_undo(agent->sessions, a->row);
	sl_agent_box_drop(agent, a->row);
	if (!request)
		return;
	sl_reply_refused(request, &a->err);
	sl_conn_end(agent, a->conn, NULL);
}

/* Of what was named, or what was sent: that may have been opened by another mount. */
static int find_path(struct attach *a, struct sl_request *request)
{
	_cleanup_fd_ int sent = -1;
	int ret;

	if ((a->read.cgroup != NULL) == (a->read.cgroup_fd != NO_FD))
		return sl_err_set(&a->err, EINVAL, "either cgroup or cgroup_fd is to be given");
	if (a->read.cgroup) {
		ret = sl_cgroup_resolve(a->cgroup, sizeof(a->cgroup), a->read.cgroup, &a->err);
		if (ret == -ENOENT)
			sl_err_hint(&a->err, "a path is what the agent sees; in namespaces of its "
					     "own a runtime opens the directory and sends that");
		return ret;
	}
	sent = sl_request_take_fd(request, (unsigned int)a->read.cgroup_fd);
	if (sent < 0)
		return sl_err_set(&a->err, EBADF, "cgroup_fd: no such descriptor was sent");
	ret = sl_cgroup_path(a->cgroup, sizeof(a->cgroup), sent, &a->err);
	return ret ? sl_err_prefix(&a->err, "cgroup_fd") : 0;
}

/* The root can't be frozen or killed, has the agent in it, and everybody else. */
static int refuse_root(struct attach *a)
{
	char mount[PATH_MAX];
	int ret = sl_cgroup_mount(mount, sizeof(mount), &a->err);

	if (ret || strcmp(a->cgroup, mount) != 0)
		return ret;
	sl_err_set(&a->err, EINVAL, "'%s' is the root of all cgroups: it is no sandbox", mount);
	return sl_err_hint(&a->err, "make a cgroup below it, and start the workload in that");
}

/* Its path, and its id. */
static int find_cgroup(struct attach *a, struct sl_request *request)
{
	_cleanup_fd_ int fd = -1;
	unsigned long long id;
	int ret = find_path(a, request);

	ret = ret ?: refuse_root(a);
	ret = ret ?: sl_cgroup_open(&fd, a->cgroup, &a->err);
	if (ret)
		return ret;
	ret = sl_cgroup_id(&id, fd);
	a->wanted.cgroup = a->cgroup;
	a->wanted.cgroup_id = id;
	return ret ? sl_err_sys(&a->err, -ret, "can't tell the id of the cgroup") : 0;
}

static int take_listener(struct attach *a, struct sl_request *request)
{
	if (a->read.listener_fd == NO_FD)
		return 0;
	a->listener = sl_request_take_fd(request, (unsigned int)a->read.listener_fd);
	if (a->listener < 0)
		return sl_err_set(&a->err, EBADF, "listener_fd: no such descriptor was sent");
	if (!sl_notify_is_listener(a->listener))
		return sl_err_set(&a->err, EBADF, "listener_fd is no seccomp listener");
	return 0;
}

/* Shown as it is typed: nothing in it would be escaped. */
static int check_name(struct attach *a)
{
	char shown[SL_ESCAPE_MAX(SL_SANDBOX_NAME_MAX)];
	const char *name = a->read.name;

	if (!name)
		return 0;
	sl_escape_text(shown, sizeof(shown), name);
	if (*name && strspn(name, "0123456789") < strlen(name) && !strchr(name, '/') &&
	    !strcmp(shown, name))
		return 0;
	return sl_err_set(&a->err, EINVAL,
			  "name: printable bytes are expected, no number, no '/', no '\\'");
}

static int check_policy(struct attach *a)
{
	if (a->read.policy)
		return 0;
	/* Forgotten is not meant. */
	if (a->options.mode != MODE_OBSERVE)
		return sl_err_set(&a->err, EINVAL, "without a policy the mode is to be `observe`");
	a->read.policy = observing;
	return 0;
}

static int take_egress(struct attach *a, struct sl_request *request)
{
	if (!a->read.egress)
		return 0;
	if (a->read.policy == observing)
		return sl_err_set(&a->err, EINVAL,
				  "egress is served by a policy, and there is none");
	a->serve_tag = sl_held_tag(a->agent->held);
	return sl_serve_new(&a->serve, a->read.egress, request, (pid_t)a->read.mounts_of, &a->err);
}

/* What the record and the job need, of what was asked for. */
static int fill(struct attach *a, struct sl_request *request, uint32_t version)
{
	enum sl_run_hold hold = (enum sl_run_hold)(SL_RUN_HOLD_EXEC + a->options.hold);
	int ret = check_name(a) ?: check_policy(a);

	ret = ret ?: find_cgroup(a, request);
	ret = ret ?: take_listener(a, request);
	ret = ret ?: take_egress(a, request);
	if (ret)
		return ret;
	ret = sl_copies_path(a->agent->copies, a->wanted.key, 0, a->copy);
	if (ret)
		return sl_err_sys(&a->err, -ret, "policy");
	a->wanted.epoch = a->read.epoch;
	a->wanted.version = version;
	a->wanted.policy_path = a->copy;
	a->wanted.policy_sha256 = a->no_digest;
	a->wanted.options = (struct sl_session_options){
		.freeze_on_loss = a->options.freeze_on_loss,
		.silence_ms = (uint32_t)a->options.silence_ms,
		.grace_ms = (uint32_t)a->options.grace_ms,
		.end = (enum sl_session_end)a->options.end,
	};
	a->load = (struct sl_load){
		.held = a->agent->held,
		.copies = a->agent->copies,
		.serve = a->serve,
		.text = a->read.policy,
		.name = a->read.policy_name ?: "the policy",
		.len = strlen(a->read.policy),
		.quiet = a->read.policy == observing,
		.holder = a->listener < 0 ? SL_GUARD_HOLDS_NOTHING : sl_run_holder(hold),
		.mode = modes[a->options.mode],
	};
	memcpy(a->load.key, a->wanted.key, sizeof(a->load.key));
	if (a->listener >= 0)
		a->wanted.holds = sl_run_holds(hold, true);
	return 0;
}

/* A new session: its record is there, the rest takes a job. */
static void begin(struct attach **attach, unsigned int row)
{
	struct attach *a = TAKE_PTR(*attach);
	struct sl_agent *agent = a->agent;
	struct sl_box *box = sl_agent_box(agent, row);

	a->row = row;
	a->job = (struct sl_job){ .key = row, .run = run, .done = done };
	a->ret = box ? sl_agent_box_cgroup(agent, row) : -ENOMEM;
	if (!a->ret) {
		sl_work_add(agent->work, &a->job);
		return;
	}
	sl_err_sys(&a->err, -a->ret, "can't attach");
	done(&a->job);
}

static bool read_all(struct attach *a, struct sl_request *request)
{
	const char *bad;

	a->read.cgroup_fd = a->read.listener_fd = NO_FD;
	a->options = (struct options){ .mode = ARRAY_SIZE(mode_words),
				       .end = SL_SESSION_END_FROZEN,
				       .silence_ms = SILENCE_MS,
				       .grace_ms = GRACE_MS,
				       .freeze_on_loss = true };
	if (!sl_read_params(request, params, &a->read))
		return false;
	bad = "key";
	if (!sl_hex_parse(a->read.key, a->wanted.key, sizeof(a->wanted.key)) &&
	    (!a->read.options ||
	     !sl_params_read(&a->options, option_params, a->read.options, &bad)))
		return true;
	sl_request_invalid(request, bad);
	return false;
}

void sl_method_attach(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = sl_conn_enter(agent, request);
	_cleanup_(attach_free) struct attach *a = conn ? calloc(1, sizeof(*a)) : NULL;
	struct sl_err err = { .code = ENOMEM, .text = "no memory to attach" };
	struct sl_step step;
	int ret;

	if (!a) {
		if (conn)
			sl_reply_refused(request, &err);
		return;
	}
	a->agent = agent;
	a->conn = conn->id;
	a->listener = -1;
	a->json = json_object_get(sl_request_parameters(request));
	if (!read_all(a, request))
		return;
	ret = fill(a, request, conn->version);
	if (!ret) {
		if (a->listener >= 0)
			a->wanted.listener = sl_held_tag(agent->held);
		ret = sl_session_attach(agent->sessions, conn->id, &a->wanted, sl_monotonic_ms(),
					&step, &a->err);
	}
	if (ret) {
		sl_reply_refused(request, &a->err);
		sl_conn_end(agent, conn->id, NULL);
		return;
	}
	if (step.answer == SL_ANSWER_NEW) {
		begin(&a, step.row);
		return;
	}
	sl_agent_do(agent, &step);
	if (step.answer == SL_ANSWER_RECOVERED)
		reply(agent, request, step.row);
	else
		sl_reply_step(agent, request, &step);
}
