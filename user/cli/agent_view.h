/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent tells, for commands that show it beside what they read from the set, and do
 * without it when there is none.
 *
 *	sl_agent_view_open(&view, cli);		NULL: there is no agent
 *	sl_agent_view_session(view, cgroup_id)
 *	sl_agent_view_free(&view);
 *
 * Everything is borrowed from the view.
 */
#ifndef SLUICE_USER_CLI_AGENT_VIEW_H
#define SLUICE_USER_CLI_AGENT_VIEW_H

#include <json-c/json.h>

#include "agent/serve.h"
#include "base/array.h"
#include "cli/command.h"
#include "control/client.h"

/* What a person has to know of a session; the members of Condition and Session. */
struct sl_agent_condition {
	uint32_t sandbox;
	const char *type, *status, *reason, *level, *since, *last, *message;
	uint64_t count;
};
extern const struct sl_field sl_agent_condition_fields[];

struct sl_agent_session {
	uint32_t sandbox;
	uint64_t cgroup_id, epoch;
	const char *state, *wanted, *why; /* why: of a loss or an end; NULL: neither */
	const char *since;                /* it is in this state; NULL: it was not told */
	bool connected, enforced, listener;
	bool has_egress;
	struct sl_serve_view egress;
	struct sl_records conditions; /* struct sl_agent_condition */
};
extern const struct sl_field sl_agent_session_fields[]; /* as part of a sandbox */

struct sl_agent_view {
	struct sl_control *control;
	struct json_object *status, *list;
	const char *version;
	uint64_t pid, restarts, clients, listeners;
	struct sl_records sessions;
	struct sl_array session_rows, condition_rows;
};
extern const struct sl_field sl_agent_view_fields[];

/*
 * *out is NULL when nobody listens at the usual place. Where the user has said where
 * (--agent), that is an error, as everything else is.
 */
int sl_agent_view_open(struct sl_agent_view **out, struct sl_cli *cli);
void sl_agent_view_free(struct sl_agent_view **view);

/* The session of the sandbox of a cgroup; NULL: there is none. `view` may be NULL. */
const struct sl_agent_session *sl_agent_view_session(const struct sl_agent_view *view,
						     uint64_t cgroup_id);

/* Freeze or Thaw; waits until it is done. */
int sl_agent_view_freeze(struct sl_agent_view *view, struct sl_cli *cli,
			 const struct sl_agent_session *session, bool freeze);

#endif
