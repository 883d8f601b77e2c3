/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One event as users see it, and its two forms: a line of JSON and a line of text. */
#ifndef SLUICE_USER_VIEW_EVENT_H
#define SLUICE_USER_VIEW_EVENT_H

#include <sluice/event.h>

#include "event/line.h"
#include "event/view_decision.h"
#include "socket/sock_view.h"

/* Word of a kind; NULL for a number that is none. */
const char *sl_event_kind_name(unsigned int kind);

/* Kinds whose record is a struct sl_event_process, and a struct sl_event_sock. */
#define SL_EVENT_PROCESS_KINDS                                        \
	(SL_EVENT_BIT(SL_EVENT_ENTER) | SL_EVENT_BIT(SL_EVENT_FORK) | \
	 SL_EVENT_BIT(SL_EVENT_EXEC) | SL_EVENT_BIT(SL_EVENT_EXIT))
#define SL_EVENT_SOCK_KINDS                       \
	(SL_EVENT_ALL & ~SL_EVENT_PROCESS_KINDS & \
	 ~(SL_EVENT_BIT(SL_EVENT_NONE) | SL_EVENT_BIT(SL_EVENT_DECISION)))

/* Bytes that a record of this kind has at least; 0 for a kind that has none. */
size_t sl_event_size_min(unsigned int kind);

/* Whom an event is about. `event` is a whole record. */
unsigned int sl_event_sandbox(const struct sl_event *event);
unsigned int sl_event_exe(const struct sl_event *event);

/* Events the kernel side dropped for want of room. */
struct sl_view_lost {
	__u64 count;
	__u64 by_kind[SL_EVENT_KIND_MAX];
};

struct sl_view_event {
	const char *event;       /* its word: a kind's, or "lost" */
	enum sl_event_kind kind; /* SL_EVENT_NONE: lost */
	__u64 time_ns;
	const struct sl_view_sock *sock;         /* of the kinds of sockets, else NULL */
	const struct sl_view_process *process;   /* of both kinds; NULL when lost */
	const struct sl_view_decision *decision; /* of the kind, else NULL */
	const struct sl_view_lost *lost;
	/* EXIT only: */
	int exit_code;   /* of exit(2), -1 when a signal ended it */
	char signal[16]; /* "SIGKILL", "" when none did */
	__u64 lifetime_us;
};

/* Storage of the parts that an event points to. */
struct sl_view_event_parts {
	struct sl_view_decision decision;
	struct sl_view_sock sock;
	struct sl_view_process process;
};

/*
 * Fills *view and, of *parts, what it points to. `event` is a whole record of the ring,
 * or sluice's own copy. -EINVAL for another, -ENOMEM.
 */
int sl_view_event_fill(struct sl_view_event *view, struct sl_view_event_parts *parts,
		       const struct sl_event *event, struct sl_view_source *source);

/* One object, one line. 0, or -errno when writing failed. */
int sl_view_event_json(struct sl_line *line, const struct sl_view_event *view);

/* One line for people, at most `width` columns if that is possible; 0: no limit. */
int sl_view_event_text(FILE *file, const struct sl_view_event *view, unsigned int width);

/* Tables of the parts of a line, each ends with { 0 }; for tests. */
extern const struct sl_field sl_view_event_head_fields[];
extern const struct sl_field sl_view_event_process_fields[];
extern const struct sl_field sl_view_event_owner_fields[];
extern const struct sl_field sl_view_event_lost_fields[];

#endif
