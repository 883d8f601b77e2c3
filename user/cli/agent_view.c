/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/agent_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "session/version.h"
#include "run/agent.h"

#define AGENT_DEFAULT "/run/sluice/control.sock"
#define CALL_MS 10000

const struct sl_field sl_agent_condition_fields[] = {
	SL_FIELD_ID(struct sl_agent_condition, sandbox, "SANDBOX"),
	SL_FIELD_TEXT(struct sl_agent_condition, type, "CONDITION"),
	SL_FIELD_TEXT(struct sl_agent_condition, status, "STATUS"),
	SL_FIELD_TEXT(struct sl_agent_condition, reason, "REASON"),
	SL_FIELD_TEXT(struct sl_agent_condition, level, "LEVEL"),
	SL_FIELD_UINT(struct sl_agent_condition, count, "COUNT"),
	SL_FIELD_TEXT(struct sl_agent_condition, since, "SINCE"),
	SL_FIELD_TEXT(struct sl_agent_condition, last, NULL),
	SL_FIELD_TEXT(struct sl_agent_condition, message, "MESSAGE", .flags = SL_FIELD_ELIDE),
	{ 0 },
};

static bool has_egress(const void *record)
{
	const struct sl_agent_session *session = record;

	return session->has_egress;
}

const struct sl_field sl_agent_session_fields[] = {
	SL_FIELD_TEXT(struct sl_agent_session, state, "SESSION"),
	SL_FIELD_TEXT(struct sl_agent_session, since, "SINCE", .flags = SL_FIELD_NULL),
	SL_FIELD_BOOL(struct sl_agent_session, connected, NULL),
	SL_FIELD_BOOL(struct sl_agent_session, enforced, NULL),
	SL_FIELD_BOOL(struct sl_agent_session, listener, NULL),
	SL_FIELD_UINT(struct sl_agent_session, epoch, NULL),
	SL_FIELD_TEXT(struct sl_agent_session, wanted, "WANTED"),
	SL_FIELD_TEXT(struct sl_agent_session, why, "WHY", .flags = SL_FIELD_NULL | SL_FIELD_ELIDE),
	SL_FIELD_OBJECT(struct sl_agent_session, egress, "", sl_serve_fields,
			.flags = SL_FIELD_NULL, .present = has_egress),
	/* A table of its own in plain text. */
	SL_FIELD_RECORDS(struct sl_agent_session, conditions, NULL, sl_agent_condition_fields,
			 .flags = SL_FIELD_JSON_ONLY),
	{ 0 },
};

static const struct sl_field listed_session_fields[] = {
	SL_FIELD_ID(struct sl_agent_session, sandbox, "SANDBOX"),
	/* The rest of the same record. */
	{ .name = "session",
	  .heading = "",
	  .type = SL_FIELD_TYPE_OBJECT,
	  .size = sizeof(struct sl_agent_session),
	  .fields = sl_agent_session_fields },
	{ 0 },
};

const struct sl_field sl_agent_view_fields[] = {
	SL_FIELD_UINT(struct sl_agent_view, pid, "AGENT"),
	SL_FIELD_TEXT(struct sl_agent_view, version, "VERSION"),
	SL_FIELD_UINT(struct sl_agent_view, restarts, "RESTARTS"),
	SL_FIELD_UINT(struct sl_agent_view, clients, "CLIENTS"),
	SL_FIELD_UINT(struct sl_agent_view, listeners, "LISTENERS"),
	SL_FIELD_RECORDS(struct sl_agent_view, sessions, "SESSIONS", listed_session_fields),
	{ 0 },
};

void sl_agent_view_free(struct sl_agent_view **view)
{
	struct sl_agent_view *v = TAKE_PTR(*view);

	if (!v)
		return;
	sl_control_free(&v->control);
	json_object_put(v->status);
	json_object_put(v->list);
	sl_array_free(&v->session_rows);
	sl_array_free(&v->condition_rows);
	free(v);
}

/* --- what the agent says, with nothing relied on --- */

static struct json_object *member(struct json_object *json, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(json, name, &value);
	return value;
}

static const char *text(struct json_object *json, const char *name)
{
	struct json_object *value = member(json, name);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static uint64_t number(struct json_object *json, const char *name)
{
	return json_object_get_uint64(member(json, name));
}

/* A decimal string; 0 if it is none. */
static uint64_t id(struct json_object *json, const char *name)
{
	const char *value = text(json, name);
	uint64_t out = 0;

	if (value)
		(void)sl_parse_u64(value, 0, UINT64_MAX, &out);
	return out;
}

static int add_conditions(struct sl_agent_view *view, struct json_object *session)
{
	struct json_object *list = member(session, "conditions");
	size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list)
								  : 0;

	for (size_t i = 0; i < count; i++) {
		struct json_object *json = json_object_array_get_idx(list, i);
		struct sl_agent_condition *condition = sl_array_add(&view->condition_rows);

		if (!condition)
			return -ENOMEM;
		*condition = (struct sl_agent_condition){
			.sandbox = (uint32_t)id(session, "sandbox"),
			.type = text(json, "type"),
			.status = text(json, "status"),
			.reason = text(json, "reason"),
			.level = text(json, "level"),
			.since = text(json, "since"),
			.last = text(json, "last"),
			.message = text(json, "message"),
			.count = number(json, "count"),
		};
	}
	return 0;
}

/* By the table that made it. */
static void read_egress(struct sl_agent_session *session, struct json_object *json)
{
	char *view = (char *)&session->egress;

	session->has_egress = json_object_is_type(json, json_type_object);
	for (const struct sl_field *field = sl_serve_fields; session->has_egress && field->type;
	     field++) {
		if (field->type == SL_FIELD_TYPE_TEXT)
			*(const char **)(view + field->offset) = text(json, field->name);
		else if (field->type == SL_FIELD_TYPE_BOOL)
			*(bool *)(view + field->offset) =
				json_object_get_boolean(member(json, field->name));
		else
			*(uint64_t *)(view + field->offset) = number(json, field->name);
	}
}

/* Since when a session is what it is: its state is a condition, too. */
static const char *state_since(struct json_object *session)
{
	struct json_object *list = member(session, "conditions");
	size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list)
								  : 0;

	for (size_t i = 0; i < count; i++) {
		struct json_object *json = json_object_array_get_idx(list, i);
		const char *type = text(json, "type");

		if (type && !strcmp(type, "Session"))
			return text(json, "since");
	}
	return NULL;
}

static int add_session(struct sl_agent_view *view, struct json_object *json)
{
	struct sl_agent_session *session = sl_array_add(&view->session_rows);
	size_t before = view->condition_rows.count;

	if (!session || add_conditions(view, json))
		return -ENOMEM;
	*session = (struct sl_agent_session){
		.sandbox = (uint32_t)id(json, "sandbox"),
		.cgroup_id = id(json, "cgroup_id"),
		.epoch = number(json, "epoch"),
		.state = text(json, "state"),
		.since = state_since(json),
		.wanted = text(json, "wanted"),
		.why = text(json, "reason") ?: text(json, "cause"),
		.connected = json_object_get_boolean(member(json, "connected")),
		.enforced = json_object_get_boolean(member(json, "enforced")),
		.listener = json_object_get_boolean(member(json, "listener")),
		.conditions = { .count = view->condition_rows.count - before,
				.stride = sizeof(struct sl_agent_condition) },
	};
	read_egress(session, member(json, "egress"));
	return 0;
}

static int read_sessions(struct sl_agent_view *view)
{
	struct json_object *list = member(view->list, "sessions");
	size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list)
								  : 0;
	const struct sl_agent_condition *next;
	struct sl_agent_session *session;

	for (size_t i = 0; i < count; i++) {
		if (add_session(view, json_object_array_get_idx(list, i)))
			return -ENOMEM;
	}
	/* Now that they don't move any more. */
	next = view->condition_rows.data;
	session = view->session_rows.data;
	for (size_t i = 0; i < count; i++) {
		session[i].conditions.data = next;
		next += session[i].conditions.count;
	}
	view->sessions = (struct sl_records){ session, count, sizeof(*session) };
	view->version = text(view->status, "version");
	view->pid = number(view->status, "pid");
	view->restarts = number(view->status, "restarts");
	view->clients = number(view->status, "clients");
	view->listeners = number(view->status, "listeners");
	return 0;
}

/* --- calls --- */

/* *out (may be NULL) is the caller's. An error of the agent is the command's. */
static int call(struct sl_agent_view *view, struct sl_cli *cli, const char *method,
		struct json_object *parameters, struct json_object **out)
{
	struct json_object *reply = NULL;
	int ret = sl_control_call(view->control, method, parameters, NULL, &reply, &cli->err);

	if (!ret && out) {
		*out = reply;
		return 0;
	}
	if (ret == -EREMOTEIO) {
		sl_err_set(&cli->err, EREMOTEIO, "the agent: %s",
			   text(reply, "text") ?: sl_control_error(view->control));
		if (text(reply, "hint") && text(reply, "hint")[0])
			sl_err_hint(&cli->err, "%s", text(reply, "hint"));
	}
	json_object_put(reply);
	return ret;
}

static int say_hello(struct sl_agent_view *view, struct sl_cli *cli)
{
	struct json_object *json = json_object_new_object(), *self = json_object_new_object();

	if (!json || !self || sl_json_add(self, "name", json_object_new_string("sluice")) ||
	    sl_json_add(self, "version", json_object_new_string(SL_VERSION)) ||
	    sl_json_add(self, "min", json_object_new_int(SL_PROTOCOL_MIN)) ||
	    sl_json_add(self, "max", json_object_new_int(SL_PROTOCOL_MAX))) {
		json_object_put(self);
		json_object_put(json);
		return sl_err_sys(&cli->err, ENOMEM, "the agent");
	}
	if (sl_json_add(json, "component", self)) {
		json_object_put(json);
		return sl_err_sys(&cli->err, ENOMEM, "the agent");
	}
	return call(view, cli, "io.sluice.Hello", json, NULL);
}

int sl_agent_view_open(struct sl_agent_view **out, struct sl_cli *cli)
{
	_cleanup_(sl_agent_view_free) struct sl_agent_view *view = calloc(1, sizeof(*view));
	int ret;

	*out = NULL;
	if (!view)
		return sl_err_sys(&cli->err, ENOMEM, "the agent");
	view->session_rows = (struct sl_array)SL_ARRAY(struct sl_agent_session);
	view->condition_rows = (struct sl_array)SL_ARRAY(struct sl_agent_condition);
	if (cli->agent && !strcmp(cli->agent, SL_RUN_AGENT_NONE))
		return 0;
	ret = sl_control_connect(&view->control, cli->agent ?: AGENT_DEFAULT, CALL_MS, &cli->err);
	if (ret && !cli->agent) {
		cli->err = (struct sl_err){ 0 };
		return 0;
	}
	ret = ret ?: say_hello(view, cli);
	ret = ret ?: call(view, cli, "io.sluice.Status", NULL, &view->status);
	ret = ret ?: call(view, cli, "io.sluice.List", NULL, &view->list);
	if (ret)
		return ret;
	if (read_sessions(view))
		return sl_err_sys(&cli->err, ENOMEM, "the agent");
	*out = TAKE_PTR(view);
	return 0;
}

const struct sl_agent_session *sl_agent_view_session(const struct sl_agent_view *view,
						     uint64_t cgroup_id)
{
	const struct sl_agent_session *session = view ? view->sessions.data : NULL;

	for (size_t i = 0; view && i < view->sessions.count; i++) {
		if (session[i].cgroup_id == cgroup_id)
			return &session[i];
	}
	return NULL;
}

int sl_agent_view_freeze(struct sl_agent_view *view, struct sl_cli *cli,
			 const struct sl_agent_session *session, bool freeze)
{
	struct json_object *json = json_object_new_object();
	char sandbox[16];

	snprintf(sandbox, sizeof(sandbox), "%u", session->sandbox);
	if (!json || sl_json_add(json, "sandbox", json_object_new_string(sandbox))) {
		json_object_put(json);
		return sl_err_sys(&cli->err, ENOMEM, "the agent");
	}
	return call(view, cli, freeze ? "io.sluice.Freeze" : "io.sluice.Thaw", json, NULL);
}
