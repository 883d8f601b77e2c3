/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the steps of the sessions ask for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/shared.h"

/*
 * How long calls in hand may take before they are denied for the sake of a freeze: a file
 * is hashed meanwhile, or a file system of the workload's does not answer.
 */
#define DRAIN_MS 1000

/* What is removed needs nothing: there is no file any more, or no cgroup behind it. */
static void write_cgroup(struct sl_agent *agent, unsigned int row, int fd, const char *text,
			 const char *what)
{
	if (fd >= 0 && pwrite(fd, text, strlen(text), 0) < 0 && errno != ENODEV && errno != ENOENT)
		sl_log_error("sandbox %u: can't %s its cgroup: %s",
			     sl_record_at(agent->records, row)->sandbox, what, strerror(errno));
}

/* Those who wait for a freeze of the row: it is done, or it is not wanted any longer. */
static void answer_freezes(struct sl_agent *agent, unsigned int row, bool done)
{
	const struct sl_err err = { .code = ECANCELED,
				    .text = "it was thawed or killed meanwhile" };
	struct sl_request *request;
	struct sl_conn *conn;

	for (size_t at = 0; (conn = sl_conn_next(agent, &at));) {
		if (conn->freezes != row + 1)
			continue;
		conn->freezes = 0;
		request = sl_client_request(conn->client);
		if (request && done)
			sl_request_reply(request, NULL);
		else if (request)
			sl_reply_refused(request, &err);
	}
}

static void freeze(struct sl_agent *agent, unsigned int row)
{
	write_cgroup(agent, row, agent->boxes[row]->freeze, "1", "freeze");
	agent->boxes[row]->frozen = true;
	answer_freezes(agent, row, true);
}

void sl_agent_thaw(struct sl_agent *agent, unsigned int row)
{
	struct sl_box *box = agent->boxes[row];

	box->drain_ms = -1;
	box->frozen = false;
	write_cgroup(agent, row, box->freeze, "0", "thaw");
	sl_held_resume(agent->held, sl_record_at(agent->records, row)->listener);
	answer_freezes(agent, row, false);
}

static void drained(struct sl_agent *agent, unsigned int row)
{
	struct sl_box *box = agent->boxes[row];
	struct sl_step step;

	box->drain_ms = -1;
	sl_session_drained(agent->sessions, row, box->drain_serial, &step);
	sl_agent_do(agent, &step);
}

static void drain(struct sl_agent *agent, unsigned int row, uint32_t serial)
{
	struct sl_box *box = agent->boxes[row];

	box->drain_serial = serial;
	box->drain_ms = sl_monotonic_ms() + DRAIN_MS;
	if (!sl_held_drain(agent->held, sl_record_at(agent->records, row)->listener))
		drained(agent, row);
}

int64_t sl_agent_drains(struct sl_agent *agent, int64_t now_ms)
{
	int64_t soonest = -1;
	uint64_t tag;

	while (sl_held_drained(agent->held, &tag)) {
		for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
			if (agent->boxes[row] && agent->boxes[row]->drain_ms >= 0 &&
			    sl_record_at(agent->records, row)->listener == tag)
				drained(agent, row);
		}
	}
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		struct sl_box *box = agent->boxes[row];

		if (!box || box->drain_ms < 0)
			continue;
		if (box->drain_ms <= now_ms) {
			sl_held_deny_rest(agent->held, sl_record_at(agent->records, row)->listener);
			drained(agent, row);
		} else if (soonest < 0 || box->drain_ms < soonest) {
			soonest = box->drain_ms;
		}
	}
	return soonest;
}

static int save(struct sl_agent *agent, unsigned int row, struct sl_err *err)
{
	struct sl_store_entry *entry = calloc(1, sizeof(*entry));
	int ret;

	if (!entry)
		return sl_err_sys(err, ENOMEM, "can't store a session");
	ret = sl_record_copy(&entry->session, agent->records, row);
	entry->conditions = agent->boxes[row]->conditions;
	ret = ret ? 0 : sl_store_save(agent->store, entry, err);
	free(entry);
	return ret;
}

void sl_agent_save(struct sl_agent *agent, unsigned int row)
{
	struct sl_box *box = agent->boxes[row];
	struct sl_err err = { 0 };
	bool failed;

	/* Of one that goes nothing is to be found later; if it stays after all, the tick stores it. */
	if (box->leaving || box->attaching) {
		box->unsaved = true;
		return;
	}
	failed = save(agent, row, &err);
	/* Said once, until it works again. */
	if (failed && !box->unsaved)
		sl_log_err(SL_LOG_ERROR, &err);
	if (!failed && box->unsaved)
		sl_log_notice("sandbox %u: its session could be stored again",
			      sl_record_at(agent->records, row)->sandbox);
	box->unsaved = failed;
}

void sl_agent_save_again(struct sl_agent *agent)
{
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		if (agent->boxes[row] && agent->boxes[row]->unsaved)
			sl_agent_save(agent, row);
	}
}

/* What a row is now, as a condition. */
static void tell_state(struct sl_agent *agent, unsigned int row)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	struct sl_condition_report report = { .type = "Session" };
	struct timespec now;

	switch (sl_record_state(agent->records, row)) {
	case SL_RECORD_LIVE:
		report.status = SL_CONDITION_TRUE;
		report.reason = "Live";
		break;
	case SL_RECORD_LOST:
		report.status = SL_CONDITION_FALSE;
		report.reason = "Lost";
		report.message = record->cause;
		report.bad = true;
		break;
	case SL_RECORD_ENDED:
		report.status = SL_CONDITION_FALSE;
		report.reason = "Ended";
		report.message = record->reason;
		clock_gettime(CLOCK_REALTIME, &now);
		sl_conditions_end(&agent->boxes[row]->conditions, record->reason,
				  (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
		break;
	default:
		return;
	}
	sl_agent_report(agent, row, &report);
	/* The report tells only what is news to it: an epoch, or a freeze, is not. */
	sl_agent_tell(agent, row, false);
}

void sl_agent_undo(struct sl_agent *agent, const struct sl_record *record, struct sl_err *err)
{
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	unsigned int sandbox;

	/* One whose making was cut short is not found by what members are told by. */
	if (!sl_agent_set(agent, &set, NULL) &&
	    !sl_sandbox_of_cgroup(set->set, record->cgroup_id, &sandbox))
		(void)sl_shared_detach(agent->options->set_dir, sandbox, sl_guard_forget, err);
	sl_copies_clean(agent->copies, record->key, 0);
	(void)sl_store_remove(agent->store, record->key, NULL);
}

static void undo(struct sl_agent *agent, unsigned int row)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	struct sl_err err = { 0 };

	sl_agent_undo(agent, record, &err);
	if (err.code)
		sl_log_err(SL_LOG_ERROR, &err);
	sl_log_notice("an attach to '%s' was taken back: the agent was killed meanwhile",
		      record->cgroup);
	sl_session_undo(agent->sessions, row);
	sl_agent_box_drop(agent, row);
}

/* Why the connection of a session is ended, by what that is by now. */
static const char *close_cause(const struct sl_agent *agent, unsigned int row)
{
	switch (sl_record_state(agent->records, row)) {
	case SL_RECORD_LIVE:
		return "another connection has taken up its session";
	case SL_RECORD_LOST:
		return "nothing was heard of its session in time";
	default:
		return "its session has ended";
	}
}

static void carry_out(struct sl_agent *agent, unsigned int row, const struct sl_effect *effect)
{
	switch (effect->kind) {
	case SL_EFFECT_CLOSE:
		sl_conn_end(agent, effect->conn, close_cause(agent, row));
		break;
	case SL_EFFECT_UNDO:
		undo(agent, row);
		break;
	case SL_EFFECT_DRAIN:
		drain(agent, row, effect->serial);
		break;
	case SL_EFFECT_FREEZE:
		freeze(agent, row);
		break;
	case SL_EFFECT_THAW:
		sl_agent_thaw(agent, row);
		break;
	case SL_EFFECT_KILL:
		write_cgroup(agent, row, agent->boxes[row]->kill, "1", "kill");
		agent->boxes[row]->drain_ms = -1;
		answer_freezes(agent, row, false);
		break;
	case SL_EFFECT_SAVE:
		sl_agent_save(agent, row);
		break;
	case SL_EFFECT_TELL:
		tell_state(agent, row);
		break;
	case SL_EFFECT_MAX:
		break;
	}
}

void sl_agent_do(struct sl_agent *agent, const struct sl_step *step)
{
	for (unsigned int i = 0; i < step->count; i++)
		carry_out(agent, step->row, &step->effects[i]);
}
