/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sessions, a step at a time; versions. For runs of thousands: test_session_random.c. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "session/session.h"
#include "session/version.h"
#include "session_world.h"

static struct sl_record_table *records;
static struct sl_sessions *sessions;
static struct sl_step step;
static struct sl_err err;

static void make(void)
{
	cr_assert_eq(sl_record_table_new(&records, 8), 0);
	cr_assert_eq(sl_sessions_new(&sessions, records, &err), 0);
}

static void unmake(void)
{
	sl_sessions_free(&sessions);
	sl_record_table_free(&records);
}

TestSuite(session, .init = make, .fini = unmake, .timeout = 60);

/* The effects of the last step, a letter each: Close Undo Drain Freeze Thaw Kill Save tEll. */
static const char *effects(void)
{
	static const char letters[] = "CUDFTKSE";
	static char text[SL_EFFECTS_MAX + 1];

	for (unsigned int i = 0; i < step.count; i++)
		text[i] = letters[step.effects[i].kind];
	text[step.count] = '\0';
	return text;
}

/* Client `number` on connection `conn` at time 0; its row. */
static unsigned int attach(unsigned int number, uint64_t conn)
{
	const struct sl_record_new wanted = session_new(number, 1);

	cr_assert_eq(sl_session_attach(sessions, conn, &wanted, 0, &step, &err), 0, "%s", err.text);
	cr_assert_eq(step.answer, SL_ANSWER_NEW);
	cr_assert_str_eq(effects(), "");
	cr_assert_eq(sl_session_attached(sessions, step.row, 1, 0, &step), 0);
	cr_assert_str_eq(effects(), "SE");
	return step.row;
}

static enum sl_session_answer recover(unsigned int row, uint64_t conn, uint64_t epoch,
				      int64_t now_ms)
{
	cr_assert_eq(sl_session_recover(sessions, conn, sl_record_at(records, row)->token, epoch,
					now_ms, &step, &err),
		     0, "%s", err.text);
	return step.answer;
}

Test(session, lost_frozen_recovered_thawed)
{
	unsigned int row = attach(1, 10), other;

	sl_session_hung_up(sessions, 10, "connection reset", 100, &step);
	cr_assert_str_eq(effects(), "DE");
	cr_assert_str_eq(sl_record_at(records, row)->cause, "connection reset");
	sl_session_drained(sessions, row, step.effects[0].serial, &step);
	cr_assert_str_eq(effects(), "F");
	cr_assert_eq(recover(row, 11, 2, 200), SL_ANSWER_RECOVERED);
	cr_assert_str_eq(effects(), "TE");
	cr_assert_eq(step.epoch, 2);
	cr_assert_eq(sl_session_heard(sessions, 10, 200, &other), -ESTALE);
	cr_assert_eq(sl_session_heard(sessions, 11, 200, &other), 0);
	cr_assert_eq(other, row);
}

Test(session, recovery_displaces_what_nobody_saw_ending)
{
	unsigned int row = attach(1, 10), other;

	cr_assert_eq(recover(row, 11, 2, 100), SL_ANSWER_RECOVERED);
	cr_assert_str_eq(effects(), "CTE");
	cr_assert_eq(step.effects[0].conn, 10);
	sl_session_hung_up(sessions, 10, "late error", 100, &step);
	cr_assert_str_eq(effects(), "");
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_LIVE);
	cr_assert_eq(recover(row, 10, 2, 100), SL_ANSWER_STALE);
	cr_assert_eq(step.epoch, 2);
	cr_assert_eq(sl_session_heard(sessions, 11, 100, &other), 0);
	/* The same connection may raise its epoch: nothing to close. */
	cr_assert_eq(recover(row, 11, 3, 100), SL_ANSWER_RECOVERED);
	cr_assert_str_eq(effects(), "TE");
}

Test(session, attach_again_is_a_recovery)
{
	unsigned int row = attach(1, 10);
	struct sl_record_new wanted = session_new(1, 2);

	cr_assert_eq(sl_session_attach(sessions, 11, &wanted, 0, &step, &err), 0);
	cr_assert_eq(step.answer, SL_ANSWER_RECOVERED);
	cr_assert_eq(step.row, row);
	cr_assert_eq(sl_session_attach(sessions, 12, &wanted, 0, &step, &err), 0);
	cr_assert_eq(step.answer, SL_ANSWER_STALE);
	wanted.epoch = 3;
	wanted.cgroup_id = 5;
	cr_assert_eq(sl_session_attach(sessions, 12, &wanted, 0, &step, &err), -EEXIST);
	wanted = session_new(2, 1);
	wanted.cgroup_id = sl_record_at(records, row)->cgroup_id;
	cr_assert_eq(sl_session_attach(sessions, 12, &wanted, 0, &step, &err), -EEXIST);
	cr_assert_neq(err.hint[0], '\0');
	cr_assert_eq(sl_record_epoch(records, row), 2);
}

Test(session, a_connection_has_one_session)
{
	const struct sl_record_new wanted = session_new(3, 1);
	unsigned int first = attach(1, 10), second = attach(2, 20), row;

	cr_assert_eq(sl_session_attach(sessions, 10, &wanted, 0, &step, &err), -EEXIST);
	cr_assert_eq(sl_record_by_key(records, wanted.key, &row), -ENOENT);
	cr_assert_eq(sl_session_recover(sessions, 10, sl_record_at(records, second)->token, 2, 0,
					&step, &err),
		     -EEXIST);
	cr_assert_eq(sl_record_epoch(records, second), 1);
	cr_assert_eq(sl_session_heard(sessions, 10, 0, &row), 0);
	cr_assert_eq(row, first);
	cr_assert_eq(sl_session_heard(sessions, 20, 0, &row), 0);
	cr_assert_eq(row, second);
}

Test(session, being_made)
{
	struct sl_record_new wanted = session_new(1, 1);
	unsigned int row, other;

	cr_assert_eq(sl_session_attach(sessions, 10, &wanted, 0, &step, &err), 0);
	row = step.row;
	wanted.epoch = 2;
	cr_assert_eq(sl_session_attach(sessions, 11, &wanted, 0, &step, &err), 0);
	cr_assert_eq(step.answer, SL_ANSWER_AGAIN);
	cr_assert_eq(sl_session_heard(sessions, 10, 0, &other), -ESTALE);
	/* Its client goes before all is in place: then it has the time of a silence. */
	sl_session_hung_up(sessions, 10, "cut", 0, &step);
	cr_assert_str_eq(effects(), "");
	cr_assert_eq(sl_session_attached(sessions, row, 1, 50, &step), 0);
	cr_assert_eq(sl_sessions_deadline(sessions), 50 + SESSION_SILENCE_MS);
	cr_assert_eq(sl_session_attach(sessions, 11, &wanted, 60, &step, &err), 0);
	cr_assert_eq(step.answer, SL_ANSWER_RECOVERED);

	wanted = session_new(2, 1);
	cr_assert_eq(sl_session_attach(sessions, 20, &wanted, 0, &step, &err), 0);
	row = step.row;
	cr_assert_eq(sl_session_undo(sessions, row), 0);
	cr_assert_eq(sl_session_attached(sessions, row, 1, 0, &step), -EBADFD);
	cr_assert_eq(sl_session_undo(sessions, row), -EBADFD);
	cr_assert_eq(attach(2, 20), row, "the connection is free for another");
}

/* One who says nothing for ever, and may: only the end of its connection is a loss. */
Test(session, silence_is_no_loss_if_so_wanted)
{
	struct sl_record_new wanted = session_new(1, 1);
	unsigned int row, other, at = 0;

	wanted.options.silence_ms = 0;
	cr_assert_eq(sl_session_attach(sessions, 10, &wanted, 0, &step, &err), 0);
	row = step.row;
	cr_assert_eq(sl_session_attached(sessions, row, 1, 0, &step), 0);
	cr_assert_eq(sl_sessions_deadline(sessions), -1);
	cr_assert_eq(sl_session_heard(sessions, 10, 10, &other), 0);
	cr_assert_eq(sl_sessions_deadline(sessions), -1);
	cr_assert(!sl_sessions_expire(sessions, 1LL << 40, &step));
	sl_session_hung_up(sessions, 10, "cut", 20, &step);
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_LOST);
	cr_assert_eq(sl_sessions_deadline(sessions), 20 + SESSION_GRACE_MS);
	cr_assert_eq(recover(row, 11, 2, 30), SL_ANSWER_RECOVERED);
	cr_assert_eq(sl_sessions_deadline(sessions), -1);
	/* The next worker has no connection of it: it waits for one, but not for ever. */
	sl_sessions_free(&sessions);
	cr_assert_eq(sl_sessions_new(&sessions, records, &err), 0);
	while (sl_sessions_start(sessions, &at, 100, &step))
		;
	cr_assert_eq(sl_sessions_deadline(sessions), 100 + SL_SILENCE_MAX_MS);
	/* Its client goes before all is in place: that is no connection either. */
	wanted = session_new(2, 1);
	wanted.options.silence_ms = 0;
	cr_assert_eq(sl_session_attach(sessions, 20, &wanted, 0, &step, &err), 0);
	row = step.row;
	sl_session_hung_up(sessions, 20, "cut", 0, &step);
	cr_assert_eq(sl_session_attached(sessions, row, 2, 50, &step), 0);
	cr_assert_eq(sl_sessions_deadline(sessions), 50 + SL_SILENCE_MAX_MS);
}

Test(session, silence_then_grace_then_the_stated_end)
{
	static const char *const want[] = { "SE", "STE", "SKE" };
	unsigned int rows[3], other;
	int64_t at = 10 + SESSION_SILENCE_MS;

	for (unsigned int i = 0; i < 3; i++) {
		struct sl_record_new wanted = session_new(i, 1);

		wanted.options.end = (enum sl_session_end)i;
		cr_assert_eq(sl_session_attach(sessions, 10 + i, &wanted, 0, &step, &err), 0);
		rows[i] = step.row;
		cr_assert_eq(sl_session_attached(sessions, rows[i], 1, 0, &step), 0);
		cr_assert_eq(sl_session_heard(sessions, 10 + i, 10, &other), 0);
	}
	cr_assert_eq(sl_sessions_deadline(sessions), at);
	cr_assert(!sl_sessions_expire(sessions, at - 1, &step));
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert(sl_sessions_expire(sessions, at, &step));
		cr_assert_str_eq(effects(), "CDE");
		cr_assert_eq(step.effects[0].conn, 10 + i);
		cr_assert_not_null(strstr(sl_record_at(records, rows[i])->cause, "1000 ms"));
	}
	cr_assert(!sl_sessions_expire(sessions, at, &step));
	at += SESSION_GRACE_MS;
	cr_assert_eq(sl_sessions_deadline(sessions), at);
	cr_assert(!sl_sessions_expire(sessions, at - 1, &step));
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert(sl_sessions_expire(sessions, at, &step));
		cr_assert_str_eq(effects(), want[i]);
		cr_assert_eq(step.row, rows[i]);
		cr_assert_eq(recover(rows[i], 20, 9, at), SL_ANSWER_OVER);
		cr_assert_str_eq(step.reason,
				 "no recovery within 5000 ms after the loss: nothing heard for "
				 "1000 ms");
	}
	cr_assert_eq(sl_sessions_deadline(sessions), -1);
}

Test(session, an_agent_that_was_late_waits_once_more)
{
	unsigned int row = attach(1, 10), other;
	int64_t late = SESSION_SILENCE_MS + SL_SESSION_LATE_MS + 1;

	cr_assert(!sl_sessions_expire(sessions, late, &step));
	cr_assert_eq(sl_sessions_deadline(sessions), late + SL_SESSION_LATE_MS);
	cr_assert_eq(sl_session_heard(sessions, 10, late + 5, &other), 0);
	cr_assert_eq(sl_sessions_deadline(sessions), late + 5 + SESSION_SILENCE_MS);
	/* Once: who is always late still ends what is lost. */
	late += 100000;
	cr_assert(!sl_sessions_expire(sessions, late, &step));
	late += 100000;
	cr_assert(sl_sessions_expire(sessions, late, &step));
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_LOST);
	cr_assert(!sl_sessions_expire(sessions, late + 100000, &step));
	cr_assert(sl_sessions_expire(sessions, late + 200000, &step));
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_ENDED);
}

Test(session, drain_of_before_freezes_nothing)
{
	unsigned int row = attach(1, 10);
	uint32_t first;

	sl_session_hung_up(sessions, 10, NULL, 0, &step);
	cr_assert_str_eq(sl_record_at(records, row)->cause, "connection closed");
	first = step.effects[0].serial;
	cr_assert_eq(recover(row, 11, 2, 0), SL_ANSWER_RECOVERED);
	sl_session_drained(sessions, row, first, &step);
	cr_assert_str_eq(effects(), "");
	sl_session_hung_up(sessions, 11, "cut", 0, &step);
	cr_assert_str_eq(effects(), "DE");
	cr_assert_neq(step.effects[0].serial, first);
	sl_session_drained(sessions, row, first, &step);
	cr_assert_str_eq(effects(), "");
	sl_session_drained(sessions, row, first + 1, &step);
	cr_assert_str_eq(effects(), "F");
	sl_session_drained(sessions, row, first + 1, &step);
	cr_assert_str_eq(effects(), "", "told twice");
}

Test(session, freeze_that_was_asked_for)
{
	unsigned int row = attach(1, 10);

	cr_assert_eq(sl_session_ask_freeze(sessions, row, true, &step), 0);
	cr_assert_str_eq(effects(), "SDE");
	sl_session_drained(sessions, row, step.effects[1].serial, &step);
	cr_assert_str_eq(effects(), "F");
	/* It outlasts a loss and a recovery. */
	sl_session_hung_up(sessions, 10, "cut", 0, &step);
	cr_assert_str_eq(effects(), "E");
	cr_assert_eq(recover(row, 11, 2, 0), SL_ANSWER_RECOVERED);
	cr_assert_str_eq(effects(), "E");
	cr_assert_eq(sl_session_wanted(records, row), SL_WANTED_FROZEN);
	/* And an end after which it would go on. */
	cr_assert_eq(sl_session_end(sessions, row, SL_SESSION_END_CONTINUE, "detached", &step), 0);
	cr_assert_str_eq(effects(), "SCE");
	cr_assert_eq(step.effects[1].conn, 11);
	cr_assert_eq(sl_session_ask_freeze(sessions, row, false, &step), 0);
	cr_assert_str_eq(effects(), "STE");
	cr_assert_eq(sl_session_end(sessions, row, SL_SESSION_END_KILL, "x", &step), -EBADFD);
	cr_assert_eq(sl_session_forget(sessions, row), 0);
	cr_assert_eq(sl_session_ask_freeze(sessions, row, true, &step), -EBADFD);
}

Test(session, ends_by_request)
{
	unsigned int row = attach(1, 10), other;
	uint8_t token[SL_SESSION_TOKEN];

	memcpy(token, sl_record_at(records, row)->token, sizeof(token));
	cr_assert_eq(sl_session_end(sessions, row, SL_SESSION_END_KILL, "", &step), -EINVAL);
	cr_assert_eq(sl_session_forget(sessions, row), -EBADFD);
	cr_assert_eq(sl_session_end(sessions, row, SL_SESSION_END_KILL, "detached", &step), 0);
	cr_assert_str_eq(effects(), "SKCE");
	cr_assert_eq(sl_session_heard(sessions, 10, 0, &other), -ESTALE);
	sl_session_hung_up(sessions, 10, "cut", 0, &step);
	cr_assert_str_eq(effects(), "");
	cr_assert_str_eq(sl_record_at(records, row)->reason, "detached");
	cr_assert_eq(sl_session_forget(sessions, row), 0);
	cr_assert_eq(sl_session_recover(sessions, 11, token, 9, 0, &step, &err), 0);
	cr_assert_eq(step.answer, SL_ANSWER_UNKNOWN);
}

Test(session, next_worker)
{
	static const char *const want[] = { "T", "D", "SD", "SK", "U", "D" };
	unsigned int rows[6], at = 0, seen = 0;
	struct sl_record_new wanted = session_new(4, 1);

	for (unsigned int i = 0; i < 6; i++) {
		if (i != 4)
			rows[i] = attach(i, 10 + i);
	}
	sl_session_hung_up(sessions, 11, "cut", 0, &step);
	sl_session_end(sessions, rows[2], SL_SESSION_END_FROZEN, "x", &step);
	sl_session_end(sessions, rows[3], SL_SESSION_END_KILL, "x", &step);
	cr_assert_eq(sl_session_attach(sessions, 14, &wanted, 0, &step, &err), 0);
	rows[4] = step.row;
	sl_session_ask_freeze(sessions, rows[5], true, &step);
	sl_sessions_free(&sessions);
	cr_assert_eq(sl_sessions_new(&sessions, records, &err), 0);
	cr_assert_eq(sl_sessions_deadline(sessions), -1);
	for (; sl_sessions_start(sessions, &at, 90000, &step); seen++) {
		for (unsigned int i = 0; i < 6; i++) {
			if (rows[i] == step.row)
				cr_assert_str_eq(effects(), want[i], "%u: %s", i, effects());
		}
		if (step.row == rows[4])
			cr_assert_eq(sl_session_undo(sessions, rows[4]), 0);
	}
	cr_assert_eq(seen, 6);
	/* The time of a silence, and a grace anew. */
	cr_assert_eq(sl_sessions_deadline(sessions), 90000 + SESSION_SILENCE_MS);
	cr_assert(sl_sessions_expire(sessions, 90000 + SESSION_SILENCE_MS, &step));
	cr_assert_eq(step.row, rows[0]);
	cr_assert_not_null(strstr(sl_record_at(records, rows[0])->cause, "restarted"));
	cr_assert(sl_sessions_expire(sessions, 90000 + SESSION_SILENCE_MS, &step));
	cr_assert_eq(step.row, rows[5]);
	cr_assert(!sl_sessions_expire(sessions, 90000 + SESSION_GRACE_MS - 1, &step));
	cr_assert(sl_sessions_expire(sessions, 90000 + SESSION_GRACE_MS, &step));
	cr_assert_eq(step.row, rows[1]);
	cr_assert_eq(sl_record_state(records, rows[1]), SL_RECORD_ENDED);
	cr_assert_eq(recover(rows[0], 20, 2, 90000 + SESSION_GRACE_MS), SL_ANSWER_RECOVERED);
}

Test(session, worker_of_another_version_does_not_start)
{
	struct sl_record_new wanted = session_new(1, 1);

	wanted.version = SL_PROTOCOL_MAX + 1;
	cr_assert_eq(sl_session_attach(sessions, 10, &wanted, 0, &step, &err), 0);
	sl_sessions_free(&sessions);
	cr_assert_eq(sl_sessions_new(&sessions, records, &err), -EPROTONOSUPPORT);
	cr_assert_null(sessions);
	cr_assert_not_null(strstr(err.text, "protocol 2"));
}

Test(session, no_room)
{
	struct sl_record_new wanted = session_new(8, 1);
	unsigned int row;

	for (unsigned int i = 0; i < 8; i++)
		attach(i, 10 + i);
	cr_assert_eq(sl_session_attach(sessions, 30, &wanted, 0, &step, &err), -ENOSPC);
	cr_assert_eq(step.answer, SL_ANSWER_NONE);
	cr_assert_neq(err.hint[0], '\0');
	wanted.options.silence_ms = 1;
	cr_assert_eq(sl_session_attach(sessions, 30, &wanted, 0, &step, &err), -EINVAL);
	cr_assert_eq(sl_session_heard(sessions, 30, 0, &row), -ESTALE);
	cr_assert_eq(sl_session_recover(sessions, 30, sl_record_at(records, 0)->token,
					SL_EPOCH_MAX + 1, 0, &step, &err),
		     -EINVAL);
}

Test(session_version, greatest_in_common_or_both_named)
{
	static const struct {
		uint32_t min, max, agreed; /* 0: none */
	} cases[] = { { 2, 4, 4 }, { 4, 9, 5 }, { 5, 5, 5 }, { 1, 3, 3 },
		      { 1, 9, 5 }, { 6, 9, 0 }, { 1, 2, 0 }, { 3, UINT32_MAX, 5 } };
	const struct sl_component self = { "sluiced", "0.4", 3, 5 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_component peer = { "runtime", "2.1", cases[i].min, cases[i].max };
		uint32_t agreed = 0;
		int ret = sl_version_agree(&agreed, &self, &peer, &err);

		cr_assert_eq(ret, cases[i].agreed ? 0 : -EPROTONOSUPPORT);
		cr_assert_eq(agreed, cases[i].agreed);
	}
	{
		const struct sl_component peer = { "run\x1btime", "2.1", 6, 9 };
		uint32_t agreed = 77;

		cr_assert_eq(sl_version_agree(&agreed, &self, &peer, &err), -EPROTONOSUPPORT);
		cr_assert_eq(agreed, 77);
		cr_assert_str_eq(
			err.text,
			"sluiced 0.4 (protocol 3 to 5) and run\\x1btime 2.1 (protocol 6 to "
			"9) have no protocol version in common");
		cr_assert_str_eq(err.hint, "upgrade sluiced, the older of the two");
	}
	{
		const struct sl_component older = { "runtime", "1", 2, 2 };
		const struct sl_component wrong = { "runtime", "1", 5, 3 };
		const struct sl_component none = { "runtime", "1", 0, 3 };
		uint32_t agreed = 77;

		cr_assert_eq(sl_version_agree(&agreed, &self, &older, &err), -EPROTONOSUPPORT);
		cr_assert_str_eq(err.hint, "upgrade runtime, the older of the two");
		cr_assert_not_null(strstr(err.text, "(protocol 2)"));
		cr_assert_eq(sl_version_agree(&agreed, &self, &wrong, &err), -EINVAL);
		cr_assert_eq(sl_version_agree(&agreed, &self, &none, &err), -EINVAL);
		cr_assert_eq(agreed, 77);
	}
}
