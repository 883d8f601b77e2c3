/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between attach.c (how a session comes by a connection) and session.c (all else). */
#ifndef SLUICE_USER_SESSION_SESSION_PRIVATE_H
#define SLUICE_USER_SESSION_SESSION_PRIVATE_H

#include "base/htab.h"
#include "session/session.h"

enum sl_session_phase { SL_PHASE_NONE, SL_PHASE_DRAINING, SL_PHASE_FROZEN };

/* What dies with the worker. */
struct sl_session_local {
	uint64_t conn;       /* the session's own; 0: none */
	int64_t deadline_ms; /* of silence or grace; -1: none */
	bool extended;       /* the agent was late for it once */
	enum sl_session_phase phase;
	uint32_t serial; /* of the last drain */
};

struct sl_sessions {
	struct sl_record_table *records;
	struct sl_htab *rows; /* by own connection */
	struct sl_session_local locals[SL_RECORDS_MAX];
};

void sl_step_begin(struct sl_step *step, unsigned int row);
struct sl_effect *sl_step_add(struct sl_step *step, enum sl_effect_kind kind);

void sl_session_deadline(struct sl_session_local *local, int64_t now_ms, uint32_t in_ms);

/*
 * The same of a live session, from its silence_ms. Where silence is no loss, one whose
 * connection an agent that has died took with it waits for long, but not for ever.
 */
void sl_session_silence(struct sl_session_local *local, int64_t now_ms,
			const struct sl_record *record, bool connected);

/* The row has no own connection any more. */
void sl_session_drop(struct sl_sessions *sessions, unsigned int row);

/*
 * Rule 5: adds what makes the workload follow the record. `unasked`: thaws what need not be
 * frozen; the worker that froze it may be dead.
 */
void sl_session_settle(struct sl_sessions *sessions, struct sl_step *step, bool unasked);

#endif
