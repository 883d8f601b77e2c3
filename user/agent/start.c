/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a worker finds: records, what is stored, sandboxes, listeners, unanswered calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/cgroup.h"

/* --- what is stored --- */

struct loading {
	struct sl_agent *agent;
	bool restore;         /* the keeper is new: the records are what was stored */
	struct sl_array gone; /* keys of sessions that are no more */
};

static void on_entry(void *ctx, const struct sl_store_entry *entry)
{
	struct loading *loading = ctx;
	struct sl_agent *agent = loading->agent;
	const uint8_t *key = entry->session.record.key;
	struct sl_box *box;
	unsigned int row;
	void *slot;
	int ret;

	if (sl_record_by_key(agent->records, key, &row)) {
		ret = loading->restore ? sl_record_restore(agent->records, &entry->session, &row)
				       : -ENOENT;
		if (ret == -ENOENT) {
			slot = sl_array_add(&loading->gone);
			if (slot)
				memcpy(slot, key, SL_SESSION_KEY);
			return;
		}
		if (ret) {
			sl_log_error("a stored session of '%s' is left out: %s",
				     entry->session.record.cgroup, strerror(-ret));
			return;
		}
	}
	box = sl_agent_box(agent, row);
	if (box)
		box->conditions = entry->conditions;
}

static void on_damaged(void *ctx, const char *name, const struct sl_err *err)
{
	struct sl_err told = *err;

	(void)ctx;
	sl_err_prefix(&told, "the stored session '%s' can't be used", name);
	sl_log_err(SL_LOG_ERROR, &told);
}

static int load_stored(struct sl_agent *agent, struct sl_err *err)
{
	static const struct sl_store_handlers handlers = { .entry = on_entry,
							   .damaged = on_damaged };
	struct loading loading = {
		.agent = agent,
		.restore = !sl_keeper_generation(agent->link),
		.gone = { .item = SL_SESSION_KEY },
	};
	int ret = sl_store_load(agent->store, &handlers, &loading, err);

	/* A worker was killed between forgetting a session and removing its file. */
	for (size_t i = 0; !ret && i < loading.gone.count; i++)
		ret = sl_store_remove(agent->store, sl_array_at(&loading.gone, i), err);
	sl_array_free(&loading.gone);
	return ret;
}

/* --- sandboxes --- */

/* The record says the same of the copy, unless a worker was killed before it noted it. */
static bool is_whole(struct sl_agent *agent, unsigned int row, uint32_t policy_id, const char *text,
		     size_t len)
{
	const struct sl_session_policy *noted = sl_record_policy(agent->records, row);
	uint8_t sha256[SL_SHA256_LEN];
	char path[PATH_MAX];

	if (sl_copies_digest(text, len, sha256) ||
	    sl_copies_path(agent->copies, sl_record_at(agent->records, row)->key, policy_id, path))
		return false;
	if (!strcmp(path, noted->path))
		return !memcmp(sha256, noted->sha256, sizeof(sha256));
	(void)sl_record_set_policy(agent->records, row, path, sha256);
	return true;
}

/* Its listeners died with the worker before: names and connections fail until it is made anew. */
static void adopt_egress(struct sl_agent *agent, unsigned int row)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	_cleanup_fd_ int cgroup = sl_agent_cgroup(record);
	struct sl_condition_report report = {
		.type = "Egress",
		.status = SL_CONDITION_FALSE,
		.reason = "NotServed",
		.bad = true,
	};
	struct sl_err err = { 0 };
	int ret = sl_serve_adopt(&agent->boxes[row]->serve, agent->link, agent->copies, record->key,
				 cgroup, &err);

	report.message = err.text;
	if (ret && err.code)
		sl_agent_report(agent, row, &report);
}

/* The policy that is in force, from the agent's copy of it. NULL: a condition says why. */
static struct sl_use *adopt_policy(struct sl_agent *agent, unsigned int row,
				   struct sl_agent_set *set, uint32_t policy_id)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	_cleanup_(sl_apply_free) struct sl_apply *apply = NULL;
	struct sl_apply_options options = {
		.file = "the copy of the policy",
		/* It was loaded: whatever it needs was there. */
		.holder = SL_GUARD_HOLDS_EXEC,
		.quiet = true,
	};
	_cleanup_free_ char *text = NULL;
	struct sl_use *use = NULL;
	struct sl_err err = { 0 };
	int ret = sl_copies_read(agent->copies, record->key, policy_id, &text, &options.len);

	if (ret || !is_whole(agent, row, policy_id, text, options.len)) {
		sl_agent_report_policy(
			agent, row, "CopyLost",
			"the copy of the policy in force is gone or damaged: what needs "
			"to be looked at is denied until a policy is loaded");
		return NULL;
	}
	options.text = text;
	sl_serve_apply_options(agent->boxes[row]->serve, &options);
	ret = sl_apply_open(&apply, &options, &err);
	ret = ret ?: sl_apply_adopt(apply, set->set, record->sandbox, policy_id, &err);
	ret = ret ?: sl_use_new(&use, set, apply, record->sandbox);
	if (ret) {
		sl_agent_report_policy(agent, row, "CopyUnusable",
				       err.code ? err.text : strerror(-ret));
		return NULL;
	}
	apply = NULL;
	sl_use_trim(use);
	return use;
}

static void adopt_sandbox(struct sl_agent *agent, unsigned int row)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	struct sl_guard guard;
	struct sl_use *use;
	int ret;

	ret = sl_agent_box_cgroup(agent, row);
	if (ret && ret != -ENOENT)
		sl_log_error("sandbox %u: can't open its cgroup: %s", record->sandbox,
			     strerror(-ret));
	if (sl_record_state(agent->records, row) < SL_RECORD_LIVE ||
	    sl_agent_set(agent, &set, NULL) ||
	    !sl_agent_sandbox(set->set, record->sandbox, record->cgroup_id) ||
	    sl_guard_read(set->set, record->sandbox, &guard) || !guard.policy)
		return;
	adopt_egress(agent, row);
	use = adopt_policy(agent, row, set, guard.policy);
	if (!use)
		return;
	sl_agent_box_use(agent, row, use, guard.policy);
	sl_copies_clean(agent->copies, record->key, guard.policy);
}

/* --- listeners --- */

static bool use_of(void *ctx, uint64_t tag, struct sl_use **use)
{
	struct sl_agent *agent = ctx;

	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		if (sl_record_at(agent->records, row)->listener != sl_broker_group(tag))
			continue;
		*use = sl_use_get(agent->boxes[row]->use);
		/* What is taken back is attached anew by its client, who still has the listener. */
		return sl_record_state(agent->records, row) != SL_RECORD_PREPARED;
	}
	/* Its sandbox was detached, its tasks go on. */
	return true;
}

static void check_listener(struct sl_agent *agent, unsigned int row)
{
	static const struct sl_condition_report lost = {
		.type = "Listener",
		.status = SL_CONDITION_FALSE,
		.reason = "KeeperDied",
		.message = "the agent was killed with its keeper, and the listener of the sandbox "
			   "with it: calls that are held fail with ENOSYS. Start the workload anew",
		.bad = true,
	};
	const struct sl_record *record = sl_record_at(agent->records, row);
	const struct sl_box *box = agent->boxes[row];
	const struct sl_condition *before = sl_conditions_find(&box->conditions, lost.type);
	bool populated = false;

	/* Of one whose last task has gone nothing is missed. */
	if (record->listener && !sl_held_known(agent->held, record->listener) &&
	    !sl_keeper_generation(agent->link) && box->freeze >= 0 && !before &&
	    !sl_cgroup_populated(record->cgroup, &populated) && populated)
		sl_agent_report(agent, row, &lost);
}

/* --- sessions --- */

/*
 * After a restart of the host, or when somebody has detached it, or was about to: what has lost its
 * programs is not enforced, whatever its rows say, and goes.
 */
static void end_lost(struct sl_agent *agent, unsigned int row)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	enum sl_record_state state = sl_record_state(agent->records, row);
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	const char *reason = "its sandbox was gone when the agent was started: the host was "
			     "restarted, or it was detached";
	bool there = !sl_agent_set(agent, &set, NULL) &&
		     sl_agent_sandbox(set->set, record->sandbox, record->cgroup_id);
	bool half = there && agent->boxes[row]->freeze >= 0 &&
		    sl_sandbox_unhooked(set->set, record->sandbox);
	struct sl_step step;

	if ((state != SL_RECORD_LIVE && state != SL_RECORD_LOST) || (there && !half))
		return;
	if (half)
		reason = "it was being detached when the agent was killed";
	/* Of one that was to go with its session nothing is to stay. */
	if (!sl_session_end(agent->sessions, row,
			    record->options.end == SL_SESSION_END_REMOVE ? SL_SESSION_END_REMOVE
									 : SL_SESSION_END_CONTINUE,
			    reason, &step))
		sl_agent_do(agent, &step);
	if (half && !agent->boxes[row]->leaving)
		sl_agent_detach(agent, row);
}

static int make_boxes(struct sl_agent *agent, struct sl_err *err)
{
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		if (!sl_agent_box(agent, row))
			return sl_err_sys(err, ENOMEM, "sandboxes");
		adopt_sandbox(agent, row);
		/* Each takes a while, and there may be thousands. */
		sl_keeper_beat(agent->link);
	}
	return 0;
}

int sl_agent_adopt(struct sl_agent *agent, struct sl_err *err)
{
	int64_t now_ms = sl_monotonic_ms();
	struct sl_step step;
	int ret = load_stored(agent, err);

	ret = ret ?: sl_sessions_new(&agent->sessions, agent->records, err);
	ret = ret ?: make_boxes(agent, err);
	if (ret)
		return ret;
	sl_copies_sweep(agent->copies, agent->records);
	sl_held_adopt(agent->held, use_of, agent);
	for (unsigned int at = 0; sl_sessions_start(agent->sessions, &at, now_ms, &step);)
		sl_agent_do(agent, &step);
	ret = sl_held_start(agent->held, err);
	if (ret)
		return ret;
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		end_lost(agent, row);
		check_listener(agent, row);
		(void)sl_agent_enforced(agent, row);
		/* What its names were leased as died with the worker before, or who tells them. */
		if (agent->boxes[row]->refresh_ms >= 0 || agent->boxes[row]->serve)
			sl_agent_reload(agent, row, false);
		sl_keeper_beat(agent->link);
	}
	return 0;
}
