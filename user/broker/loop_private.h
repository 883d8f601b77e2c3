/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of the broker, shared by its files. */
#ifndef SLUICE_USER_BROKER_LOOP_PRIVATE_H
#define SLUICE_USER_BROKER_LOOP_PRIVATE_H

#include <pthread.h>

#include "broker/loop.h"

/* Lives until its last task has gone and no call of it is in hand. */
struct listener {
	struct listener *next;
	int fd;
	uint64_t tag;
	unsigned int running; /* calls in hand, from before RECV */
	/*
	 * One thread at a time has an event of a listener in hand, up to the end of its RECV:
	 * a second RECV for the same event would block, and the first might free this struct.
	 * It keeps it while it waits for the next one in linger().
	 * EPOLLONESHOT gives one event for each arming, so nobody arms while `armed` (epoll
	 * will report, or has reported and nobody has taken it up) or `receiving`.
	 */
	enum { ARM_NONE, ARM_END, ARM_CALLS } armed; /* END: only the end is reported */
	bool receiving;
	bool draining;
	bool gone; /* not in the list any more */
};

struct worker {
	struct sl_broker *broker;
	struct sl_inflight_slot *slot;
	pthread_t thread;
	bool started;
	/* Under the broker's lock, while a call is in hand. */
	struct listener *listener;
	uint64_t id; /* 0: not received yet */
	int64_t since_ms;
	bool answered;
	struct sl_call call;
};

struct sl_broker {
	struct sl_broker_options options;
	struct sl_inflight *own; /* when the table is not the keeper's */
	struct sl_inflight *inflight;
	struct sl_inflight_slot *spare; /* sl_broker_tick()'s own */
	struct sl_races races;
	int64_t told_ms;
	int epoll, stop;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t done; /* a call is out of hand */
	struct listener *listeners;
	unsigned int idle; /* threads that wait for calls */
	unsigned int threads;
	struct worker *workers[]; /* options.threads, NULL: not started */
};

/* With the lock held. */
struct listener *sl_listener_find(struct sl_broker *b, uint64_t tag);
/* The next one of the group after `l`, NULL: the first one. */
struct listener *sl_listener_next(struct sl_broker *b, struct listener *l, uint64_t tag);
/* Calls in hand of its group. */
unsigned int sl_listener_running(struct sl_broker *b, uint64_t tag);
void sl_listener_arm(struct sl_broker *b, struct listener *l);

/* Whose last call is out of hand, and which is in no list. */
void sl_listener_free(struct listener *l);

/* One thread at least is to wait for any listener while others decide, or wait for one. */
void sl_broker_keep_one_idle(struct sl_broker *b);

/* A thread's main; `arg` is its struct worker. */
void *sl_broker_thread(void *arg);

void sl_broker_fault(struct sl_broker *b, enum sl_broker_kind kind, uint64_t tag, pid_t tid,
		     int code);

/* A call that the last worker process left, whose listener is no more: a race, or a fault. */
void sl_broker_orphan(struct sl_broker *b, const struct sl_inflight_slot *slot);

/* What became of an answer that was meant as `kind`, by what SEND returned. */
enum sl_broker_kind sl_broker_kind_of(enum sl_broker_kind kind, int sent);

/* Counts and tells it. */
void sl_broker_outcome(struct sl_broker *b, enum sl_broker_kind kind, int sent, uint64_t tag,
		       pid_t tid);

/* Answers the call in the worker's slot if it goes on without a look; false: it does not. */
bool sl_worker_at_once(struct worker *w);

/* Reads, decides and answers it. */
void sl_worker_handle(struct worker *w);

#endif
