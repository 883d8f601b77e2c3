/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From records of the ring buffer to events for users: lines of JSON or text, and a
 * callback. Keeps the tables of processes, executables and lineages that this needs.
 *
 *	sl_event_stream_new(); sl_event_stream_seed();
 *	loop:	sl_ring_drain() with sl_event_stream_feed();
 *		sl_event_stream_lost() when sl_ring_lost() says so;
 *		sl_event_stream_pump(); sl_event_stream_flush() before a sleep;
 *		sleep on sl_event_stream_fd() too, for as long as pump() said at most
 *	end:	sl_event_stream_finish(); sl_event_stream_free()
 *
 * Digests: an `exec` or `close` whose executable is being hashed waits for the answer, and
 * all that follows waits behind it (event/hold.h); after SL_HOLD_MS it goes out with
 * sha256_error "pending". Not locked; what is passed in is borrowed and must outlive it.
 */
#ifndef SLUICE_USER_STREAM_H
#define SLUICE_USER_STREAM_H

#include "event/view_event.h"
#include "identity/proc_table.h"
#include "kernel/sweep.h"

/* Where rows come from: the kernel's maps, or a test's. */
struct sl_event_ops {
	struct sl_view_ops view;
	int (*procs_each)(void *ctx, int (*fn)(const struct sl_process *process, void *arg),
			  void *arg);
	void *ctx;
};

struct sl_event_ops sl_event_ops_of_set(struct sl_set *set);

/* The view is valid during the call only. */
typedef void (*sl_event_fn)(const struct sl_view_event *event, void *arg);

struct sl_event_stream_options {
	FILE *json;           /* lines of JSON; may be NULL */
	FILE *text;           /* lines of text; may be NULL */
	bool ocsf;            /* decisions alone, as OCSF has them, are the lines of JSON */
	unsigned int width;   /* of a line of text; 0: no limit */
	unsigned int kinds;   /* SL_EVENT_BIT of what is reported; 0: all */
	unsigned int sandbox; /* only this one's; 0: all */
	uint64_t max;         /* events reported in all; 0: no limit */
	bool digests;
	sl_event_fn fn; /* may be NULL */
	void *arg;
};

struct sl_event_stream;

/* -ENOMEM, or what starting the digest store returned. The caller owns *out. */
int sl_event_stream_new(struct sl_event_stream **out, const struct sl_event_ops *ops,
			const struct sl_event_stream_options *options);
void sl_event_stream_free(struct sl_event_stream **stream);

/* SL_EVENT_BIT of the kinds it has to be fed: reported ones and those tables need. */
unsigned int sl_event_stream_wanted(const struct sl_event_stream *stream);

/* Fills the tables from the kernel's maps. 0 or -errno of reading them. */
int sl_event_stream_seed(struct sl_event_stream *stream);

/* Takes one record; `stream` is a struct sl_event_stream *, so that it is a sl_ring_fn. */
void sl_event_stream_feed(const struct sl_event *event, void *stream);

/* A socket whose close no event told (sl_packets_sweep): as a close event of now. */
void sl_event_stream_closed(struct sl_event_stream *stream, const struct sl_sock *sock);

/*
 * Calls `fn` with the ids that each event refers to which waits for its turn: their rows
 * are still needed. Ends with the first that is not 0, and returns that.
 */
int sl_event_stream_refs(const struct sl_event_stream *stream, sl_ref_fn fn, void *arg);

/* Whether events wait for their turn. */
bool sl_event_stream_holds(const struct sl_event_stream *stream);

/* Reports a loss, and fills the tables anew. */
void sl_event_stream_lost(struct sl_event_stream *stream, unsigned long long count,
			  const unsigned long long by_kind[SL_EVENT_KIND_MAX]);

/* Readable when digests have come. Borrowed; -1 without digests. */
int sl_event_stream_fd(const struct sl_event_stream *stream);

/* Reports what need not wait any longer. Milliseconds until it is due again, -1: never. */
int sl_event_stream_pump(struct sl_event_stream *stream);

/* Writes out what is buffered. 0, or -errno of the first write that failed. */
int sl_event_stream_flush(struct sl_event_stream *stream);

/* Waits for digests still to come, SL_HOLD_MS at most, reports the rest, flushes. */
int sl_event_stream_finish(struct sl_event_stream *stream);

/* Whether `max` is reached. */
bool sl_event_stream_done(const struct sl_event_stream *stream);

struct sl_event_stream_stats {
	uint64_t reported;
	uint64_t dropped; /* for want of memory: never for want of time */
	uint64_t lost;
};

void sl_event_stream_stats(const struct sl_event_stream *stream, struct sl_event_stream_stats *out);

/* Borrowed; for processes beside those of events. */
const struct sl_proc_table *sl_event_stream_procs(const struct sl_event_stream *stream);

#endif
