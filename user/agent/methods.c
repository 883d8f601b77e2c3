/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The methods of io.sluice, and those that do little. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/object.h"
#include "base/parse.h"
#include "session/version.h"

#include "io.sluice.varlink.h"

#define INTERFACE "io.sluice"

/* --- answers --- */

void sl_reply_error(struct sl_request *request, const char *name, struct json_object *parameters)
{
	char full[64];

	snprintf(full, sizeof(full), INTERFACE ".%s", name);
	sl_request_error(request, full, parameters);
}

static struct json_object *text_json(const char *text)
{
	return sl_json_string(text, strlen(text));
}

/* The next step where who failed did not know one. */
static const char *hint_of(const struct sl_err *err)
{
	static const struct {
		int code;
		const char *hint;
	} hints[] = {
		{ ENOMEM, "end something on the agent's host, or give it more memory" },
		{ ENOSPC, "free some space in the agent's state directory, or detach sandboxes" },
		{ EDQUOT, "free some space in the agent's state directory, or detach sandboxes" },
		{ EMFILE, "raise the agent's limit of open files" },
		{ ENFILE, "raise the host's limit of open files (fs.file-max)" },
		{ EBADF, "send the descriptor beside the call, and its number among those" },
		{ EINVAL, "GetInterfaceDescription of io.sluice says what is taken" },
		{ ENOENT, "`sluice sandbox list` shows what there is" },
		{ ESTALE, "call it again" },
		{ ECANCELED, "call it again" },
	};

	if (err->hint[0])
		return err->hint;
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		if (hints[i].code == err->code)
			return hints[i].hint;
	}
	return "the agent's log may say more";
}

/* { text, hint }, and what the caller adds; NULL: no memory. */
static struct json_object *err_json(const struct sl_err *err)
{
	struct json_object *json = json_object_new_object();

	if (json && !sl_json_add(json, "text", text_json(err->text)) &&
	    !sl_json_add(json, "hint", text_json(hint_of(err))))
		return json;
	json_object_put(json);
	return NULL;
}

void sl_reply_refused(struct sl_request *request, const struct sl_err *err)
{
	struct json_object *json = err_json(err);
	const char *code = strerrorname_np(err->code);

	if (err->code == EBUSY) {
		sl_reply_error(request, "Busy", json);
		return;
	}
	if (json)
		sl_json_add(json, "code", json_object_new_string(code ?: "EIO"));
	sl_reply_error(request, "Refused", json);
}

void sl_reply_step(struct sl_agent *agent, struct sl_request *request, const struct sl_step *step)
{
	struct sl_conn *conn = sl_client_get(sl_request_client(request));
	struct json_object *json = json_object_new_object();

	switch (step->answer) {
	case SL_ANSWER_STALE:
		if (json)
			sl_json_add(json, "epoch", json_object_new_uint64(step->epoch));
		sl_reply_error(request, "StaleEpoch", json);
		break;
	case SL_ANSWER_OVER:
		if (json)
			sl_json_add(json, "reason", text_json(step->reason));
		sl_reply_error(request, "SessionOver", json);
		break;
	case SL_ANSWER_UNKNOWN:
		sl_reply_error(request, "UnknownToken", json);
		break;
	default:
		sl_reply_error(request, "Again", json);
		/* Once more, on this connection too. */
		return;
	}
	sl_conn_end(agent, conn->id, NULL);
}

bool sl_read_params(struct sl_request *request, const struct sl_param *params, void *out)
{
	const char *bad;

	if (!sl_params_read(out, params, sl_request_parameters(request), &bad))
		return true;
	sl_request_invalid(request, bad);
	return false;
}

bool sl_target(struct sl_agent *agent, struct sl_request *request, const struct sl_conn *conn,
	       const char *sandbox, unsigned int *row)
{
	struct json_object *json;
	uint64_t id;

	/* Also when it is about another sandbox: it is heard of. */
	int own = sl_session_heard(agent->sessions, conn->id, sl_monotonic_ms(), row);

	if (!sandbox) {
		if (own)
			sl_reply_error(request, "NotTheSession", NULL);
		return !own;
	}
	if (!sl_parse_u64(sandbox, 1, UINT32_MAX, &id) && !sl_agent_row(agent, id, row))
		return true;
	json = json_object_new_object();
	if (json)
		sl_json_add(json, "sandbox", text_json(sandbox));
	sl_reply_error(request, "NoSandbox", json);
	return false;
}

/* --- Hello --- */

struct component {
	const char *name, *version;
	uint64_t min, max;
};

static const struct sl_param component_params[] = {
	SL_PARAM(STRING, struct component, name, .max = 64),
	SL_PARAM(STRING, struct component, version, .max = 64),
	SL_PARAM(UINT, struct component, min, .max = UINT32_MAX),
	SL_PARAM(UINT, struct component, max, .max = UINT32_MAX),
	{ 0 },
};

struct hello {
	struct json_object *component;
};

static const struct sl_param hello_params[] = {
	SL_PARAM(OBJECT, struct hello, component),
	{ 0 },
};

static const struct sl_component self = {
	.name = "sluiced", .version = SL_VERSION, .min = SL_PROTOCOL_MIN, .max = SL_PROTOCOL_MAX
};

static const struct sl_field self_fields[] = {
	SL_FIELD_TEXT(struct sl_component, name, NULL),
	SL_FIELD_TEXT(struct sl_component, version, NULL),
	SL_FIELD_UINT(struct sl_component, min, NULL),
	SL_FIELD_UINT(struct sl_component, max, NULL),
	{ 0 },
};

/* Adds our component; `json` is given back, or NULL. */
static struct json_object *with_component(struct json_object *json)
{
	struct json_object *component = NULL;

	if (!json || sl_object_json(&component, self_fields, &self) ||
	    sl_json_add(json, "component", component)) {
		json_object_put(json);
		return NULL;
	}
	return json;
}

static void hello(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = sl_conn_of(agent, request);
	struct hello hello;
	struct component read;
	struct sl_component peer;
	struct sl_err err = { 0 };
	struct json_object *json;
	const char *bad;

	if (!conn || !sl_read_params(request, hello_params, &hello))
		return;
	if (sl_params_read(&read, component_params, hello.component, &bad)) {
		sl_request_invalid(request, bad);
		return;
	}
	if (!sl_conn_outside(agent, sl_request_client(request))) {
		sl_err_set(&err, EPERM, "a member of a sandbox has no say over sandboxes");
		sl_err_hint(&err, "ask from a process outside of all sandboxes that still runs");
		sl_reply_refused(request, &err);
		sl_conn_end(agent, conn->id, NULL);
		return;
	}
	peer = (struct sl_component){ read.name, read.version, (uint32_t)read.min,
				      (uint32_t)read.max };
	if (sl_version_agree(&conn->version, &self, &peer, &err)) {
		sl_reply_error(request, "IncompatibleVersion", with_component(err_json(&err)));
		sl_conn_end(agent, conn->id, NULL);
		return;
	}
	json = with_component(json_object_new_object());
	if (json)
		sl_json_add(json, "protocol", json_object_new_uint64(conn->version));
	sl_request_reply(request, json);
}

/* --- Recover, Heartbeat --- */

struct recover {
	const char *token;
	uint64_t epoch;
};

static const struct sl_param recover_params[] = {
	SL_PARAM(STRING, struct recover, token, .max = 2 * SL_SESSION_TOKEN),
	SL_PARAM(UINT, struct recover, epoch),
	{ 0 },
};

/* No loss, and no news to who watches: the log alone says that it was. */
static void log_displaced(const struct sl_agent *agent, const struct sl_step *step)
{
	for (unsigned int i = 0; i < step->count; i++) {
		if (step->effects[i].kind == SL_EFFECT_CLOSE)
			sl_log_notice(
				"sandbox %u: its runtime is back, a connection of before that "
				"had not ended was displaced",
				sl_record_at(agent->records, step->row)->sandbox);
	}
}

static void recover(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = sl_conn_enter(agent, request);
	uint8_t token[SL_SESSION_TOKEN];
	struct json_object *json;
	struct recover read;
	struct sl_step step;
	struct sl_err err = { 0 };
	char id[16];

	if (!conn || !sl_read_params(request, recover_params, &read))
		return;
	if (sl_hex_parse(read.token, token, sizeof(token))) {
		sl_request_invalid(request, "token");
		return;
	}
	if (sl_session_recover(agent->sessions, conn->id, token, read.epoch, sl_monotonic_ms(),
			       &step, &err)) {
		sl_reply_refused(request, &err);
		sl_conn_end(agent, conn->id, NULL);
		return;
	}
	if (step.answer != SL_ANSWER_RECOVERED) {
		sl_reply_step(agent, request, &step);
		return;
	}
	log_displaced(agent, &step);
	sl_agent_do(agent, &step);
	snprintf(id, sizeof(id), "%u", sl_record_at(agent->records, step.row)->sandbox);
	json = json_object_new_object();
	if (json && !sl_json_add(json, "sandbox", json_object_new_string(id)))
		sl_json_add(json, "epoch", json_object_new_uint64(step.epoch));
	sl_request_reply(request, json);
}

static void heartbeat(struct sl_request *request, void *ctx)
{
	static const struct sl_param none[] = { { 0 } };
	struct sl_agent *agent = ctx;
	const struct sl_conn *conn = sl_conn_enter(agent, request);
	struct json_object *json;
	unsigned int row;

	if (!conn || !sl_read_params(request, none, NULL) ||
	    !sl_target(agent, request, conn, NULL, &row))
		return;
	json = json_object_new_object();
	if (json)
		sl_json_add(json, "epoch",
			    json_object_new_uint64(sl_record_epoch(agent->records, row)));
	sl_request_reply(request, json);
}

/* --- Freeze, Thaw, End --- */

struct target {
	const char *sandbox;
};

static const struct sl_param target_params[] = {
	SL_PARAM(STRING, struct target, sandbox, .optional = true, .max = 20),
	{ 0 },
};

/* The row of a request that has nothing but `sandbox`; NULL: it was answered. */
static struct sl_conn *enter_target(struct sl_agent *agent, struct sl_request *request,
				    unsigned int *row)
{
	struct sl_conn *conn = sl_conn_enter(agent, request);
	struct target target = { 0 };

	if (!conn || !sl_read_params(request, target_params, &target) ||
	    !sl_target(agent, request, conn, target.sandbox, row))
		return NULL;
	return conn;
}

static void ask_freeze(struct sl_request *request, struct sl_agent *agent, bool wanted)
{
	struct sl_err err = { 0 };
	struct sl_step step;
	unsigned int row;
	struct sl_conn *conn = enter_target(agent, request, &row);
	int ret;

	if (!conn)
		return;
	ret = sl_session_ask_freeze(agent->sessions, row, wanted, &step);
	if (ret) {
		sl_err_sys(&err, -ret, "the session is in no state for that");
		sl_reply_refused(request, &err);
		return;
	}
	sl_agent_do(agent, &step);
	sl_agent_save(agent, row);
	if (wanted && sl_session_wanted(agent->records, row) != SL_WANTED_FROZEN) {
		sl_err_set(&err, ESRCH, "the session is over, and what was in it was killed");
		sl_reply_refused(request, &err);
	} else if (wanted && !agent->boxes[row]->frozen) {
		conn->freezes = row + 1;
	} else {
		sl_request_reply(request, NULL);
	}
}

static void freeze(struct sl_request *request, void *ctx)
{
	ask_freeze(request, ctx, true);
}

static void thaw(struct sl_request *request, void *ctx)
{
	ask_freeze(request, ctx, false);
}

struct end {
	const char *sandbox, *reason;
	unsigned int end;
};

static const struct sl_param end_params[] = {
	SL_PARAM(STRING, struct end, sandbox, .optional = true, .max = 20),
	SL_PARAM(STRING, struct end, reason),
	SL_PARAM_ENUM(struct end, end, sl_session_end_names, .optional = true),
	{ 0 },
};

static void end(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = sl_conn_enter(agent, request);
	struct end read = { .end = SL_SESSION_END_MAX };
	struct sl_err err = { 0 };
	struct sl_step step;
	uint64_t id;
	unsigned int row;
	int ret;

	if (!conn || !sl_read_params(request, end_params, &read) ||
	    !sl_target(agent, request, conn, read.sandbox, &row))
		return;
	if (read.end == SL_SESSION_END_MAX)
		read.end = sl_record_at(agent->records, row)->options.end;
	id = conn->id;
	agent->answering = id;
	ret = sl_session_end(agent->sessions, row, (enum sl_session_end)read.end, read.reason,
			     &step);
	if (ret) {
		sl_err_sys(&err, -ret, "the session can't be ended: it has, or there is no reason");
		sl_reply_refused(request, &err);
	} else {
		sl_agent_do(agent, &step);
		sl_request_reply(request, NULL);
	}
	agent->answering = 0;
	if (conn->over)
		sl_conn_end(agent, id, NULL);
}

static const struct sl_method methods[] = {
	{ "Hello", SL_METHOD_ROOT, hello },
	{ "Plan", SL_METHOD_ROOT, sl_method_plan },
	{ "Attach", SL_METHOD_ROOT, sl_method_attach },
	{ "AddListener", SL_METHOD_ROOT, sl_method_add_listener },
	{ "Recover", SL_METHOD_ROOT, recover },
	{ "Heartbeat", SL_METHOD_ROOT, heartbeat },
	{ "UpdatePolicy", SL_METHOD_ROOT, sl_method_update },
	{ "Freeze", SL_METHOD_ROOT, freeze },
	{ "Thaw", SL_METHOD_ROOT, thaw },
	{ "End", SL_METHOD_ROOT, end },
	{ "Detach", SL_METHOD_ROOT, sl_method_detach },
	{ "List", SL_METHOD_ROOT, sl_method_list },
	{ "Show", SL_METHOD_ROOT, sl_method_show },
	{ "Status", SL_METHOD_ROOT, sl_method_status },
	{ "Watch", SL_METHOD_ROOT | SL_METHOD_MORE, sl_method_watch },
	{ "ResolveFd", 0, sl_method_resolve_fd },
	{ "ResolveTuple", SL_METHOD_ROOT, sl_method_resolve_tuple },
	{ "Report", SL_METHOD_ROOT, sl_method_report },
};

const struct sl_interface sl_agent_interface = {
	.name = INTERFACE,
	.description = sl_io_sluice_varlink,
	.methods = methods,
	.count = sizeof(methods) / sizeof(methods[0]),
};
