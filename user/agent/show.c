/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What there is: List, Show, Status, and a session as JSON. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/hex.h"
#include "base/object.h"

/* By enum sl_session_wanted. */
static const char *const wanted_words[] = { "running", "frozen", "dead" };

struct session_view {
	uint32_t sandbox;
	uint64_t cgroup_id, epoch, dropped;
	const char *set, *cgroup, *mode, *policy, *cause, *reason, *reason_time;
	enum sl_record_state state;
	enum sl_session_wanted wanted;
	enum sl_session_end end;
	bool freeze_asked, connected, enforced, listener, freeze_on_loss;
	uint32_t version, silence_ms, grace_ms;
	char sha256[2 * SL_SHA256_LEN + 1];
	struct sl_records conditions;
	const struct sl_serve_view *egress;
};

static const struct sl_field session_fields[] = {
	SL_FIELD_ID(struct session_view, sandbox, NULL),
	SL_FIELD_TEXT(struct session_view, set, NULL),
	SL_FIELD_TEXT(struct session_view, cgroup, NULL),
	SL_FIELD_ID(struct session_view, cgroup_id, NULL),
	SL_FIELD_ENUM(struct session_view, state, NULL, sl_record_state_names),
	SL_FIELD_ENUM(struct session_view, wanted, NULL, wanted_words),
	SL_FIELD_BOOL(struct session_view, freeze_asked, NULL),
	SL_FIELD_BOOL(struct session_view, connected, NULL),
	SL_FIELD_BOOL(struct session_view, enforced, NULL),
	SL_FIELD_BOOL(struct session_view, listener, NULL),
	SL_FIELD_UINT(struct session_view, epoch, NULL),
	SL_FIELD_AS(UINT, struct session_view, version, "protocol", NULL),
	SL_FIELD_TEXT(struct session_view, mode, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_TEXT(struct session_view, policy, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_AS(STRING, struct session_view, sha256, "policy_sha256", NULL),
	SL_FIELD_UINT(struct session_view, silence_ms, NULL),
	SL_FIELD_UINT(struct session_view, grace_ms, NULL),
	SL_FIELD_BOOL(struct session_view, freeze_on_loss, NULL),
	SL_FIELD_ENUM(struct session_view, end, NULL, sl_session_end_names),
	SL_FIELD_TEXT(struct session_view, cause, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_TEXT(struct session_view, reason, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_TEXT(struct session_view, reason_time, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_OBJECT_PTR(struct session_view, egress, NULL, sl_serve_fields,
			    .flags = SL_FIELD_NULL),
	SL_FIELD_RECORDS(struct session_view, conditions, NULL, sl_condition_fields),
	SL_FIELD_AS(UINT, struct session_view, dropped, "conditions_dropped", NULL),
	{ 0 },
};

/* The record's part. */
static void fill_record(struct session_view *view, const struct sl_agent *agent, unsigned int row)
{
	const struct sl_record_table *records = agent->records;
	const struct sl_record *record = sl_record_at(records, row);

	*view = (struct session_view){
		.sandbox = record->sandbox,
		.set = agent->options->set_dir,
		.cgroup = record->cgroup,
		.cgroup_id = record->cgroup_id,
		.state = sl_record_state(records, row),
		.wanted = sl_session_wanted(records, row),
		.freeze_asked = sl_record_freeze_asked(records, row),
		.connected = sl_session_connected(agent->sessions, row),
		.listener = sl_held_known(agent->held, record->listener),
		.epoch = sl_record_epoch(records, row),
		.version = record->version,
		.silence_ms = record->options.silence_ms,
		.grace_ms = record->options.grace_ms,
		.freeze_on_loss = record->options.freeze_on_loss,
		.end = record->options.end,
	};
	if (view->state == SL_RECORD_LOST)
		view->cause = record->cause;
	if (view->state == SL_RECORD_ENDED) {
		view->reason = record->reason;
		view->end = record->end;
	}
	sl_hex(view->sha256, sl_record_policy(records, row)->sha256, SL_SHA256_LEN);
}

static const char *mode_of(struct sl_agent *agent, unsigned int row)
{
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	struct sl_guard guard;

	if (sl_agent_set(agent, &set, NULL) ||
	    sl_guard_read(set->set, sl_record_at(agent->records, row)->sandbox, &guard))
		return NULL;
	return sl_guard_mode_name(guard.mode);
}

int sl_session_json(struct json_object **out, struct sl_agent *agent, unsigned int row)
{
	const struct sl_box *box = sl_agent_box(agent, row);
	char from[PATH_MAX], ended[SL_FORMAT_MAX];
	struct sl_condition_view *conditions;
	struct sl_serve_view egress;
	struct session_view view;
	int ret;

	if (!box)
		return -ENOMEM;
	conditions = calloc(SL_CONDITIONS_MAX, sizeof(*conditions));
	if (!conditions)
		return -ENOMEM;
	view.enforced = sl_agent_enforced(agent, row);
	ret = view.enforced;
	fill_record(&view, agent, row);
	view.enforced = ret;
	sl_copies_from(agent->copies, sl_record_at(agent->records, row)->key, from);
	view.policy = from[0] ? from : NULL;
	if (box->serve) {
		sl_serve_view(box->serve, &egress);
		view.egress = &egress;
	}
	view.mode = view.enforced ? mode_of(agent, row) : NULL;
	if (view.reason && box->conditions.terminal_ns)
		view.reason_time =
			sl_format_time(ended, sizeof(ended), box->conditions.terminal_ns, 0);
	for (uint32_t i = 0; i < box->conditions.count; i++)
		sl_condition_view(&conditions[i], &box->conditions.list[i]);
	view.conditions =
		(struct sl_records){ conditions, box->conditions.count, sizeof(*conditions) };
	view.dropped = box->conditions.dropped;
	ret = sl_object_json(out, session_fields, &view);
	free(conditions);
	return ret;
}

static void no_memory(struct sl_request *request)
{
	const struct sl_err err = { .code = ENOMEM, .text = "no memory for the answer" };

	sl_reply_refused(request, &err);
}

void sl_method_list(struct sl_request *request, void *ctx)
{
	static const struct sl_param none[] = { { 0 } };
	struct sl_agent *agent = ctx;
	struct json_object *json, *list, *session;
	const struct sl_conn *conn = sl_conn_enter(agent, request);
	unsigned int row;

	if (!conn || !sl_read_params(request, none, NULL))
		return;
	/* Of a session's own connection it is a sign of life. */
	(void)sl_session_heard(agent->sessions, conn->id, sl_monotonic_ms(), &row);
	json = json_object_new_object();
	list = json_object_new_array();
	for (unsigned int at = 0; list && sl_record_next(agent->records, &at, &row);) {
		if (!sl_session_json(&session, agent, row))
			json_object_array_add(list, session);
	}
	if (!json || sl_json_add(json, "sessions", list)) {
		json_object_put(json);
		no_memory(request);
		return;
	}
	sl_request_reply(request, json);
}

struct target {
	const char *sandbox;
};

void sl_method_show(struct sl_request *request, void *ctx)
{
	static const struct sl_param params[] = {
		SL_PARAM(STRING, struct target, sandbox, .optional = true, .max = 20),
		{ 0 },
	};
	struct sl_agent *agent = ctx;
	const struct sl_conn *conn = sl_conn_enter(agent, request);
	struct json_object *json, *session = NULL;
	struct target target = { 0 };
	unsigned int row;

	if (!conn || !sl_read_params(request, params, &target) ||
	    !sl_target(agent, request, conn, target.sandbox, &row))
		return;
	json = json_object_new_object();
	if (!json || sl_session_json(&session, agent, row) ||
	    sl_json_add(json, "session", session)) {
		json_object_put(json);
		no_memory(request);
		return;
	}
	sl_request_reply(request, json);
}

struct status_view {
	const char *version;
	uint32_t pid, restarts, sessions, clients, listeners;
	uint64_t calls, recovered, faults;
};

static const struct sl_field status_fields[] = {
	SL_FIELD_TEXT(struct status_view, version, NULL),
	SL_FIELD_UINT(struct status_view, pid, NULL),
	SL_FIELD_UINT(struct status_view, restarts, NULL),
	SL_FIELD_UINT(struct status_view, sessions, NULL),
	SL_FIELD_UINT(struct status_view, clients, NULL),
	SL_FIELD_UINT(struct status_view, listeners, NULL),
	SL_FIELD_UINT(struct status_view, calls, NULL),
	SL_FIELD_UINT(struct status_view, recovered, NULL),
	SL_FIELD_UINT(struct status_view, faults, NULL),
	{ 0 },
};

void sl_method_status(struct sl_request *request, void *ctx)
{
	static const struct sl_param none[] = { { 0 } };
	struct sl_agent *agent = ctx;
	struct json_object *json = NULL;
	struct sl_held_stats stats;
	struct status_view view;
	const struct sl_conn *conn = sl_conn_enter(agent, request);

	if (!conn || !sl_read_params(request, none, NULL))
		return;
	sl_held_stats(agent->held, &stats);
	view = (struct status_view){
		.version = SL_VERSION,
		.pid = (uint32_t)getpid(),
		.restarts = sl_keeper_generation(agent->link),
		.clients = sl_server_clients(agent->server),
		.listeners = stats.listeners,
		.calls = stats.calls,
		.recovered = stats.recovered,
		.faults = stats.faults,
	};
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);)
		view.sessions++;
	if (sl_object_json(&json, status_fields, &view))
		no_memory(request);
	else
		sl_request_reply(request, json);
}
