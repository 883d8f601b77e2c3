// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attach and Recover. */
#include <errno.h>

#include "session/session_private.h"

static void answer(struct sl_step *step, const struct sl_record_table *records,
		   enum sl_session_answer what)
{
	const struct sl_record *record = sl_record_at(records, step->row);

	step->answer = what;
	step->epoch = sl_record_epoch(records, step->row);
	step->reason = what == SL_ANSWER_OVER ? record->reason : NULL;
}

/* The session has this connection, and no other any more. Rule 4. */
static int set_conn(struct sl_sessions *sessions, unsigned int row, uint64_t conn)
{
	struct sl_session_local *local = &sessions->locals[row];
	bool added;
	unsigned int *owned = sl_htab_add(sessions->rows, &conn, &added);

	if (!owned)
		return -ENOMEM;
	if (!added && *owned != row)
		return -EEXIST;
	*owned = row;
	if (local->conn && local->conn != conn)
		sl_htab_del(sessions->rows, &local->conn);
	local->conn = conn;
	return 0;
}

static int conn_error(struct sl_err *err, int ret)
{
	if (ret == -EEXIST)
		return sl_err_set(err, EEXIST, "this connection has another session");
	return sl_err_sys(err, -ret, "can't keep the connection");
}

/* Rule 1, of a session that was found by its key or its token. */
static int try_recover(struct sl_sessions *sessions, uint64_t conn, uint64_t epoch, int64_t now_ms,
		       struct sl_step *step, struct sl_err *err)
{
	struct sl_session_local *local = &sessions->locals[step->row];
	const struct sl_record *record = sl_record_at(sessions->records, step->row);
	enum sl_record_state state = sl_record_state(sessions->records, step->row);
	uint64_t displaced = local->conn;
	int ret;

	if (state == SL_RECORD_ENDED || state == SL_RECORD_PREPARED) {
		answer(step, sessions->records,
		       state == SL_RECORD_ENDED ? SL_ANSWER_OVER : SL_ANSWER_AGAIN);
		return 0;
	}
	if (epoch > SL_EPOCH_MAX)
		return sl_err_set(err, EINVAL, "no epoch is above %llu", SL_EPOCH_MAX);
	if (epoch <= sl_record_epoch(sessions->records, step->row)) {
		answer(step, sessions->records, SL_ANSWER_STALE);
		return 0;
	}
	ret = set_conn(sessions, step->row, conn);
	if (ret)
		return conn_error(err, ret);
	if (displaced && displaced != conn)
		sl_step_add(step, SL_EFFECT_CLOSE)->conn = displaced;
	sl_record_recover(sessions->records, step->row, epoch);
	sl_session_silence(local, now_ms, record, true);
	sl_session_settle(sessions, step, true);
	sl_step_add(step, SL_EFFECT_TELL);
	answer(step, sessions->records, SL_ANSWER_RECOVERED);
	return 0;
}

static int prepare_error(struct sl_err *err, int ret)
{
	switch (ret) {
	case -EEXIST:
		sl_err_set(err, EEXIST, "the cgroup has a session with another key");
		return sl_err_hint(err, "detach its sandbox first, or attach with its key");
	case -ENOSPC:
		sl_err_set(err, ENOSPC, "the agent has no room for another session");
		return sl_err_hint(err, "detach sandboxes whose sessions have ended");
	case -EINVAL:
		return sl_err_set(
			err, EINVAL,
			"silence_ms is 0 or %d to %u, grace_ms %u at most, an epoch at least 1",
			SL_SILENCE_MIN_MS, SL_SILENCE_MAX_MS, SL_GRACE_MAX_MS);
	default:
		return sl_err_sys(err, -ret, "can't make a token");
	}
}

int sl_session_attach(struct sl_sessions *sessions, uint64_t conn,
		      const struct sl_record_new *wanted, int64_t now_ms, struct sl_step *step,
		      struct sl_err *err)
{
	unsigned int row;
	int ret;

	sl_step_begin(step, 0);
	if (!sl_record_by_key(sessions->records, wanted->key, &step->row)) {
		if (sl_record_at(sessions->records, step->row)->cgroup_id != wanted->cgroup_id)
			return sl_err_set(err, EEXIST, "the key is that of another cgroup");
		return try_recover(sessions, conn, wanted->epoch, now_ms, step, err);
	}
	ret = sl_record_prepare(sessions->records, wanted, &row);
	if (ret)
		return prepare_error(err, ret);
	ret = set_conn(sessions, row, conn);
	if (ret) {
		sl_record_undo(sessions->records, row);
		return conn_error(err, ret);
	}
	step->row = row;
	answer(step, sessions->records, SL_ANSWER_NEW);
	return 0;
}

int sl_session_attached(struct sl_sessions *sessions, unsigned int row, uint32_t sandbox,
			int64_t now_ms, struct sl_step *step)
{
	int ret = sl_record_live(sessions->records, row, sandbox);

	sl_step_begin(step, row);
	if (ret)
		return ret;
	sl_session_silence(&sessions->locals[row], now_ms, sl_record_at(sessions->records, row),
			   sessions->locals[row].conn != 0);
	answer(step, sessions->records, SL_ANSWER_NEW);
	/* Before the answer: a client that has the token can come back for it. */
	sl_step_add(step, SL_EFFECT_SAVE);
	sl_step_add(step, SL_EFFECT_TELL);
	return 0;
}

int sl_session_undo(struct sl_sessions *sessions, unsigned int row)
{
	int ret = sl_record_undo(sessions->records, row);

	if (!ret)
		sl_session_drop(sessions, row);
	return ret;
}

int sl_session_recover(struct sl_sessions *sessions, uint64_t conn,
		       const uint8_t token[SL_SESSION_TOKEN], uint64_t epoch, int64_t now_ms,
		       struct sl_step *step, struct sl_err *err)
{
	sl_step_begin(step, 0);
	if (!sl_record_by_token(sessions->records, token, &step->row))
		return try_recover(sessions, conn, epoch, now_ms, step, err);
	step->answer = SL_ANSWER_UNKNOWN;
	return 0;
}
