/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of one broker test: a broker with trivial callbacks, and children whose calls
 * it holds. held_up(), held_run(), held_wait(), compare, held_down(). Nothing here returns
 * an error: what can't be made fails the test.
 */
#ifndef SLUICE_SYSTEM_HELD_H
#define SLUICE_SYSTEM_HELD_H

#include <stdatomic.h>
#include <sys/types.h>

#include "broker/filter.h"
#include "broker/loop.h"

struct held {
	struct sl_broker *broker;
	bool started;
	bool at_once; /* calls go on without `decide` */
	atomic_uint decided, faults, ended, lines;
	/* Called in the broker's threads; NULL: the call goes on. */
	void (*decide)(const struct sl_call *call, struct sl_answer *answer);
};

extern struct held held;
extern const struct sl_filter_options hold_exec, hold_connect;

/* `options` may be NULL; its ops are set here. */
void held_up(const struct sl_broker_options *options);
void held_down(void);
/* Starts the broker's threads; held_run() does it. */
void held_start(void);

/*
 * Forks a child that runs fn(arg) under a filter and exits with what it returns. The first
 * child of a test is forked before there are threads: only that one may have threads or
 * allocate, since a lock of an allocator may be held at the fork of the others.
 */
pid_t held_run(uint64_t tag, const struct sl_filter_options *options, int (*fn)(void *arg),
	       void *arg);
/* Its exit code, or 128 + signal. */
int held_wait(pid_t pid);
/* Both. */
int held_call(const struct sl_filter_options *options, int (*fn)(void *arg), void *arg);

uint64_t held_count(enum sl_broker_kind kind);
/* Every call that was received has one outcome, and none is a fault. */
void held_balance(void);

/* Memory shared with children, zeroed. */
void *held_share(size_t size);

/* What the parts of a test tell each other; a test that uses it shares it first. */
struct held_marks {
	atomic_uint go, ack, alarms, calls;
	unsigned int port;
};

extern struct held_marks *marks;

/* A listening socket on 127.0.0.1, its port, and how many connections wait there. */
int held_server(unsigned int *port);
unsigned int held_accepted(int server);
/* connect() to that port on a new socket; 0 or errno. */
int held_connect(unsigned int port);

/* For held_run(): the same to marks->port. */
int held_port_connect(void *arg);

/* Waits for a number to be reached, a minute at most. */
bool held_reached(atomic_uint *number, unsigned int want);

#endif
