// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sessions whose cgroup was removed. Nothing can be in such a sandbox any more, so its session
 * ends; how it ended is shown until it is detached, or enough others have ended after it:
 * runtimes that remove their cgroups and say nothing don't fill the table.
 */
#include <errno.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/cleanup.h"

/* That are kept to be looked at. */
#define KEPT_MAX 16

/* The open file knows: another cgroup may have the path by now, or another mount hide it. */
static bool is_gone(struct sl_agent *agent, unsigned int row)
{
	const struct sl_box *box = agent->boxes[row];
	_cleanup_fd_ int cgroup = -1;
	char byte;

	if (box->freeze >= 0)
		return pread(box->freeze, &byte, 1, 0) < 0 && errno == ENODEV;
	cgroup = sl_agent_cgroup(sl_record_at(agent->records, row));
	return cgroup < 0;
}

static void end(struct sl_agent *agent, unsigned int row)
{
	struct sl_step step;

	if (!sl_session_end(agent->sessions, row, SL_SESSION_END_CONTINUE, "its cgroup was removed",
			    &step))
		sl_agent_do(agent, &step);
}

/* Of those that have ended, one of the first; the table has no order. */
static void detach_oldest(struct sl_agent *agent, const bool gone[SL_RECORDS_MAX])
{
	unsigned int oldest = SL_RECORDS_MAX;

	for (unsigned int row = 0; row < SL_RECORDS_MAX; row++) {
		if (gone[row] && !agent->boxes[row]->leaving &&
		    (oldest == SL_RECORDS_MAX ||
		     agent->boxes[row]->conditions.terminal_ns <
			     agent->boxes[oldest]->conditions.terminal_ns))
			oldest = row;
	}
	sl_agent_detach(agent, oldest);
}

void sl_agent_gone_look(struct sl_agent *agent)
{
	bool gone[SL_RECORDS_MAX] = { 0 };
	unsigned int kept = 0;

	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		if (sl_record_state(agent->records, row) < SL_RECORD_LIVE || !agent->boxes[row] ||
		    agent->boxes[row]->leaving || !is_gone(agent, row))
			continue;
		if (sl_record_state(agent->records, row) != SL_RECORD_ENDED)
			end(agent, row);
		gone[row] = true;
		kept++;
	}
	/* What can't be detached now is tried again with the next look. */
	for (; kept > KEPT_MAX; kept--)
		detach_oldest(agent, gone);
}
