/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent as the one who removes what nothing refers to any more (kernel/sweep.h): nobody
 * may read the events of its set, and who does else sweeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/log.h"

/* Of no row: one sweep at a time. */
#define KEY SL_RECORDS_MAX

struct sweep {
	struct sl_job job;
	struct sl_agent *agent;
	struct sl_agent_set *set;
	struct sl_swept swept;
	int ret;
};

static void run(struct sl_job *job)
{
	struct sweep *sweep = (struct sweep *)job;

	/* What the agent itself keeps of executables it finds by their files, not by ids. */
	sweep->ret = sl_sweep(sweep->set->set, NULL, &sweep->swept);
}

static void done(struct sl_job *job)
{
	struct sweep *sweep = (struct sweep *)job;

	sweep->agent->sweeping = false;
	if (!job->dropped && !sweep->ret) {
		sl_sweep_done(&sweep->agent->sweep);
		sl_log_debug("swept %u executables, %u lineages", sweep->swept.exes,
			     sweep->swept.lineages);
	} else if (!job->dropped) {
		/* It is tried again at the next tick. */
		sl_log_debug("rows were not swept: %s", strerror(-sweep->ret));
	}
	sl_agent_set_put(&sweep->set);
	free(sweep);
}

void sl_agent_sweep(struct sl_agent *agent)
{
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	struct sweep *sweep;

	if (agent->sweeping || sl_agent_set(agent, &set, NULL) ||
	    !sl_sweep_due(set->set, &agent->sweep))
		return;
	sweep = calloc(1, sizeof(*sweep));
	if (!sweep)
		return;
	sweep->job = (struct sl_job){ .key = KEY, .run = run, .done = done };
	sweep->agent = agent;
	sweep->set = TAKE_PTR(set);
	agent->sweeping = true;
	sl_work_add(agent->work, &sweep->job);
}
