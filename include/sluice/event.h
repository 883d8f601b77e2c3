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
	X(DECISION, "decision")

enum sl_event_kind {
#define X(name, text) SL_EVENT_##name,
	SL_EVENT_KINDS(X)
#undef X
		SL_EVENT_KIND_MAX
};

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
 */
struct sl_event_sock {
	struct sl_event head;
	struct sl_sock sock;
	struct sl_sock_more more;
};
#define SL_EVENT_SOCK_MIN offsetof(struct sl_event_sock, more)

/* DECISION. */
struct sl_event_decision {
	struct sl_event head;
	struct sl_decision_record decision;
};

/*
 * Map `ring_ctl`, one element, mmapable. The consumer sets `idle` before it sleeps and
 * looks once more; the producer that finds it set clears it and wakes the consumer. A
 * producer that finds more than sl_config.wake_bytes unread wakes it once a drain.
 */
struct sl_ring_ctl {
	__u32 idle;
	__u32 woken;  /* a wake-up for want of room was sent; cleared by the consumer */
	__u32 resync; /* set when an event was lost; cleared by the consumer */
	__u32 pad;
};

#endif
