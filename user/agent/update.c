/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Another policy for a sandbox, the same one anew, its names again; and what one asks for. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/load.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/filter.h"
#include "guard/names.h"
#include "policy/policy.h"
#include "run/enforce.h"

/* --- UpdatePolicy, reload --- */

struct update {
	struct sl_job job;
	struct sl_agent *agent;
	uint64_t conn; /* that waits for an answer; 0: none */
	unsigned int row, sandbox;
	uint64_t cgroup_id;
	struct sl_load load;
	char *text, from[PATH_MAX];
	bool set_from;
	struct sl_err err;
	int ret;
};

static void update_free(struct update **update)
{
	struct update *u = *update;

	if (!u)
		return;
	sl_load_end(&u->load);
	free(u->text);
	free(u);
	*update = NULL;
}

static void run(struct sl_job *job)
{
	struct update *u = (struct update *)job;
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;

	u->ret = sl_load_open(&u->load, &u->err);
	u->ret = u->ret ?: sl_agent_set(u->agent, &set, &u->err);
	if (!u->ret && !sl_agent_sandbox(set->set, u->sandbox, u->cgroup_id))
		u->ret = sl_err_set(&u->err, ENOENT, "the sandbox was detached");
	u->ret = u->ret ?: sl_load_into(&u->load, set, u->sandbox, &u->err);
}

/* What had to wait for others to be done. */
static void reload_again(struct sl_agent *agent, unsigned int row)
{
	struct sl_box *box = agent->boxes[row];
	bool from_file = box->reload_file;

	if (!box->reload || box->changing)
		return;
	box->reload = box->reload_file = false;
	sl_agent_reload(agent, row, from_file);
}

static void take_over(struct update *u)
{
	struct sl_agent *agent = u->agent;

	sl_agent_box_use(agent, u->row, TAKE_PTR(u->load.use), u->load.policy_id);
	/* Of a session that has ended meanwhile the record stays as it is: the copy is found by id. */
	(void)sl_record_set_policy(agent->records, u->row, u->load.path, u->load.sha256);
	if (u->set_from)
		(void)sl_copies_set_from(agent->copies, u->load.key, u->from);
	sl_copies_clean(agent->copies, u->load.key, u->load.policy_id);
	sl_agent_save(agent, u->row);
	(void)sl_agent_enforced(agent, u->row);
	sl_agent_report_policy(agent, u->row, NULL, NULL);
	sl_agent_tell(agent, u->row, false);
}

/* Whether what names and connections need is there; of no news where it has always been. */
static void report_egress(const struct update *u)
{
	struct sl_box *box = u->agent->boxes[u->row];
	struct sl_condition_report report = { .type = "Egress",
					      .status = SL_CONDITION_TRUE,
					      .reason = "Served" };
	struct sl_serve_view view;

	if (!box->serve)
		return;
	sl_serve_view(box->serve, &view);
	if (u->ret && !view.serving) {
		report.status = SL_CONDITION_FALSE;
		report.reason = "NotServed";
		report.message = u->err.text;
		report.bad = true;
	} else if (u->ret || !sl_conditions_find(&box->conditions, report.type)) {
		return;
	}
	sl_agent_report(u->agent, u->row, &report);
}

static void done(struct sl_job *job)
{
	_cleanup_(update_free) struct update *u = (struct update *)job;
	struct sl_agent *agent = u->agent;
	struct sl_request *request = u->conn ? sl_conn_request(agent, u->conn) : NULL;

	if (job->dropped)
		return;
	agent->boxes[u->row]->changing--;
	report_egress(u);
	if (u->ret) {
		sl_copies_clean(agent->copies, u->load.key, agent->boxes[u->row]->policy_id);
		sl_log_warning("sandbox %u: its policy stays as it was: %s", u->sandbox,
			       u->err.text);
		/* Who has asked is told. */
		if (!u->conn)
			sl_agent_report_policy(agent, u->row, "ReloadFailed", u->err.text);
		if (request)
			sl_reply_refused(request, &u->err);
	} else {
		take_over(u);
		sl_log_info("sandbox %u: policy %u is in force", u->sandbox, u->load.policy_id);
		if (request)
			sl_request_reply(request, NULL);
	}
	reload_again(agent, u->row);
}

static enum sl_guard_holder holder_of(const struct sl_record *record)
{
	if (!record->listener)
		return SL_GUARD_HOLDS_NOTHING;
	return record->holds & SL_HOLD_CONNECT ? SL_GUARD_HOLDS_CALLS : SL_GUARD_HOLDS_EXEC;
}

/* Begins a job; `text` is taken over. */
static int begin(struct sl_agent *agent, unsigned int row, uint64_t conn, char *text, size_t len,
		 const char *from, enum sl_guard_mode mode)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	struct update *u = calloc(1, sizeof(*u));

	if (!u) {
		free(text);
		return -ENOMEM;
	}
	u->agent = agent;
	u->conn = conn;
	u->row = row;
	u->sandbox = record->sandbox;
	u->cgroup_id = record->cgroup_id;
	u->text = text;
	u->set_from = conn != 0;
	snprintf(u->from, sizeof(u->from), "%s", from ?: "");
	u->load = (struct sl_load){
		.held = agent->held,
		.copies = agent->copies,
		.serve = agent->boxes[row]->serve,
		.tag = record->listener,
		.text = text,
		.name = u->from[0] ? u->from : "the policy",
		.len = len,
		.holder = holder_of(record),
		.mode = mode,
	};
	memcpy(u->load.key, record->key, sizeof(u->load.key));
	u->job = (struct sl_job){ .key = row, .run = run, .done = done };
	agent->boxes[row]->changing++;
	sl_work_add(agent->work, &u->job);
	return 0;
}

static const char *const mode_words[] = { "observe", "audit", "enforce" };

struct params {
	const char *sandbox, *policy, *policy_name;
	unsigned int mode;
};

static const struct sl_param update_params[] = {
	SL_PARAM(STRING, struct params, sandbox, .optional = true, .max = 20),
	SL_PARAM(STRING, struct params, policy, .max = SL_POLICY_FILE_MAX),
	SL_PARAM(STRING, struct params, policy_name, .optional = true),
	SL_PARAM_ENUM(struct params, mode, mode_words, .optional = true),
	{ 0 },
};

void sl_method_update(struct sl_request *request, void *ctx)
{
	static const enum sl_guard_mode modes[] = { SL_GUARD_OBSERVE, SL_GUARD_AUDIT,
						    SL_GUARD_ENFORCE, SL_GUARD_MODE_MAX };
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = sl_conn_enter(agent, request);
	struct params read = { .mode = ARRAY_SIZE(mode_words) };
	struct sl_err err = { 0 };
	unsigned int row;
	char *text;

	if (!conn || !sl_read_params(request, update_params, &read) ||
	    !sl_target(agent, request, conn, read.sandbox, &row))
		return;
	if (agent->boxes[row]->leaving) {
		sl_err_set(&err, ENOENT, "the sandbox is being detached");
		sl_reply_refused(request, &err);
		return;
	}
	text = strdup(read.policy);
	if (!text ||
	    begin(agent, row, conn->id, text, strlen(text), read.policy_name, modes[read.mode])) {
		sl_err_sys(&err, ENOMEM, "policy");
		sl_reply_refused(request, &err);
	}
}

/* A whole file, which has to be a regular one: the loop waits for it. *text is the caller's. */
static int read_file(const char *path, char **text, size_t *len)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_free_ char *read_text = NULL;
	struct stat st;
	size_t used = 0;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	if (st.st_size > SL_POLICY_FILE_MAX)
		return -EFBIG;
	read_text = malloc((size_t)st.st_size + 1);
	if (!read_text)
		return -ENOMEM;
	while (used < (size_t)st.st_size && n > 0) {
		n = read(fd, read_text + used, (size_t)st.st_size - used);
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	read_text[used] = '\0';
	*text = TAKE_PTR(read_text);
	*len = used;
	return 0;
}

static void report_unread(struct sl_agent *agent, unsigned int row, const char *from, int code)
{
	struct sl_err err = { 0 };

	sl_err_set(&err, code, "can't read '%s': %s", from[0] ? from : "the copy of it",
		   strerror(code));
	sl_log_warning("sandbox %u: its policy stays as it was: %s",
		       sl_record_at(agent->records, row)->sandbox, err.text);
	sl_agent_report_policy(agent, row, "ReloadFailed", err.text);
}

void sl_agent_reload(struct sl_agent *agent, unsigned int row, bool from_file)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	struct sl_box *box = agent->boxes[row];
	char from[PATH_MAX], *text = NULL;
	size_t len = 0;
	int ret;

	if (!box || !box->use || box->leaving)
		return;
	/* The policy of before must not follow the one that is just being loaded. */
	if (box->changing) {
		box->reload = true;
		box->reload_file |= from_file;
		return;
	}
	sl_copies_from(agent->copies, record->key, from);
	if (from_file && from[0])
		ret = read_file(from, &text, &len);
	else
		ret = sl_copies_read(agent->copies, record->key, box->policy_id, &text, &len);
	if (ret)
		report_unread(agent, row, from, -ret);
	else if (begin(agent, row, 0, text, len, from, SL_GUARD_MODE_MAX))
		sl_log_error("sandbox %u: no memory to load its policy anew", record->sandbox);
}

/* --- names --- */

struct refresh {
	struct sl_job job;
	struct sl_agent *agent;
	struct sl_use *use;
};

static void refresh_run(struct sl_job *job)
{
	struct refresh *r = (struct refresh *)job;
	struct sl_err err = { 0 };

	if (sl_apply_refresh(r->use->apply, &err))
		sl_log_error("sandbox %u: looking names up again: %s", r->use->sandbox, err.text);
}

static void refresh_done(struct sl_job *job)
{
	struct refresh *r = (struct refresh *)job;

	sl_use_put(&r->use);
	free(r);
}

static void refresh(struct sl_agent *agent, unsigned int row)
{
	struct refresh *r = calloc(1, sizeof(*r));

	/* Then the next time. */
	if (!r)
		return;
	r->job = (struct sl_job){ .key = row, .run = refresh_run, .done = refresh_done };
	r->use = sl_use_get(agent->boxes[row]->use);
	sl_work_add(agent->work, &r->job);
}

int64_t sl_agent_refresh(struct sl_agent *agent, int64_t now_ms)
{
	int64_t soonest = -1;

	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		struct sl_box *box = agent->boxes[row];

		if (!box || box->refresh_ms < 0 || box->leaving)
			continue;
		/* What is being loaded looks its names up itself, and may end what is in force. */
		if (box->refresh_ms <= now_ms && box->changing)
			continue;
		if (box->refresh_ms <= now_ms) {
			refresh(agent, row);
			box->refresh_ms = now_ms + SL_NAMES_REFRESH_MS;
		}
		if (soonest < 0 || box->refresh_ms < soonest)
			soonest = box->refresh_ms;
	}
	return soonest;
}

/* --- Plan --- */

/* By enum sl_run_hold. */
static const char *const hold_words[] = { "auto", "exec", "connect" };

struct plan {
	const char *policy, *policy_name;
	unsigned int hold;
};

static const struct sl_param plan_params[] = {
	SL_PARAM(STRING, struct plan, policy, .max = SL_POLICY_FILE_MAX),
	SL_PARAM(STRING, struct plan, policy_name, .optional = true),
	SL_PARAM_ENUM(struct plan, hold, hold_words, .optional = true),
	{ 0 },
};

void sl_method_plan(struct sl_request *request, void *ctx)
{
	const struct sl_conn *conn = sl_conn_enter(ctx, request);
	_cleanup_(sl_apply_free) struct sl_apply *apply = NULL;
	struct plan read = { 0 };
	/* Who looks into requests, if somebody does, is said with Attach. */
	struct sl_apply_options options = { .quiet = true, .inspects = true };
	struct sl_err err = { 0 };
	struct json_object *json;
	unsigned int holds;

	if (!conn || !sl_read_params(request, plan_params, &read))
		return;
	options.file = read.policy_name ?: "the policy";
	options.text = read.policy;
	options.len = strlen(read.policy);
	options.holder = sl_run_holder((enum sl_run_hold)read.hold);
	if (sl_apply_open(&apply, &options, &err)) {
		sl_reply_refused(request, &err);
		return;
	}
	holds = sl_run_holds((enum sl_run_hold)read.hold, sl_apply_needs_files(apply));
	json = json_object_new_object();
	if (json) {
		sl_json_add(json, "exec", json_object_new_boolean(holds & SL_HOLD_EXEC));
		sl_json_add(json, "connect", json_object_new_boolean(holds & SL_HOLD_CONNECT));
		sl_json_add(json, "send", json_object_new_boolean(holds & SL_HOLD_SEND));
		sl_json_add(json, "listen",
			    json_object_new_boolean(holds & SL_HOLD_CONNECT &&
						    sl_apply_needs_files(apply)));
		sl_json_add(json, "strict", json_object_new_boolean(sl_apply_strict(apply)));
	}
	sl_request_reply(request, json);
}
