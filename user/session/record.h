/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of sessions, in memory that outlives the worker that writes them. The rules named
 * here are those of selftests/model/session.pml.
 *
 *	keeper	sl_record_table_new(&records, 0)	before it forks the first worker
 *	worker	sl_record_prepare()		FREE -> PREPARED, then the sandbox is made
 *		sl_record_live()		PREPARED -> LIVE, all of it is in place
 *		sl_record_undo()		PREPARED -> FREE, what was made is gone again
 *		sl_record_lost()		LIVE -> LOST
 *		sl_record_recover()		LIVE, LOST -> LIVE with a greater epoch
 *		sl_record_end()			LIVE, LOST -> ENDED
 *		sl_record_forget()		ENDED -> FREE, the sandbox is gone
 *
 * Invariants
 * 1. State, epoch, the policy that counts and a freeze that was asked for are one 64-bit word,
 *    written in one store. What a state relies on is written before the word, and nothing
 *    reads it in another state. So a worker may die between any two instructions.
 * 2. One writer: the thread that runs the sessions. Other threads may read the words.
 * 3. A full table refuses the next session (-ENOSPC) and gives no row up: a row that ended is
 *    what tells the client so. They are freed by sl_record_forget() only.
 * 4. Functions that change a state return -EBADFD when the row is in no state for that.
 */
#ifndef SLUICE_USER_SESSION_RECORD_H
#define SLUICE_USER_SESSION_RECORD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "identity/digest.h"

#define SL_RECORDS_MAX 4096             /* as many as the keeper holds listeners */
#define SL_SESSION_KEY 16               /* bytes, the client's random */
#define SL_SESSION_TOKEN 32             /* bytes, ours */
#define SL_SESSION_TEXT 512             /* of a cause or reason with terminator; cut to that */
#define SL_EPOCH_MAX ((1ULL << 56) - 1) /* what a word has room for */

enum sl_record_state {
	SL_RECORD_FREE,
	SL_RECORD_PREPARED,
	SL_RECORD_LIVE,
	SL_RECORD_LOST,
	SL_RECORD_ENDED,
	SL_RECORD_STATE_MAX
};

/* What becomes of the workload when its session has ended. */
enum sl_session_end {
	SL_SESSION_END_FROZEN,
	SL_SESSION_END_CONTINUE, /* under its last policy */
	SL_SESSION_END_KILL,
	SL_SESSION_END_REMOVE, /* killed, and the sandbox and its cgroup go as well */
	SL_SESSION_END_MAX
};

extern const char *const sl_record_state_names[SL_RECORD_STATE_MAX];
extern const char *const sl_session_end_names[SL_SESSION_END_MAX];

/* The file is the agent's copy, never written again: a digest says which text it is. */
struct sl_session_policy {
	char path[PATH_MAX];
	uint8_t sha256[SL_SHA256_LEN];
};

struct sl_session_options {
	bool freeze_on_loss;
	uint32_t silence_ms; /* nothing heard for so long is a loss; 0: nothing is one by itself */
	uint32_t grace_ms;   /* a loss for so long is the end */
	enum sl_session_end end;
};

#define SL_SILENCE_MIN_MS 100
#define SL_SILENCE_MAX_MS (60U * 60 * 1000)
#define SL_GRACE_MAX_MS (24U * 60 * 60 * 1000)

struct sl_record {
	/* Relied on in every state but FREE. */
	uint8_t key[SL_SESSION_KEY];
	uint8_t token[SL_SESSION_TOKEN];
	uint32_t version;  /* of the protocol; a worker that can't speak it must not start */
	uint64_t listener; /* its tag with the keeper; 0: it has none */
	uint32_t holds;    /* what its filter holds, as the agent counts it */
	uint64_t cgroup_id;
	char cgroup[PATH_MAX];
	struct sl_session_options options;
	struct sl_session_policy policy[2]; /* see sl_record_policy() */
	/* From LIVE on. 0: none was made. */
	uint32_t sandbox;
	/* In LOST: why. */
	char cause[SL_SESSION_TEXT];
	/* In ENDED: why, and what became of the workload. */
	char reason[SL_SESSION_TEXT];
	enum sl_session_end end;
};

struct sl_record_table;

/* Shared by all processes forked from now on; 0 rows: SL_RECORDS_MAX. -EINVAL, -ENOMEM. */
int sl_record_table_new(struct sl_record_table **out, unsigned int count);
void sl_record_table_free(struct sl_record_table **records);

/* Rows in use are below this; it does not shrink. */
unsigned int sl_record_table_high(const struct sl_record_table *records);

/* Of any row; FREE for one that does not exist. */
enum sl_record_state sl_record_state(const struct sl_record_table *records, unsigned int row);
uint64_t sl_record_epoch(const struct sl_record_table *records, unsigned int row);
bool sl_record_freeze_asked(const struct sl_record_table *records, unsigned int row);

/* NULL in FREE. */
const struct sl_record *sl_record_at(const struct sl_record_table *records, unsigned int row);
/* The policy that counts, NULL in FREE. */
const struct sl_session_policy *sl_record_policy(const struct sl_record_table *records,
						 unsigned int row);

/*
 * Rows in use: start with *at = 0; false at the end. Changing states during a walk is allowed.
 */
bool sl_record_next(const struct sl_record_table *records, unsigned int *at, unsigned int *row);

/* -ENOENT. By token: in constant time for each row, whatever the token is. */
int sl_record_by_key(const struct sl_record_table *records, const uint8_t key[SL_SESSION_KEY],
		     unsigned int *row);
int sl_record_by_token(const struct sl_record_table *records, const uint8_t token[SL_SESSION_TOKEN],
		       unsigned int *row);
int sl_record_by_cgroup(const struct sl_record_table *records, uint64_t cgroup_id,
			unsigned int *row);

struct sl_record_new {
	uint8_t key[SL_SESSION_KEY];
	uint64_t epoch; /* 1 to SL_EPOCH_MAX */
	uint32_t version;
	uint64_t listener;
	uint32_t holds;
	uint64_t cgroup_id;
	const char *cgroup, *policy_path;
	const uint8_t *policy_sha256;
	struct sl_session_options options;
};

/*
 * Rule 2, with a new token. -EEXIST: the key or the cgroup has a row. -ENOSPC: invariant 3.
 * -EINVAL: epoch, options, or a text that is empty, too long or not UTF-8. -EIO: no random bytes.
 */
int sl_record_prepare(struct sl_record_table *records, const struct sl_record_new *wanted,
		      unsigned int *row);

/* Rule 8: what was made for the session is gone before. */
int sl_record_undo(struct sl_record_table *records, unsigned int row);

/* Rule 3: the keeper has the listener and the links are pinned before. */
int sl_record_live(struct sl_record_table *records, unsigned int row, uint32_t sandbox);

/* Rules 4 and 7 are the caller's. `cause` is not empty: -EINVAL. */
int sl_record_lost(struct sl_record_table *records, unsigned int row, const char *cause);

/* Rule 1: -ESTALE for an epoch that is not greater than the record's. */
int sl_record_recover(struct sl_record_table *records, unsigned int row, uint64_t epoch);

/* Rule 11. `reason` is not empty: -EINVAL. */
int sl_record_end(struct sl_record_table *records, unsigned int row, enum sl_session_end end,
		  const char *reason);

int sl_record_forget(struct sl_record_table *records, unsigned int row);

/* In LIVE and LOST. -EINVAL: an empty or overlong path. */
int sl_record_set_policy(struct sl_record_table *records, unsigned int row, const char *path,
			 const uint8_t sha256[SL_SHA256_LEN]);

/* From LIVE on: somebody wants the workload frozen, or not any longer. */
int sl_record_ask_freeze(struct sl_record_table *records, unsigned int row, bool freeze);

/* One row by value, as it is stored; its policy is the first. */
struct sl_record_copy {
	enum sl_record_state state;
	uint64_t epoch;
	bool freeze_asked;
	struct sl_record record;
};

/* -ENOENT: FREE. */
int sl_record_copy(struct sl_record_copy *out, const struct sl_record_table *records,
		   unsigned int row);

/* Whether it has what its state relies on. */
bool sl_record_whole(const struct sl_record_copy *copy);

/*
 * After the keeper's own death, before a worker runs sessions. Errors of sl_record_prepare();
 * -EINVAL for what is not whole.
 */
int sl_record_restore(struct sl_record_table *records, const struct sl_record_copy *copy,
		      unsigned int *row);

#endif
