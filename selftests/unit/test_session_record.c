/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of sessions: their states, and what is left of one whose worker was killed. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "session_world.h"
#include "system/scale.h"

#define _cleanup_records_ _cleanup_(sl_record_table_free)

static unsigned int prepare(struct sl_record_table *records, unsigned int number)
{
	const struct sl_record_new wanted = session_new(number, 1);
	unsigned int row = UINT32_MAX;

	cr_assert_eq(sl_record_prepare(records, &wanted, &row), 0);
	return row;
}

Test(session_record, states)
{
	_cleanup_records_ struct sl_record_table *records = NULL;
	unsigned int row;

	cr_assert_eq(sl_record_table_new(&records, 4), 0);
	row = prepare(records, 1);
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_PREPARED);
	cr_assert_eq(sl_record_lost(records, row, "x"), -EBADFD);
	cr_assert_eq(sl_record_recover(records, row, 2), -EBADFD);
	cr_assert_eq(sl_record_end(records, row, SL_SESSION_END_KILL, "x"), -EBADFD);
	cr_assert_eq(sl_record_undo(records, row), 0);
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_FREE);
	cr_assert_null(sl_record_at(records, row));

	row = prepare(records, 1);
	cr_assert_eq(sl_record_live(records, row, 7), 0);
	cr_assert_eq(sl_record_at(records, row)->sandbox, 7);
	cr_assert_eq(sl_record_undo(records, row), -EBADFD);
	cr_assert_eq(sl_record_forget(records, row), -EBADFD);
	cr_assert_eq(sl_record_lost(records, row, ""), -EINVAL);
	cr_assert_eq(sl_record_lost(records, row, "connection reset"), 0);
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_LOST);
	cr_assert_str_eq(sl_record_at(records, row)->cause, "connection reset");
	cr_assert_eq(sl_record_lost(records, row, "x"), -EBADFD);

	cr_assert_eq(sl_record_recover(records, row, 1), -ESTALE);
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_LOST);
	cr_assert_eq(sl_record_recover(records, row, SL_EPOCH_MAX + 1), -EINVAL);
	cr_assert_eq(sl_record_recover(records, row, SL_EPOCH_MAX), 0);
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_LIVE);
	cr_assert_eq(sl_record_epoch(records, row), SL_EPOCH_MAX);

	/* There is no end without a reason. */
	cr_assert_eq(sl_record_end(records, row, SL_SESSION_END_KILL, ""), -EINVAL);
	cr_assert_eq(sl_record_end(records, row, SL_SESSION_END_KILL, NULL), -EINVAL);
	cr_assert_eq(sl_record_end(records, row, SL_SESSION_END_KILL, "detached"), 0);
	cr_assert_str_eq(sl_record_at(records, row)->reason, "detached");
	cr_assert_eq(sl_record_recover(records, row, SL_EPOCH_MAX), -EBADFD);
	cr_assert_eq(sl_record_forget(records, row), 0);
	cr_assert_eq(sl_record_state(records, row), SL_RECORD_FREE);
}

Test(session_record, refuses_what_is_not_whole)
{
	_cleanup_records_ struct sl_record_table *records = NULL;
	struct sl_record_new wanted;
	char longer[PATH_MAX + 1];
	unsigned int row = 77;

	memset(longer, 'x', PATH_MAX);
	longer[PATH_MAX] = '\0';
	cr_assert_eq(sl_record_table_new(&records, SL_RECORDS_MAX + 1), -EINVAL);
	cr_assert_eq(sl_record_table_new(&records, 4), 0);
#define REFUSED(change)                                                           \
	do {                                                                      \
		wanted = session_new(1, 1);                                       \
		change;                                                           \
		cr_assert_eq(sl_record_prepare(records, &wanted, &row), -EINVAL); \
	} while (0)
	REFUSED(wanted.epoch = 0);
	REFUSED(wanted.epoch = SL_EPOCH_MAX + 1);
	REFUSED(wanted.cgroup = "");
	REFUSED(wanted.cgroup = NULL);
	REFUSED(wanted.cgroup = longer);
	REFUSED(wanted.cgroup = "/not\xffutf-8");
	REFUSED(wanted.policy_path = "");
	REFUSED(wanted.policy_path = longer);
	REFUSED(wanted.options.silence_ms = SL_SILENCE_MIN_MS - 1);
	REFUSED(wanted.options.silence_ms = SL_SILENCE_MAX_MS + 1);
	REFUSED(wanted.options.grace_ms = SL_GRACE_MAX_MS + 1);
	REFUSED(wanted.options.end = SL_SESSION_END_MAX);
	cr_assert_eq(row, 77);
	cr_assert_eq(sl_record_table_high(records), 0);
}

Test(session_record, full_table_gives_nothing_up)
{
	_cleanup_records_ struct sl_record_table *records = NULL;
	struct sl_record_new wanted = session_new(9, 1);
	unsigned int row;

	cr_assert_eq(sl_record_table_new(&records, 3), 0);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(sl_record_live(records, prepare(records, i), 1), 0);
	cr_assert_eq(sl_record_end(records, 1, SL_SESSION_END_FROZEN, "gone"), 0);
	cr_assert_eq(sl_record_prepare(records, &wanted, &row), -ENOSPC);
	cr_assert_str_eq(sl_record_at(records, 1)->reason, "gone");
	wanted = session_new(2, 1);
	cr_assert_eq(sl_record_prepare(records, &wanted, &row), -EEXIST, "its key has a row");
	wanted = session_new(9, 1);
	wanted.cgroup_id = 100;
	cr_assert_eq(sl_record_prepare(records, &wanted, &row), -EEXIST, "its cgroup has a row");
	cr_assert_eq(sl_record_forget(records, 1), 0);
	wanted = session_new(9, 1);
	cr_assert_eq(sl_record_prepare(records, &wanted, &row), 0);
	cr_assert_eq(row, 1);
}

Test(session_record, found_by_what_is_known)
{
	_cleanup_records_ struct sl_record_table *records = NULL;
	uint8_t token[SL_SESSION_TOKEN];
	unsigned int row = 0, seen = 0;

	cr_assert_eq(sl_record_table_new(&records, 0), 0);
	for (unsigned int i = 0; i < 5; i++)
		prepare(records, i);
	for (unsigned int i = 0; i < 5; i++) {
		const struct sl_record *record = sl_record_at(records, i);

		cr_assert_eq(sl_record_by_token(records, record->token, &row), 0);
		cr_assert_eq(row, i);
		cr_assert_eq(sl_record_by_key(records, record->key, &row), 0);
		cr_assert_eq(row, i);
		cr_assert_eq(sl_record_by_cgroup(records, 100 + i, &row), 0);
		cr_assert_eq(row, i);
		/* Each bit counts. */
		for (unsigned int bit = 0; bit < 8 * SL_SESSION_TOKEN; bit++) {
			memcpy(token, record->token, sizeof(token));
			token[bit / 8] ^= (uint8_t)(1U << bit % 8);
			cr_assert_eq(sl_record_by_token(records, token, &row), -ENOENT);
		}
	}
	/* A free row is nobody's, whatever is left in it. */
	memcpy(token, sl_record_at(records, 2)->token, sizeof(token));
	cr_assert_eq(sl_record_undo(records, 2), 0);
	cr_assert_eq(sl_record_by_token(records, token, &row), -ENOENT);
	memset(token, 0, sizeof(token));
	cr_assert_eq(sl_record_by_token(records, token, &row), -ENOENT);
	cr_assert_eq(sl_record_by_cgroup(records, 102, &row), -ENOENT);
	for (unsigned int at = 0; sl_record_next(records, &at, &row); seen |= 1U << row)
		cr_assert_neq(row, 2);
	cr_assert_eq(seen, 0x1b);
}

Test(session_record, policy_and_freeze_are_kept_through_states)
{
	_cleanup_records_ struct sl_record_table *records = NULL;
	static const uint8_t other[SL_SHA256_LEN] = { 1, 2, 3 };
	unsigned int row;

	cr_assert_eq(sl_record_table_new(&records, 4), 0);
	row = prepare(records, 1);
	cr_assert_eq(sl_record_set_policy(records, row, "/p", other), -EBADFD);
	cr_assert_eq(sl_record_ask_freeze(records, row, true), -EBADFD);
	cr_assert_eq(sl_record_live(records, row, 1), 0);
	cr_assert_eq(sl_record_set_policy(records, row, "", other), -EINVAL);
	cr_assert_eq(sl_record_set_policy(records, row, "/p", other), 0);
	cr_assert_eq(sl_record_ask_freeze(records, row, true), 0);
	cr_assert_eq(sl_record_lost(records, row, "x"), 0);
	cr_assert_eq(sl_record_recover(records, row, 2), 0);
	cr_assert(sl_record_freeze_asked(records, row));
	cr_assert_str_eq(sl_record_policy(records, row)->path, "/p");
	cr_assert_arr_eq(sl_record_policy(records, row)->sha256, other, sizeof(other));
	cr_assert_eq(sl_record_set_policy(records, row, "/q", other), 0);
	cr_assert_str_eq(sl_record_policy(records, row)->path, "/q");
	cr_assert(sl_record_freeze_asked(records, row));
	cr_assert_eq(sl_record_ask_freeze(records, row, false), 0);
	cr_assert(!sl_record_freeze_asked(records, row));
	cr_assert_str_eq(sl_record_policy(records, row)->path, "/q");
	cr_assert_eq(sl_record_epoch(records, row), 2);
}

Test(session_record, copied_and_restored)
{
	_cleanup_records_ struct sl_record_table *records = NULL, *others = NULL;
	_cleanup_free_ struct sl_record_copy *copy = calloc(2, sizeof(*copy));
	static const uint8_t sha256[SL_SHA256_LEN] = { 9 };
	unsigned int row;

	cr_assert_eq(sl_record_table_new(&records, 4), 0);
	cr_assert_eq(sl_record_table_new(&others, 4), 0);
	cr_assert_eq(sl_record_copy(copy, records, 0), -ENOENT);
	row = prepare(records, 1);
	cr_assert_eq(sl_record_live(records, row, 3), 0);
	cr_assert_eq(sl_record_set_policy(records, row, "/second", sha256), 0);
	cr_assert_eq(sl_record_ask_freeze(records, row, true), 0);
	cr_assert_eq(sl_record_recover(records, row, 5), 0);
	cr_assert_eq(sl_record_lost(records, row, "cut"), 0);
	cr_assert_eq(sl_record_copy(&copy[0], records, row), 0);
	cr_assert_eq(sl_record_restore(others, &copy[0], &row), 0);
	cr_assert_eq(sl_record_copy(&copy[1], others, row), 0);
	session_same(&(struct sl_store_entry){ .session = copy[0] },
		     &(struct sl_store_entry){ .session = copy[1] });
	cr_assert_str_eq(sl_record_policy(others, row)->path, "/second");
	cr_assert_eq(sl_record_restore(others, &copy[0], &row), -EEXIST);
	copy[0].state = SL_RECORD_ENDED;
	cr_assert_eq(sl_record_restore(records, &copy[0], &row), -EINVAL, "no reason");
	copy[0].state = SL_RECORD_FREE;
	cr_assert_eq(sl_record_restore(records, &copy[0], &row), -EINVAL);
}

/* Texts and digests of one policy belong together, by their number. */
static void policy_of(unsigned int n, char path[64], uint8_t sha256[SL_SHA256_LEN])
{
	snprintf(path, 64, "/policy/%08u%08u%08u", n, n, n);
	memset(sha256, (int)(n & 0xff), SL_SHA256_LEN);
}

/* Through all states, and again over what that has left in the row. */
#define CYCLES (SCALED(2) ?: 1)
static _Noreturn void change(struct sl_record_table *records)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (unsigned int n = 1; n <= CYCLES; n++) {
		uint8_t sha256[SL_SHA256_LEN];
		struct sl_record_new wanted = session_new(n, n);
		char path[64], text[64];
		unsigned int row;

		policy_of(n, path, sha256);
		wanted.policy_path = path;
		wanted.policy_sha256 = sha256;
		snprintf(text, sizeof(text), "text %u", n);
		if (sl_record_prepare(records, &wanted, &row))
			_exit(1);
		sl_record_live(records, row, n);
		policy_of(n + 1, path, sha256);
		sl_record_set_policy(records, row, path, sha256);
		sl_record_lost(records, row, text);
		sl_record_recover(records, row, n + 1);
		sl_record_lost(records, row, text);
		sl_record_end(records, row, SL_SESSION_END_KILL, text);
		sl_record_forget(records, row);
	}
	_exit(0);
}

/* What the state that is left relies on is there, and of one piece. */
static void check_left(const struct sl_record_table *records)
{
	const struct sl_record *record = sl_record_at(records, 0);
	enum sl_record_state state = sl_record_state(records, 0);
	struct sl_record_new wanted;
	uint8_t sha256[SL_SHA256_LEN];
	char path[64], text[64];
	unsigned int n, m;

	if (!record)
		return;
	n = (unsigned int)record->cgroup_id - 100;
	wanted = session_new(n, 1);
	cr_assert_arr_eq(record->key, wanted.key, sizeof(wanted.key));
	cr_assert_eq(sscanf(sl_record_policy(records, 0)->path, "/policy/%8u", &m), 1);
	cr_assert(m == n || (m == n + 1 && state > SL_RECORD_PREPARED));
	policy_of(m, path, sha256);
	cr_assert_str_eq(sl_record_policy(records, 0)->path, path);
	cr_assert_arr_eq(sl_record_policy(records, 0)->sha256, sha256, sizeof(sha256));
	snprintf(text, sizeof(text), "text %u", n);
	if (state > SL_RECORD_PREPARED)
		cr_assert_eq(record->sandbox, n);
	if (state == SL_RECORD_LOST)
		cr_assert_str_eq(record->cause, text);
	if (state == SL_RECORD_ENDED) {
		cr_assert_str_eq(record->reason, text);
		cr_assert_eq(record->end, SL_SESSION_END_KILL);
	}
}

/* What others see after each instruction is what a worker leaves that is killed there. */
Test(session_record, worker_killed_at_any_instruction, .timeout = 120)
{
	_cleanup_records_ struct sl_record_table *records = NULL;
	unsigned int states = 0;
	int status;
	pid_t pid;

	cr_assert_eq(sl_record_table_new(&records, 1), 0);
	pid = fork();
	if (!pid)
		change(records);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		cr_skip_test("ptrace: %s", strerror(errno));
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		check_left(records);
		states |= 1U << sl_record_state(records, 0);
		ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
	}
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cr_assert_eq(states, (1U << SL_RECORD_STATE_MAX) - 1, "a state was not seen");
}
