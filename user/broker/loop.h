/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker: answers the calls that seccomp listeners hold. It knows nothing of policy or
 * maps: those come in through struct sl_broker_ops.
 *
 *	sl_broker_new(&broker, &options, &err);
 *	sl_broker_add(broker, fd, tag, &err);	also those that the keeper handed on
 *	sl_broker_start(broker, &err);		first answers what a dead worker left
 *	sl_broker_add(…)			at any time, before the task is released
 *	sl_broker_tick(broker);			about once a second
 *	sl_broker_free(&broker);		waits for the decisions that run
 *
 * Threads. Each has a slot of the in-flight table and handles one call at a time, from RECV
 * to SEND; there is no queue, the kernel's list of pending calls is it. A listener has at
 * most `per_listener` calls in hand: reading a task's memory or files may hang for as long
 * as the workload likes (FUSE), and that must cost the others nothing. Threads are started
 * as they are needed, `threads` at most.
 *
 * After a call that went on at once (`at_once`) the thread stays with that listener for
 * linger_ms, unless no other would wait for the rest: a series of calls costs a poll, a RECV
 * and a SEND each.
 *
 * Overload. What exceeds these numbers waits in the kernel, killable and unmediated by
 * nothing: no door opens. With `deadline_ms`, a decision that takes longer is denied
 * (OVERDUE), and so are the calls behind it when all of a listener's are stuck (OVERLOAD).
 *
 * Groups. One sandbox may have several listeners, as each process that its runtime adds installs
 * a filter of its own: their tags differ in the bits of SL_BROKER_TAG_MEMBERS only. They are
 * drained and resumed together, and a drain is done when none of them has a call in hand.
 *
 * Locks: one mutex over listeners, threads and who has answered; never held over a
 * decision, a read of a task, or a callback.
 *
 * Outcomes: every call ends in exactly one kind (broker/races.h), by where the outcome came
 * from. A fault denies. An answer that the kernel doesn't want any more is a race.
 */
#ifndef SLUICE_USER_BROKER_LOOP_H
#define SLUICE_USER_BROKER_LOOP_H

#include "broker/call.h"
#include "broker/inflight.h"
#include "broker/races.h"

struct sl_broker;

#define SL_BROKER_TAG_MEMBERS (0xfffULL << 52)
#define SL_BROKER_TAG_MEMBER (1ULL << 52) /* from one of a group to the next */

static inline uint64_t sl_broker_group(uint64_t tag)
{
	return tag & ~SL_BROKER_TAG_MEMBERS;
}

/* All are called in the broker's threads, several at a time, and may be NULL but `held`. */
struct sl_broker_ops {
	/*
	 * Whether calls of this kind go on with nothing to be read, prepared or decided: then
	 * `held` is not called. Must not block. Not asked for SOCKET.
	 */
	bool (*at_once)(void *ctx, uint64_t tag, enum sl_call_kind kind);
	/*
	 * Decides. *answer is a denial with EACCES at the start; a call of kind SOCKET is
	 * denied whatever the answer. The call is the broker's, images included.
	 */
	void (*held)(void *ctx, const struct sl_call *call, struct sl_answer *answer);
	/* A fault, already counted. `code`: positive errno, 0 when there is none. */
	void (*fault)(void *ctx, enum sl_broker_kind kind, uint64_t tag, pid_t tid, int code);
	/* The last task of a listener has gone; its tag is free again. */
	void (*ended)(void *ctx, uint64_t tag);
	/* A group that drains has no more calls in hand. */
	void (*drained)(void *ctx, uint64_t group);
	/* A summary of races, from sl_broker_tick(). */
	void (*races)(void *ctx, const struct sl_race_line *line);
};

/* 0 is the default throughout. */
struct sl_broker_options {
	struct sl_broker_ops ops;
	void *ctx;
	struct sl_inflight *inflight;  /* the keeper's, borrowed; NULL: one of its own */
	unsigned int threads;          /* 32; one less than the in-flight table at most */
	unsigned int per_listener;     /* 8 */
	unsigned int deadline_ms;      /* none */
	unsigned int race_interval_ms; /* 60,000 */
	unsigned int linger_ms;        /* 100: how long a thread stays */
	bool quiet_wake;               /* no SYNC_WAKE_UP, for measuring */
};

/* -EPERM and its hint: this process can't read the tasks; found here, not call by call. */
int sl_broker_new(struct sl_broker **out, const struct sl_broker_options *options,
		  struct sl_err *err);
void sl_broker_free(struct sl_broker **broker);

/* Takes over `listener` on success. -EEXIST for a tag in use, -EBADF for no listener. */
int sl_broker_add(struct sl_broker *broker, int listener, uint64_t tag, struct sl_err *err);

int sl_broker_start(struct sl_broker *broker, struct sl_err *err);

/* Overdue decisions and the summary of races. */
void sl_broker_tick(struct sl_broker *broker);

/*
 * Before a sandbox is frozen: a task whose call was received does not freeze until it is
 * answered. Receives no more calls of this tag's group, waits up to timeout_ms for those in
 * hand, denies the rest with `code`. Calls that come meanwhile wait unreceived, which
 * freezes well, until sl_broker_resume(). Returns how many were denied, or -ENOENT.
 */
int sl_broker_drain(struct sl_broker *broker, uint64_t tag, unsigned int timeout_ms, int code);
/*
 * The same for who can't wait: receives no more and returns how many are in hand, or
 * -ENOENT. When there are some, ops.drained follows, maybe more than once; who has waited for it
 * long enough calls sl_broker_drain() with no time.
 */
int sl_broker_drain_begin(struct sl_broker *broker, uint64_t tag);
int sl_broker_resume(struct sl_broker *broker, uint64_t tag);

uint64_t sl_broker_count(const struct sl_broker *broker, enum sl_broker_kind kind);
/* Calls in hand, all listeners. */
unsigned int sl_broker_running(struct sl_broker *broker);

#endif
