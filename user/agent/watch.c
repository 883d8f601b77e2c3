/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Watch: changes as they happen. */
#include <errno.h>

#include "agent/agent.h"
#include "base/object.h"

/* One message of a stream; what does not fit is counted. */
static void tell(struct sl_conn *conn, struct json_object *session, bool gone)
{
	struct sl_request *request = sl_client_request(conn->client);
	struct json_object *json = json_object_new_object();

	if (!request || !json ||
	    sl_json_add(json, "event", json_object_new_string(gone ? "gone" : "session")) ||
	    sl_json_add(json, "session", json_object_get(session)) ||
	    sl_json_add(json, "lost", json_object_new_uint64(conn->lost))) {
		json_object_put(json);
		conn->lost++;
	} else if (sl_request_continue(request, json) == -ENOBUFS) {
		conn->lost++;
	} else {
		conn->lost = 0;
	}
}

void sl_agent_tell(struct sl_agent *agent, unsigned int row, bool gone)
{
	struct json_object *session = NULL;
	struct sl_conn *conn;

	for (size_t at = 0; (conn = sl_conn_next(agent, &at));) {
		if (!conn->watches)
			continue;
		/* Made for the first one that wants it. */
		if (session || !sl_session_json(&session, agent, row))
			tell(conn, session, gone);
		else
			conn->lost++;
	}
	json_object_put(session);
}

void sl_method_watch(struct sl_request *request, void *ctx)
{
	static const struct sl_param none[] = { { 0 } };
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = sl_conn_enter(agent, request);
	struct json_object *session;

	if (!conn || !sl_read_params(request, none, NULL))
		return;
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		session = NULL;
		if (sl_session_json(&session, agent, row))
			conn->lost++;
		else
			tell(conn, session, false);
		json_object_put(session);
	}
	conn->watches = true;
}
