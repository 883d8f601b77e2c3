// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session/record.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <openssl/crypto.h>

#include "base/utf8.h"

/* The word, from its low end. */
#define STATE_MASK 0x7ULL
#define SECOND_POLICY (1ULL << 3)
#define FREEZE_ASKED (1ULL << 4)
#define EPOCH_SHIFT 8

/* Words apart from the rows: a walk touches no page of a row that is free. */
struct sl_record_table {
	unsigned int count;
	_Atomic(unsigned int) high;
	struct sl_record *rows; /* in the same mapping */
	_Atomic(uint64_t) words[];
};

const char *const sl_record_state_names[] = {
	[SL_RECORD_FREE] = "free", [SL_RECORD_PREPARED] = "prepared", [SL_RECORD_LIVE] = "live",
	[SL_RECORD_LOST] = "lost", [SL_RECORD_ENDED] = "ended",
};

const char *const sl_session_end_names[] = {
	[SL_SESSION_END_FROZEN] = "frozen",
	[SL_SESSION_END_CONTINUE] = "continue",
	[SL_SESSION_END_KILL] = "kill",
	[SL_SESSION_END_REMOVE] = "remove",
};

static size_t rows_at(unsigned int count)
{
	size_t end = sizeof(struct sl_record_table) + count * sizeof(uint64_t);

	return (end + 63) & ~63UL;
}

static size_t size_of(unsigned int count)
{
	return rows_at(count) + count * sizeof(struct sl_record);
}

int sl_record_table_new(struct sl_record_table **out, unsigned int count)
{
	struct sl_record_table *records;

	if (!count)
		count = SL_RECORDS_MAX;
	if (count > SL_RECORDS_MAX)
		return -EINVAL;
	records = mmap(NULL, size_of(count), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (records == MAP_FAILED)
		return -ENOMEM;
	records->count = count;
	records->rows = (struct sl_record *)((char *)records + rows_at(count));
	*out = records;
	return 0;
}

void sl_record_table_free(struct sl_record_table **records)
{
	if (*records)
		munmap(*records, size_of((*records)->count));
	*records = NULL;
}

unsigned int sl_record_table_high(const struct sl_record_table *records)
{
	return atomic_load(&records->high);
}

static uint64_t word_of(const struct sl_record_table *records, unsigned int row)
{
	return row < records->count ? atomic_load(&records->words[row]) : 0;
}

static enum sl_record_state state_in(uint64_t word)
{
	return (enum sl_record_state)(word & STATE_MASK);
}

/* Invariant 1: release order, so that all that was written before is there for who reads it. */
static void store(struct sl_record_table *records, unsigned int row, enum sl_record_state state,
		  uint64_t epoch, uint64_t flags)
{
	atomic_store(&records->words[row], (uint64_t)state | epoch << EPOCH_SHIFT | flags);
}

/* Another state, all else in the word as it was. */
static void move(struct sl_record_table *records, unsigned int row, enum sl_record_state state)
{
	uint64_t word = word_of(records, row);

	store(records, row, state, word >> EPOCH_SHIFT, word & (SECOND_POLICY | FREEZE_ASKED));
}

enum sl_record_state sl_record_state(const struct sl_record_table *records, unsigned int row)
{
	return state_in(word_of(records, row));
}

uint64_t sl_record_epoch(const struct sl_record_table *records, unsigned int row)
{
	return word_of(records, row) >> EPOCH_SHIFT;
}

bool sl_record_freeze_asked(const struct sl_record_table *records, unsigned int row)
{
	return word_of(records, row) & FREEZE_ASKED;
}

const struct sl_record *sl_record_at(const struct sl_record_table *records, unsigned int row)
{
	return sl_record_state(records, row) ? &records->rows[row] : NULL;
}

const struct sl_session_policy *sl_record_policy(const struct sl_record_table *records,
						 unsigned int row)
{
	uint64_t word = word_of(records, row);

	return state_in(word) ? &records->rows[row].policy[!!(word & SECOND_POLICY)] : NULL;
}

bool sl_record_next(const struct sl_record_table *records, unsigned int *at, unsigned int *row)
{
	unsigned int high = sl_record_table_high(records);

	while (*at < high) {
		*row = (*at)++;
		if (sl_record_state(records, *row))
			return true;
	}
	return false;
}

int sl_record_by_key(const struct sl_record_table *records, const uint8_t key[SL_SESSION_KEY],
		     unsigned int *row)
{
	for (unsigned int at = 0, i; sl_record_next(records, &at, &i);) {
		if (memcmp(records->rows[i].key, key, SL_SESSION_KEY) != 0)
			continue;
		*row = i;
		return 0;
	}
	return -ENOENT;
}

int sl_record_by_token(const struct sl_record_table *records, const uint8_t token[SL_SESSION_TOKEN],
		       unsigned int *row)
{
	int ret = -ENOENT;

	/* To the end also after a hit: how long it takes tells nothing. */
	for (unsigned int at = 0, i; sl_record_next(records, &at, &i);) {
		if (!CRYPTO_memcmp(records->rows[i].token, token, SL_SESSION_TOKEN)) {
			*row = i;
			ret = 0;
		}
	}
	return ret;
}

int sl_record_by_cgroup(const struct sl_record_table *records, uint64_t cgroup_id,
			unsigned int *row)
{
	for (unsigned int at = 0, i; sl_record_next(records, &at, &i);) {
		if (records->rows[i].cgroup_id != cgroup_id)
			continue;
		*row = i;
		return 0;
	}
	return -ENOENT;
}

/* UTF-8, as it came in JSON and goes there again. */
static bool fits(const char *text, size_t size)
{
	size_t len = text ? strnlen(text, size) : 0;

	return len && len < size && sl_utf8_valid(text, len);
}

static bool sane(const struct sl_session_options *options)
{
	return (!options->silence_ms || options->silence_ms >= SL_SILENCE_MIN_MS) &&
	       options->silence_ms <= SL_SILENCE_MAX_MS && options->grace_ms <= SL_GRACE_MAX_MS &&
	       options->end < SL_SESSION_END_MAX;
}

/* A free row for such a session, not taken yet. */
static int place(const struct sl_record_table *records, const uint8_t key[SL_SESSION_KEY],
		 uint64_t cgroup_id, unsigned int *row)
{
	if (!sl_record_by_key(records, key, row) || !sl_record_by_cgroup(records, cgroup_id, row))
		return -EEXIST;
	for (*row = 0; *row < records->count; (*row)++) {
		if (!sl_record_state(records, *row))
			return 0;
	}
	return -ENOSPC;
}

static void take(struct sl_record_table *records, unsigned int row, enum sl_record_state state,
		 uint64_t epoch, uint64_t flags)
{
	/* First: a row in use that no walk comes by would be forgotten by the next worker. */
	if (row >= sl_record_table_high(records))
		atomic_store(&records->high, row + 1);
	store(records, row, state, epoch, flags);
}

int sl_record_prepare(struct sl_record_table *records, const struct sl_record_new *wanted,
		      unsigned int *row)
{
	struct sl_record *record;
	unsigned int found;
	int ret;

	if (!wanted->epoch || wanted->epoch > SL_EPOCH_MAX || !sane(&wanted->options) ||
	    !fits(wanted->cgroup, sizeof(record->cgroup)) ||
	    !fits(wanted->policy_path, sizeof(record->policy[0].path)))
		return -EINVAL;
	ret = place(records, wanted->key, wanted->cgroup_id, &found);
	if (ret)
		return ret;
	record = &records->rows[found];
	memset(record, 0, sizeof(*record));
	if (getrandom(record->token, sizeof(record->token), 0) != sizeof(record->token))
		return -EIO;
	memcpy(record->key, wanted->key, sizeof(record->key));
	record->version = wanted->version;
	record->listener = wanted->listener;
	record->holds = wanted->holds;
	record->cgroup_id = wanted->cgroup_id;
	strcpy(record->cgroup, wanted->cgroup);
	record->options = wanted->options;
	strcpy(record->policy[0].path, wanted->policy_path);
	memcpy(record->policy[0].sha256, wanted->policy_sha256, SL_SHA256_LEN);
	take(records, found, SL_RECORD_PREPARED, wanted->epoch, 0);
	*row = found;
	return 0;
}

/* After the word: what is left of a row that is free is nobody's. */
static void release(struct sl_record_table *records, unsigned int row)
{
	store(records, row, SL_RECORD_FREE, 0, 0);
	explicit_bzero(records->rows[row].token, SL_SESSION_TOKEN);
}

int sl_record_undo(struct sl_record_table *records, unsigned int row)
{
	if (sl_record_state(records, row) != SL_RECORD_PREPARED)
		return -EBADFD;
	release(records, row);
	return 0;
}

int sl_record_live(struct sl_record_table *records, unsigned int row, uint32_t sandbox)
{
	if (sl_record_state(records, row) != SL_RECORD_PREPARED)
		return -EBADFD;
	records->rows[row].sandbox = sandbox;
	move(records, row, SL_RECORD_LIVE);
	return 0;
}

static void set_text(char out[SL_SESSION_TEXT], const char *text)
{
	sl_utf8_copy(out, SL_SESSION_TEXT, text);
}

int sl_record_lost(struct sl_record_table *records, unsigned int row, const char *cause)
{
	if (sl_record_state(records, row) != SL_RECORD_LIVE)
		return -EBADFD;
	if (!cause || !cause[0])
		return -EINVAL;
	set_text(records->rows[row].cause, cause);
	move(records, row, SL_RECORD_LOST);
	return 0;
}

static bool may_end(enum sl_record_state state)
{
	return state == SL_RECORD_LIVE || state == SL_RECORD_LOST;
}

int sl_record_recover(struct sl_record_table *records, unsigned int row, uint64_t epoch)
{
	uint64_t word = word_of(records, row);

	if (!may_end(state_in(word)))
		return -EBADFD;
	if (epoch > SL_EPOCH_MAX)
		return -EINVAL;
	if (epoch <= word >> EPOCH_SHIFT)
		return -ESTALE;
	store(records, row, SL_RECORD_LIVE, epoch, word & (SECOND_POLICY | FREEZE_ASKED));
	return 0;
}

int sl_record_end(struct sl_record_table *records, unsigned int row, enum sl_session_end end,
		  const char *reason)
{
	if (!may_end(sl_record_state(records, row)))
		return -EBADFD;
	if (!reason || !reason[0] || end >= SL_SESSION_END_MAX)
		return -EINVAL;
	set_text(records->rows[row].reason, reason);
	records->rows[row].end = end;
	move(records, row, SL_RECORD_ENDED);
	return 0;
}

int sl_record_forget(struct sl_record_table *records, unsigned int row)
{
	if (sl_record_state(records, row) != SL_RECORD_ENDED)
		return -EBADFD;
	release(records, row);
	return 0;
}

int sl_record_set_policy(struct sl_record_table *records, unsigned int row, const char *path,
			 const uint8_t sha256[SL_SHA256_LEN])
{
	uint64_t word = word_of(records, row), flags;
	struct sl_session_policy *policy;

	if (!may_end(state_in(word)))
		return -EBADFD;
	if (!fits(path, sizeof(policy->path)))
		return -EINVAL;
	/* The one that does not count: the word switches from old to new. */
	policy = &records->rows[row].policy[!(word & SECOND_POLICY)];
	strcpy(policy->path, path);
	memcpy(policy->sha256, sha256, SL_SHA256_LEN);
	flags = (word & (SECOND_POLICY | FREEZE_ASKED)) ^ SECOND_POLICY;
	store(records, row, state_in(word), word >> EPOCH_SHIFT, flags);
	return 0;
}

int sl_record_ask_freeze(struct sl_record_table *records, unsigned int row, bool freeze)
{
	uint64_t word = word_of(records, row);

	if (state_in(word) < SL_RECORD_LIVE)
		return -EBADFD;
	store(records, row, state_in(word), word >> EPOCH_SHIFT,
	      (word & SECOND_POLICY) | (freeze ? FREEZE_ASKED : 0));
	return 0;
}

int sl_record_copy(struct sl_record_copy *out, const struct sl_record_table *records,
		   unsigned int row)
{
	const struct sl_record *record = sl_record_at(records, row);

	if (!record)
		return -ENOENT;
	out->state = sl_record_state(records, row);
	out->epoch = sl_record_epoch(records, row);
	out->freeze_asked = sl_record_freeze_asked(records, row);
	out->record = *record;
	out->record.policy[0] = *sl_record_policy(records, row);
	memset(&out->record.policy[1], 0, sizeof(out->record.policy[1]));
	return 0;
}

bool sl_record_whole(const struct sl_record_copy *copy)
{
	const struct sl_record *record = &copy->record;

	return copy->state && copy->state < SL_RECORD_STATE_MAX && copy->epoch &&
	       copy->epoch <= SL_EPOCH_MAX && sane(&record->options) &&
	       fits(record->cgroup, sizeof(record->cgroup)) &&
	       fits(record->policy[0].path, sizeof(record->policy[0].path)) &&
	       (copy->state != SL_RECORD_LOST || fits(record->cause, sizeof(record->cause))) &&
	       (copy->state != SL_RECORD_ENDED ||
		(fits(record->reason, sizeof(record->reason)) && record->end < SL_SESSION_END_MAX));
}

int sl_record_restore(struct sl_record_table *records, const struct sl_record_copy *copy,
		      unsigned int *row)
{
	unsigned int found;
	int ret;

	if (!sl_record_whole(copy))
		return -EINVAL;
	ret = place(records, copy->record.key, copy->record.cgroup_id, &found);
	if (ret)
		return ret;
	records->rows[found] = copy->record;
	take(records, found, copy->state, copy->epoch, copy->freeze_asked ? FREEZE_ASKED : 0);
	*row = found;
	return 0;
}
