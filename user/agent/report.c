/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Report: what a client says of its own session. */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/object.h"

struct report {
	const char *type, *reason, *message;
	unsigned int status;
	bool bad;
};

static const struct sl_param report_params[] = {
	SL_PARAM(STRING, struct report, type, .max = SL_CONDITION_WORD - 1),
	SL_PARAM_ENUM(struct report, status, sl_condition_status_names),
	SL_PARAM(STRING, struct report, reason, .max = SL_CONDITION_WORD - 1),
	SL_PARAM(STRING, struct report, message, .optional = true),
	SL_PARAM(BOOL, struct report, bad, .optional = true),
	{ 0 },
};

/* What the agent says itself is not a client's to say. */
static bool is_own(const char *type)
{
	static const char *const own[] = { "Session", "Enforced", "Listener", "Policy",
					   "Detached" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (!strcmp(type, own[i]))
			return true;
	}
	return false;
}

void sl_method_report(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	const struct sl_conn *conn = sl_conn_enter(agent, request);
	struct report read = { 0 };
	struct json_object *json, *condition = NULL;
	const struct sl_condition *noted;
	struct sl_condition_view view;
	struct sl_err err = { 0 };
	unsigned int row;

	if (!conn || !sl_read_params(request, report_params, &read) ||
	    !sl_target(agent, request, conn, NULL, &row))
		return;
	if (is_own(read.type)) {
		sl_request_invalid(request, "type");
		return;
	}
	sl_agent_report(agent, row,
			&(struct sl_condition_report){
				.type = read.type,
				.reason = read.reason,
				.message = read.message,
				.status = (enum sl_condition_status)read.status,
				.bad = read.bad,
			});
	noted = sl_conditions_find(&agent->boxes[row]->conditions, read.type);
	if (!noted || strcmp(noted->reason, read.reason) != 0) {
		sl_err_set(&err, ENOSPC, "type or reason is no word, or there is no room for more");
		sl_reply_refused(request, &err);
		return;
	}
	sl_condition_view(&view, noted);
	json = json_object_new_object();
	if (json && !sl_object_json(&condition, sl_condition_fields, &view))
		sl_json_add(json, "condition", condition);
	sl_request_reply(request, json);
}
