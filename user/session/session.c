// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "session/session_private.h"
#include "session/version.h"

/* -EPROTONOSUPPORT: a worker of this version must not run. */
static int check_versions(const struct sl_record_table *records, struct sl_err *err)
{
	for (unsigned int at = 0, row; sl_record_next(records, &at, &row);) {
		uint32_t version = sl_record_at(records, row)->version;

		if (version >= SL_PROTOCOL_MIN && version <= SL_PROTOCOL_MAX)
			continue;
		sl_err_set(err, EPROTONOSUPPORT,
			   "a session speaks protocol %u, this agent %d to %d", version,
			   SL_PROTOCOL_MIN, SL_PROTOCOL_MAX);
		return sl_err_hint(err, "start the agent of before, and end its sessions first");
	}
	return 0;
}

int sl_sessions_new(struct sl_sessions **out, struct sl_record_table *records, struct sl_err *err)
{
	_cleanup_(sl_sessions_free) struct sl_sessions *sessions = NULL;
	int ret = check_versions(records, err);

	if (ret)
		return ret;
	sessions = calloc(1, sizeof(*sessions));
	if (!sessions || sl_htab_new(&sessions->rows, sizeof(uint64_t), sizeof(unsigned int)))
		return sl_err_sys(err, ENOMEM, "can't keep sessions");
	sessions->records = records;
	for (unsigned int i = 0; i < SL_RECORDS_MAX; i++)
		sessions->locals[i].deadline_ms = -1;
	*out = TAKE_PTR(sessions);
	return 0;
}

void sl_sessions_free(struct sl_sessions **sessions)
{
	if (!*sessions)
		return;
	sl_htab_free(&(*sessions)->rows);
	free(TAKE_PTR(*sessions));
}

void sl_step_begin(struct sl_step *step, unsigned int row)
{
	*step = (struct sl_step){ .row = row };
}

struct sl_effect *sl_step_add(struct sl_step *step, enum sl_effect_kind kind)
{
	struct sl_effect *effect = &step->effects[step->count++];

	effect->kind = kind;
	return effect;
}

void sl_session_deadline(struct sl_session_local *local, int64_t now_ms, uint32_t in_ms)
{
	local->deadline_ms = now_ms + in_ms;
	local->extended = false;
}

void sl_session_silence(struct sl_session_local *local, int64_t now_ms,
			const struct sl_record *record, bool connected)
{
	sl_session_deadline(local, now_ms, record->options.silence_ms ?: SL_SILENCE_MAX_MS);
	if (connected && !record->options.silence_ms)
		local->deadline_ms = -1;
}

void sl_session_drop(struct sl_sessions *sessions, unsigned int row)
{
	struct sl_session_local *local = &sessions->locals[row];

	if (local->conn)
		sl_htab_del(sessions->rows, &local->conn);
	local->conn = 0;
}

bool sl_session_connected(const struct sl_sessions *sessions, unsigned int row)
{
	return sessions->locals[row].conn != 0;
}

enum sl_session_wanted sl_session_wanted(const struct sl_record_table *records, unsigned int row)
{
	enum sl_record_state state = sl_record_state(records, row);
	const struct sl_record *record = sl_record_at(records, row);
	bool frozen = sl_record_freeze_asked(records, row);

	if (state == SL_RECORD_ENDED &&
	    (record->end == SL_SESSION_END_KILL || record->end == SL_SESSION_END_REMOVE))
		return SL_WANTED_DEAD;
	if (state == SL_RECORD_ENDED)
		frozen |= record->end == SL_SESSION_END_FROZEN;
	else if (state == SL_RECORD_LOST)
		frozen |= record->options.freeze_on_loss;
	return frozen ? SL_WANTED_FROZEN : SL_WANTED_RUNNING;
}

void sl_session_settle(struct sl_sessions *sessions, struct sl_step *step, bool unasked)
{
	struct sl_session_local *local = &sessions->locals[step->row];
	enum sl_session_phase before = local->phase;

	switch (sl_session_wanted(sessions->records, step->row)) {
	case SL_WANTED_RUNNING:
		local->phase = SL_PHASE_NONE;
		if (unasked || before != SL_PHASE_NONE)
			sl_step_add(step, SL_EFFECT_THAW);
		break;
	case SL_WANTED_FROZEN:
		if (before != SL_PHASE_NONE)
			break;
		local->phase = SL_PHASE_DRAINING;
		sl_step_add(step, SL_EFFECT_DRAIN)->serial = ++local->serial;
		break;
	case SL_WANTED_DEAD:
		local->phase = SL_PHASE_NONE;
		sl_step_add(step, SL_EFFECT_KILL);
		break;
	}
}

bool sl_sessions_start(struct sl_sessions *sessions, unsigned int *at, int64_t now_ms,
		       struct sl_step *step)
{
	const struct sl_record *record;
	struct sl_session_local *local;
	unsigned int row;

	if (!sl_record_next(sessions->records, at, &row))
		return false;
	sl_step_begin(step, row);
	local = &sessions->locals[row];
	record = sl_record_at(sessions->records, row);
	switch (sl_record_state(sessions->records, row)) {
	case SL_RECORD_PREPARED:
		sl_step_add(step, SL_EFFECT_UNDO);
		return true;
	case SL_RECORD_LIVE:
		sl_session_silence(local, now_ms, record, false);
		break;
	case SL_RECORD_LOST:
		sl_session_deadline(local, now_ms, record->options.grace_ms);
		break;
	default:
		/* It may have ended an instant before the last worker did. */
		sl_step_add(step, SL_EFFECT_SAVE);
		break;
	}
	sl_session_settle(sessions, step, true);
	return true;
}

int sl_session_heard(struct sl_sessions *sessions, uint64_t conn, int64_t now_ms, unsigned int *row)
{
	const unsigned int *owned = sl_htab_get(sessions->rows, &conn);

	if (!owned || sl_record_state(sessions->records, *owned) != SL_RECORD_LIVE)
		return -ESTALE;
	sl_session_silence(&sessions->locals[*owned], now_ms,
			   sl_record_at(sessions->records, *owned), true);
	*row = *owned;
	return 0;
}

static void lose(struct sl_sessions *sessions, struct sl_step *step, const char *cause,
		 int64_t now_ms)
{
	sl_session_drop(sessions, step->row);
	sl_record_lost(sessions->records, step->row, cause);
	sl_session_deadline(&sessions->locals[step->row], now_ms,
			    sl_record_at(sessions->records, step->row)->options.grace_ms);
	sl_session_settle(sessions, step, false);
	sl_step_add(step, SL_EFFECT_TELL);
}

void sl_session_hung_up(struct sl_sessions *sessions, uint64_t conn, const char *cause,
			int64_t now_ms, struct sl_step *step)
{
	const unsigned int *owned = sl_htab_get(sessions->rows, &conn);

	sl_step_begin(step, owned ? *owned : 0);
	if (!owned)
		return;
	if (sl_record_state(sessions->records, step->row) == SL_RECORD_LIVE)
		lose(sessions, step, cause && cause[0] ? cause : "connection closed", now_ms);
	else
		sl_session_drop(sessions, step->row);
}

static void silent(struct sl_sessions *sessions, struct sl_step *step, int64_t now_ms)
{
	const struct sl_record *record = sl_record_at(sessions->records, step->row);
	uint64_t conn = sessions->locals[step->row].conn;
	char cause[SL_SESSION_TEXT];

	if (conn) {
		snprintf(cause, sizeof(cause), "nothing heard for %u ms",
			 record->options.silence_ms);
		sl_step_add(step, SL_EFFECT_CLOSE)->conn = conn;
	} else {
		snprintf(cause, sizeof(cause),
			 "no recovery within %u ms after the agent had restarted",
			 record->options.silence_ms ?: SL_SILENCE_MAX_MS);
	}
	lose(sessions, step, cause, now_ms);
}

static int end(struct sl_sessions *sessions, struct sl_step *step, enum sl_session_end what,
	       const char *reason)
{
	struct sl_session_local *local = &sessions->locals[step->row];
	int ret = sl_record_end(sessions->records, step->row, what, reason);

	if (ret)
		return ret;
	local->deadline_ms = -1;
	sl_step_add(step, SL_EFFECT_SAVE);
	sl_session_settle(sessions, step, true);
	/* So that the client asks, and is told the reason. */
	if (local->conn)
		sl_step_add(step, SL_EFFECT_CLOSE)->conn = local->conn;
	sl_session_drop(sessions, step->row);
	sl_step_add(step, SL_EFFECT_TELL);
	return 0;
}

static void grace_over(struct sl_sessions *sessions, struct sl_step *step)
{
	const struct sl_record *record = sl_record_at(sessions->records, step->row);
	char reason[SL_SESSION_TEXT + 64];

	snprintf(reason, sizeof(reason), "no recovery within %u ms after the loss: %s",
		 record->options.grace_ms, record->cause);
	end(sessions, step, record->options.end, reason);
}

bool sl_sessions_expire(struct sl_sessions *sessions, int64_t now_ms, struct sl_step *step)
{
	for (unsigned int at = 0, row; sl_record_next(sessions->records, &at, &row);) {
		struct sl_session_local *local = &sessions->locals[row];

		if (local->deadline_ms < 0 || now_ms < local->deadline_ms)
			continue;
		if (now_ms - local->deadline_ms > SL_SESSION_LATE_MS && !local->extended) {
			local->deadline_ms = now_ms + SL_SESSION_LATE_MS;
			local->extended = true;
			continue;
		}
		sl_step_begin(step, row);
		if (sl_record_state(sessions->records, row) == SL_RECORD_LIVE)
			silent(sessions, step, now_ms);
		else
			grace_over(sessions, step);
		return true;
	}
	return false;
}

int64_t sl_sessions_deadline(const struct sl_sessions *sessions)
{
	int64_t soonest = -1;

	for (unsigned int at = 0, row; sl_record_next(sessions->records, &at, &row);) {
		int64_t deadline = sessions->locals[row].deadline_ms;

		if (deadline >= 0 && (soonest < 0 || deadline < soonest))
			soonest = deadline;
	}
	return soonest;
}

void sl_session_drained(struct sl_sessions *sessions, unsigned int row, uint32_t serial,
			struct sl_step *step)
{
	struct sl_session_local *local = &sessions->locals[row];

	sl_step_begin(step, row);
	/* Looks again: it may be wanted no more, or again, with calls received in between. */
	if (local->phase != SL_PHASE_DRAINING || local->serial != serial)
		return;
	local->phase = SL_PHASE_FROZEN;
	sl_step_add(step, SL_EFFECT_FREEZE);
}

int sl_session_ask_freeze(struct sl_sessions *sessions, unsigned int row, bool freeze,
			  struct sl_step *step)
{
	int ret = sl_record_ask_freeze(sessions->records, row, freeze);

	sl_step_begin(step, row);
	if (ret)
		return ret;
	/* So that it holds with the next keeper too. */
	sl_step_add(step, SL_EFFECT_SAVE);
	sl_session_settle(sessions, step, false);
	sl_step_add(step, SL_EFFECT_TELL);
	return 0;
}

int sl_session_end(struct sl_sessions *sessions, unsigned int row, enum sl_session_end what,
		   const char *reason, struct sl_step *step)
{
	sl_step_begin(step, row);
	return end(sessions, step, what, reason);
}

int sl_session_forget(struct sl_sessions *sessions, unsigned int row)
{
	int ret = sl_record_forget(sessions->records, row);

	if (!ret)
		sessions->locals[row].phase = SL_PHASE_NONE;
	return ret;
}
