/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the broker counts, by the class of the outcome, and races told as one line a kind
 * and interval at most. Safe from several threads.
 */
#ifndef SLUICE_USER_BROKER_RACES_H
#define SLUICE_USER_BROKER_RACES_H

#include <stdatomic.h>
#include <stdint.h>

enum sl_outcome {
	SL_OUTCOME_FLOW, /* no end of a call; for conservation */
	SL_OUTCOME_DECISION,
	SL_OUTCOME_APPLICATION, /* the kernel's own answer, which the program earned */
	SL_OUTCOME_RACE,        /* expected, harmless */
	SL_OUTCOME_FAULT,       /* somebody should act */
	SL_OUTCOME_MAX
};

/*
 * X(NAME, class, "name", "what it means"). Each call that was received ends in exactly one
 * of the kinds that are not FLOW and not marked "also".
 */
#define SL_BROKER_KINDS(X)                                                                       \
	X(RECEIVED, FLOW, "received", "calls received")                                          \
	X(RECOVERED, FLOW, "recovered", "calls of a worker that died, handled by the next")      \
	X(LISTENER_ADDED, FLOW, "listener_added", "listeners taken over")                        \
	X(LISTENER_ENDED, FLOW, "listener_ended", "listeners whose last task has gone")          \
	X(CONTINUED, DECISION, "continued", "calls that went on")                                \
	X(DENIED, DECISION, "denied", "calls that were denied")                                  \
	X(OVERDUE, DECISION, "overdue", "calls denied because the decision took too long")       \
	X(OVERLOAD, DECISION, "overload", "calls denied because decisions before them hang")     \
	X(DRAINED, DECISION, "drained", "calls denied because the sandbox was to be frozen")     \
	X(ABSENT, APPLICATION, "absent", "files to execute that are not there")                  \
	X(UNRESOLVED, APPLICATION, "unresolved", "files to execute that can't be opened")        \
	X(BAD_ARGUMENT, APPLICATION, "bad_argument", "arguments that the kernel refuses itself") \
	X(GONE_RECEIVE, RACE, "gone_receive", "also: targets gone before the call was received") \
	X(GONE_READ, RACE, "gone_read", "targets gone while their arguments were read")          \
	X(GONE_ANSWER, RACE, "gone_answer", "targets gone before they were answered")            \
	X(ANSWERED, RACE, "answered", "calls that had an answer already")                        \
	X(ACCESS, FAULT, "access", "tasks that can't be read for want of privilege")             \
	X(RESOURCES, FAULT, "resources", "no memory, descriptor or thread")                      \
	X(RECEIVE, FAULT, "receive", "also: listeners lost because a call can't be received")    \
	X(ANSWER, FAULT, "answer", "calls that can't be answered")                               \
	X(NO_THREAD, FAULT, "no_thread", "also: threads that could not be started")              \
	X(FOREIGN, FAULT, "foreign", "calls that no filter of this program holds")               \
	X(ORPHAN, FAULT, "orphan", "unanswered calls whose listener is lost")

enum sl_broker_kind {
#define X(name, class, text, help) SL_BROKER_##name,
	SL_BROKER_KINDS(X)
#undef X
		SL_BROKER_KIND_MAX
};

const char *sl_broker_kind_name(enum sl_broker_kind kind);
const char *sl_broker_kind_help(enum sl_broker_kind kind);
enum sl_outcome sl_broker_kind_class(enum sl_broker_kind kind);

/* Races of one kind since the last line. */
struct sl_race_line {
	enum sl_broker_kind kind;
	uint64_t count;
	uint64_t first_ns; /* CLOCK_BOOTTIME */
	uint64_t last_ns;
};

struct sl_races {
	atomic_ullong total[SL_BROKER_KIND_MAX];
	struct {
		atomic_ullong told; /* of the total */
		atomic_ullong first_ns, last_ns;
	} races[SL_BROKER_KIND_MAX];
};

/* Counts one outcome. */
void sl_races_count(struct sl_races *races, enum sl_broker_kind kind);

/* Calls `line` for each kind of race that was counted since the last call. */
void sl_races_tell(struct sl_races *races, void (*line)(void *ctx, const struct sl_race_line *line),
		   void *ctx);

#endif
