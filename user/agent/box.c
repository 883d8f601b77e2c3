/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sandboxes: what this worker has of each session beside its record. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/log.h"
#include "guard/names.h"
#include "kernel/cgroup.h"

int sl_agent_set(struct sl_agent *agent, struct sl_agent_set **out, struct sl_err *err)
{
	int ret = 0;

	pthread_mutex_lock(&agent->set_lock);
	/* Whoever detaches the last sandbox removes the set with it. */
	if (agent->set && sl_set_gone(agent->set->set))
		sl_agent_set_put(&agent->set);
	if (!agent->set)
		ret = sl_agent_set_open(&agent->set, agent->options->set_dir, err);
	if (!ret)
		*out = sl_agent_set_get(agent->set);
	pthread_mutex_unlock(&agent->set_lock);
	return ret;
}

struct sl_box *sl_agent_box(struct sl_agent *agent, unsigned int row)
{
	struct sl_box *box = agent->boxes[row];

	if (box)
		return box;
	box = calloc(1, sizeof(*box));
	if (!box)
		return NULL;
	box->freeze = box->kill = -1;
	box->refresh_ms = box->drain_ms = box->remove_ms = -1;
	agent->boxes[row] = box;
	return box;
}

void sl_agent_box_drop(struct sl_agent *agent, unsigned int row)
{
	struct sl_box *box = TAKE_PTR(agent->boxes[row]);

	if (!box)
		return;
	sl_cleanup_fd(&box->freeze);
	sl_cleanup_fd(&box->kill);
	sl_serve_free(&box->serve);
	sl_use_put(&box->use);
	free(box);
}

int sl_agent_cgroup(const struct sl_record *record)
{
	_cleanup_fd_ int fd = -1;
	unsigned long long id;

	if (sl_cgroup_open(&fd, record->cgroup, NULL) || sl_cgroup_id(&id, fd) ||
	    id != record->cgroup_id)
		return -1;
	return TAKE_FD(fd);
}

int sl_agent_box_cgroup(struct sl_agent *agent, unsigned int row)
{
	_cleanup_fd_ int dir = sl_agent_cgroup(sl_record_at(agent->records, row));
	struct sl_box *box = agent->boxes[row];

	if (dir < 0)
		return -ENOENT;
	box->freeze = openat(dir, "cgroup.freeze", O_RDWR | O_CLOEXEC);
	box->kill = openat(dir, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	return box->freeze < 0 || box->kill < 0 ? -errno : 0;
}

void sl_agent_box_use(struct sl_agent *agent, unsigned int row, struct sl_use *use,
		      uint32_t policy_id)
{
	struct sl_box *box = agent->boxes[row];

	sl_use_put(&box->use);
	box->use = use;
	box->policy_id = policy_id;
	box->refresh_ms = use && use->apply && sl_apply_has_names(use->apply)
				  ? sl_monotonic_ms() + SL_NAMES_REFRESH_MS
				  : -1;
}

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void log_news(const struct sl_agent *agent, unsigned int row, const char *type)
{
	static const enum sl_log_level levels[SL_CONDITION_LEVEL_MAX] = {
		SL_LOG_NOTICE, SL_LOG_NOTICE, SL_LOG_WARNING, SL_LOG_ERROR
	};
	const struct sl_condition *condition =
		sl_conditions_find(&agent->boxes[row]->conditions, type);
	char message[SL_ESCAPE_MAX(SL_CONDITION_MESSAGE)], times[64] = "";

	if (!condition)
		return;
	sl_escape_text(message, sizeof(message), condition->message);
	if (condition->bad > 1)
		snprintf(times, sizeof(times), " (%llu bad reports in a row)",
			 (unsigned long long)condition->bad);
	sl_log(levels[sl_condition_level(condition)], "sandbox %u: %s is %s: %s%s%s%s",
	       sl_record_at(agent->records, row)->sandbox, condition->type,
	       sl_condition_status_names[condition->status], condition->reason,
	       message[0] ? ": " : "", message, times);
}

void sl_agent_report(struct sl_agent *agent, unsigned int row,
		     const struct sl_condition_report *report)
{
	struct sl_box *box = sl_agent_box(agent, row);
	int news = box ? sl_conditions_report(&box->conditions, report, realtime_ns()) : -ENOMEM;

	if (news <= SL_CONDITION_SAME)
		return;
	log_news(agent, row, report->type);
	sl_agent_save(agent, row);
	sl_agent_tell(agent, row, false);
}

void sl_agent_report_policy(struct sl_agent *agent, unsigned int row, const char *reason,
			    const char *message)
{
	struct sl_condition_report report = {
		.type = "Policy",
		.status = reason ? SL_CONDITION_FALSE : SL_CONDITION_TRUE,
		.reason = reason ?: "Loaded",
		.message = message,
		.bad = reason != NULL,
	};

	/* That it is as it should be is news after it was not. */
	if (reason || sl_conditions_find(&agent->boxes[row]->conditions, report.type))
		sl_agent_report(agent, row, &report);
}

unsigned int sl_agent_sandbox(struct sl_set *set, unsigned int id, uint64_t cgroup_id)
{
	__u32 found;

	if (bpf_map_lookup_elem(sl_set_map_fd(set, SL_MAP_CGROUPS), &cgroup_id, &found))
		return 0;
	return !id || found == id ? found : 0;
}

/* NULL: it is enforced. Else the reason as a word; the message says more. */
static const char *why_not(struct sl_agent *agent, unsigned int row, const char **message)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	_cleanup_fd_ int cgroup = sl_agent_cgroup(record);
	const struct sl_box *box = agent->boxes[row];
	struct sl_guard guard;

	*message = "another cgroup has the path, or none";
	if (cgroup < 0)
		return "CgroupReplaced";
	*message = "there is no set of programs any more";
	if (sl_agent_set(agent, &set, NULL))
		return "Detached";
	*message = "the sandbox was detached, or has no policy";
	if (!sl_agent_sandbox(set->set, record->sandbox, record->cgroup_id) ||
	    sl_guard_read(set->set, record->sandbox, &guard) || !guard.policy)
		return "Detached";
	*message = "somebody else has loaded a policy, or the agent's copy is lost";
	/* While another one is being loaded, it may be in force and not noted yet. */
	if (!box || !box->use || (!box->changing && box->policy_id != guard.policy))
		return "OtherPolicy";
	return NULL;
}

bool sl_agent_enforced(struct sl_agent *agent, unsigned int row)
{
	struct sl_condition_report report = { .type = "Enforced", .status = SL_CONDITION_TRUE };
	const struct sl_condition *before;

	if (sl_record_state(agent->records, row) < SL_RECORD_LIVE || !sl_agent_box(agent, row) ||
	    agent->boxes[row]->leaving)
		return false;
	report.reason = why_not(agent, row, &report.message);
	if (report.reason) {
		report.status = SL_CONDITION_FALSE;
		report.bad = true;
	} else {
		report.reason = "PolicyInForce";
		report.message = NULL;
	}
	/* To look is no report: what is as it was is not counted. */
	before = sl_conditions_find(&agent->boxes[row]->conditions, report.type);
	if (!before || before->status != report.status ||
	    strcmp(before->reason, report.reason) != 0) {
		sl_agent_report(agent, row, &report);
		/* If its cgroup is gone, so is its session. */
		agent->look_ms = 0;
	}
	return !report.bad;
}

int sl_agent_row(const struct sl_agent *agent, uint64_t sandbox, unsigned int *row)
{
	int ret = -ENOENT;

	for (unsigned int at = 0, found; sl_record_next(agent->records, &at, &found);) {
		enum sl_record_state state = sl_record_state(agent->records, found);

		if (state < SL_RECORD_LIVE ||
		    sl_record_at(agent->records, found)->sandbox != sandbox)
			continue;
		*row = found;
		ret = 0;
		/* That of one that is over or being detached may be another's by now. */
		if (state != SL_RECORD_ENDED &&
		    !(agent->boxes[found] && agent->boxes[found]->leaving))
			return 0;
	}
	return ret;
}
