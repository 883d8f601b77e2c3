/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of the ring buffer. */
#ifndef SLUICE_EVENT_H
#define SLUICE_EVENT_H

#include <stddef.h>

#include <sluice/abi.h>
#include <sluice/guard.h>
#include <sluice/process.h>
#include <sluice/sock.h>

/* X(NAME, "name"): NAME makes SL_EVENT_NAME, "name" is what JSON and counters say. */
#define SL_EVENT_KINDS(X)             \
	X(NONE, "none")               \
	X(ENTER, "enter")             \
	X(FORK, "fork")               \
	X(EXEC, "exec")               \
	X(EXIT, "exit")               \
	X(OPEN, "open")               \
	X(CONNECT, "connect")         \
	X(SEND, "send")               \
	X(LISTEN, "listen")           \
	X(ESTABLISHED, "established") \
	X(ACCEPT, "accept")           \
	X(CLOSE, "close")             \
	X(DECISION, "decision")       \
	X(REQUEST, "request")         \
	X(UNREACHABLE, "unreachable")

enum sl_event_kind {
#define X(name, text) SL_EVENT_##name,
	SL_EVENT_KINDS(X)
#undef X
		SL_EVENT_KIND_MAX
};

/* A power of two, so that programs can mask an index. */
#define SL_RING_KINDS 16
_Static_assert(SL_EVENT_KIND_MAX <= SL_RING_KINDS, "a place for each kind");

#define SL_EVENT_BIT(kind) (1U << (kind))
#define SL_EVENT_ALL (SL_EVENT_BIT(SL_EVENT_KIND_MAX) - 1)

struct sl_event {
	__u16 schema; /* SL_SCHEMA */
	__u16 kind;   /* enum sl_event_kind */
	__u32 size;   /* of the whole record, bytes */
	__u64 time_ns;
};

/* ENTER (became a member), FORK, EXEC, EXIT. */
struct sl_event_process {
	struct sl_event head;
	struct sl_process process;
	__s32 exit_code; /* as wait(2) has it; EXIT only */
	__u32 old_pid;   /* tid that called execve; EXEC only */
};

/*
 * OPEN, CONNECT, SEND, LISTEN, ESTABLISHED, ACCEPT, CLOSE. Without SL_SOCK_MORE the record
 * ends before `more`.
 *
 * REQUEST: a relay's explicit proxy was asked for `more.original` (its address is zero where it
 * was asked for a name). UNREACHABLE: a relay could not make the connection for which the socket
 * is: `sock.remote` is what was dialled, with `sock.error`, `more.original` what was asked for.
 */
struct sl_event_sock {
	struct sl_event head;
	struct sl_sock sock;
	struct sl_sock_more more;
};
#define SL_EVENT_SOCK_MIN offsetof(struct sl_event_sock, more)

/* What user space gives program on_adopted, once it has given a socket a record. */
struct sl_adopted {
	__u32 sandbox;
};

/* What user space gives program on_relayed: what has become of a client of a relay. */
struct sl_relayed {
	struct sl_sock sock; /* as it is told; without one only `counter` counts */
	struct sl_sock_more more;
	__u32 sandbox;
	__u32 kind;    /* enum sl_event_kind: REQUEST, which is noted in the record; UNREACHABLE */
	__u32 counter; /* enum sl_counter, goes up by one; SL_COUNTER_MAX: none does */
	__u32 pad;
};

/* DECISION. */
struct sl_event_decision {
	struct sl_event head;
	struct sl_decision_record decision;
};

/*
 * Map `ring_ctl`, mmapable, one element a ring: 0 is the set's, that of a sandbox is its own
 * ring's (map `rings`), if it has one. The consumer sets `idle` before it sleeps and looks
 * once more; the producer that finds it set clears it and wakes the consumer. A producer that
 * finds much unread (`wake_bytes`; of the set's ring sl_config.wake_bytes) wakes it once a
 * drain.
 */
struct sl_ring_ctl {
	__u32 idle;
	__u32 woken;      /* a wake-up for want of room was sent; cleared by the consumer */
	__u32 resync;     /* set when an event was lost; cleared by the consumer */
	__u32 busy;       /* the consumer may have in hand what it has not reported yet */
	__u32 own;        /* the sandbox's events go to its own ring; of element 0: no meaning */
	__u32 events;     /* of an own ring: SL_EVENT_BIT of the kinds that are wanted */
	__u64 wake_bytes; /* of an own ring */
	__u64 seen_ns;    /* what came before is reported; the consumer's */
	/* Found no room, by kind; only what this ring would have got. */
	__u64 lost[SL_RING_KINDS];
	__u64 pad[3]; /* consumers share no cache line */
};
_Static_assert(sizeof(struct sl_ring_ctl) % 64 == 0, "whole cache lines");

#endif
