/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sessions with sandbox runtimes: what each message, end of a connection, timer and start of a
 * worker does to the records, by the rules of selftests/model/session.pml. It opens nothing
 * and calls nothing: what is to be done comes out as effects.
 *
 *	sl_sessions_new(&sessions, records, &err);
 *	while (sl_sessions_start(sessions, &at, now_ms, &step)) …	before calls are received
 *	Attach		sl_session_attach(); SL_ANSWER_NEW: make the sandbox, then
 *			sl_session_attached(), or take it back and sl_session_undo()
 *	Recover		sl_session_recover()
 *	any other	sl_session_heard(), which says whose session the connection is
 *	its end		sl_session_hung_up()
 *	all was read	while (sl_sessions_expire(sessions, now_ms, &step)) …
 *
 * Rules, beside the model's
 * 1. Effects are carried out in their order, before the next step and before the answer; only
 *    a drain may take longer. After it sl_session_drained() looks at the record again.
 * 2. Times are sl_monotonic_ms(). Where a deadline is concluded from silence (model: rule 7),
 *    now_ms was taken before all that had arrived was read. Who then finds a deadline passed
 *    by more than SL_SESSION_LATE_MS was late himself: the client has that long once more.
 * 3. A connection is a number of the caller's, not 0 and not used again. It is the own one of
 *    one session at most. Who gets SL_ANSWER_STALE, UNKNOWN, OVER or an error is closed.
 * 4. One thread. The records are borrowed.
 */
#ifndef SLUICE_USER_SESSION_SESSION_H
#define SLUICE_USER_SESSION_SESSION_H

#include "base/err.h"
#include "session/record.h"

#define SL_SESSION_LATE_MS 1000

enum sl_session_answer {
	SL_ANSWER_NONE,      /* the step was no Attach or Recover, or it failed */
	SL_ANSWER_NEW,       /* prepared: no answer yet, see above */
	SL_ANSWER_RECOVERED, /* Ok */
	SL_ANSWER_STALE,     /* `epoch` is the record's */
	SL_ANSWER_UNKNOWN,   /* final */
	SL_ANSWER_OVER,      /* final; `reason` */
	SL_ANSWER_AGAIN,     /* it is just being made, or taken back: try once more */
	SL_ANSWER_MAX
};

enum sl_effect_kind {
	SL_EFFECT_CLOSE,  /* `conn`: after what is queued for it; what it sent may yet be read */
	SL_EFFECT_UNDO,   /* take back what was made for the row, then sl_session_undo() */
	SL_EFFECT_DRAIN,  /* answer its calls in hand, receive none; then sl_session_drained() */
	SL_EFFECT_FREEZE, /* its cgroup; now, without waiting for anything */
	SL_EFFECT_THAW,   /* its cgroup, and receive its calls again; may be so already */
	SL_EFFECT_KILL,   /* its cgroup; may be empty already */
	SL_EFFECT_SAVE,   /* the row is to be stored */
	SL_EFFECT_TELL,   /* the state has changed: watchers, conditions */
	SL_EFFECT_MAX
};

struct sl_effect {
	enum sl_effect_kind kind;
	uint64_t conn;   /* of CLOSE */
	uint32_t serial; /* of DRAIN */
};

#define SL_EFFECTS_MAX 4 /* of one step */

/* What a step did; about one row. */
struct sl_step {
	unsigned int row;
	enum sl_session_answer answer;
	uint64_t epoch;
	const char *reason; /* the record's */
	unsigned int count;
	struct sl_effect effects[SL_EFFECTS_MAX];
};

struct sl_sessions;

/* -EPROTONOSUPPORT: a record has a version that this worker can't speak. -ENOMEM. */
int sl_sessions_new(struct sl_sessions **out, struct sl_record_table *records, struct sl_err *err);
void sl_sessions_free(struct sl_sessions **sessions);

/*
 * Rule 8, one row a call: start with *at = 0; false at the end. Drains are to be done before
 * any call is received.
 */
bool sl_sessions_start(struct sl_sessions *sessions, unsigned int *at, int64_t now_ms,
		       struct sl_step *step);

/*
 * Rules 1 and 2. -EEXIST: the key goes with another cgroup, the cgroup has another session, or
 * the connection has one. -ENOSPC, -EINVAL, -EIO as sl_record_prepare(); -ENOMEM.
 */
int sl_session_attach(struct sl_sessions *sessions, uint64_t conn,
		      const struct sl_record_new *wanted, int64_t now_ms, struct sl_step *step,
		      struct sl_err *err);

/* Rule 3: everything is in place. -EBADFD: the row is not being attached. */
int sl_session_attached(struct sl_sessions *sessions, unsigned int row, uint32_t sandbox,
			int64_t now_ms, struct sl_step *step);

/* Nothing of it is left. -EBADFD as above. */
int sl_session_undo(struct sl_sessions *sessions, unsigned int row);

/* Rule 1. -EEXIST: the connection has another session. -EINVAL: an epoch too great. -ENOMEM. */
int sl_session_recover(struct sl_sessions *sessions, uint64_t conn,
		       const uint8_t token[SL_SESSION_TOKEN], uint64_t epoch, int64_t now_ms,
		       struct sl_step *step, struct sl_err *err);

/* Rule 4: -ESTALE unless the connection is a live session's own, which it is a sign of. */
int sl_session_heard(struct sl_sessions *sessions, uint64_t conn, int64_t now_ms,
		     unsigned int *row);

/* Rule 4: of any connection. `cause` for the record, as concrete as it is known. */
void sl_session_hung_up(struct sl_sessions *sessions, uint64_t conn, const char *cause,
			int64_t now_ms, struct sl_step *step);

/* Rule 7, one row a call; false: nothing is due. */
bool sl_sessions_expire(struct sl_sessions *sessions, int64_t now_ms, struct sl_step *step);

/* When sl_sessions_expire() has something to do next; -1: never. */
int64_t sl_sessions_deadline(const struct sl_sessions *sessions);

/* Rule 5: the drain of that serial is done. */
void sl_session_drained(struct sl_sessions *sessions, unsigned int row, uint32_t serial,
			struct sl_step *step);

/* For who may: the session's own connection (sl_session_heard()), or an operator. -EBADFD. */
int sl_session_ask_freeze(struct sl_sessions *sessions, unsigned int row, bool freeze,
			  struct sl_step *step);
int sl_session_end(struct sl_sessions *sessions, unsigned int row, enum sl_session_end what,
		   const char *reason, struct sl_step *step);
/* Of an ended one; its sandbox is gone. */
int sl_session_forget(struct sl_sessions *sessions, unsigned int row);

/* Whether the session has a connection that is its own. */
bool sl_session_connected(const struct sl_sessions *sessions, unsigned int row);

enum sl_session_wanted { SL_WANTED_RUNNING, SL_WANTED_FROZEN, SL_WANTED_DEAD };

/* Rule 5: what the workload has to be, by its record alone. */
enum sl_session_wanted sl_session_wanted(const struct sl_record_table *records, unsigned int row);

#endif
