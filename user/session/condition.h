/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is to be known of a sandbox, as conditions are in Kubernetes: one for each type, with
 * a status, a reason (a word for programs), a message (for people), and since when.
 *
 *	news = sl_conditions_report(&conditions, &report, now_ns);
 *	if (news > SL_CONDITION_SAME) log it, tell watchers, store it
 *
 * Rules
 * 1. Equal reports (type, status, reason) are one condition with a count; the message is
 *    that of the last. `since` is the last change of the status.
 * 2. Reports of a type that are bad one after the other escalate, whatever their reasons: the
 *    level rises after SL_CONDITION_WARN and SL_CONDITION_ERROR of them, and is reset by one
 *    that is not. Each step is news once, the rest is counted only.
 * 3. SL_CONDITIONS_MAX types at most. One more takes the place of the type that was good for
 *    the longest time; when all are bad it is left out and counted in `dropped`.
 * 4. Texts may be a client's or a workload's: bounded when stored, valid UTF-8, and escaped
 *    by the fields' printer (base/object.h). All is held by value and without pointers.
 * 5. Times are CLOCK_REALTIME nanoseconds: they have to mean something after a reboot.
 */
#ifndef SLUICE_USER_SESSION_CONDITION_H
#define SLUICE_USER_SESSION_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "base/format.h"
#include "base/object.h"

#define SL_CONDITIONS_MAX 16
#define SL_CONDITION_WORD 64     /* bytes of a type or reason, with terminator */
#define SL_CONDITION_MESSAGE 512 /* bytes of a message, with terminator; cut to that */
#define SL_CONDITION_WARN 10     /* bad reports in a row: a warning */
#define SL_CONDITION_ERROR 100   /* an error */

enum sl_condition_status {
	SL_CONDITION_UNKNOWN,
	SL_CONDITION_TRUE,
	SL_CONDITION_FALSE,
	SL_CONDITION_STATUS_MAX
};

enum sl_condition_level {
	SL_CONDITION_LEVEL_GOOD,
	SL_CONDITION_LEVEL_NOTICE,
	SL_CONDITION_LEVEL_WARNING,
	SL_CONDITION_LEVEL_ERROR,
	SL_CONDITION_LEVEL_MAX
};

extern const char *const sl_condition_status_names[SL_CONDITION_STATUS_MAX];
extern const char *const sl_condition_level_names[SL_CONDITION_LEVEL_MAX];

struct sl_condition {
	char type[SL_CONDITION_WORD];
	char reason[SL_CONDITION_WORD];
	char message[SL_CONDITION_MESSAGE];
	enum sl_condition_status status;
	uint64_t count; /* equal reports */
	uint64_t bad;   /* bad reports in a row */
	uint64_t since_ns, last_ns;
};

struct sl_conditions {
	struct sl_condition list[SL_CONDITIONS_MAX];
	uint32_t count;
	uint64_t dropped;
	/* Why the sandbox last came to an end, and when; "" and 0: it has not. */
	char terminal[SL_CONDITION_MESSAGE];
	uint64_t terminal_ns;
};

struct sl_condition_report {
	const char *type, *reason; /* a letter, then letters and digits */
	const char *message;       /* any bytes; NULL is none */
	enum sl_condition_status status;
	bool bad; /* not as it should be: True is good of some types and bad of others */
};

enum sl_condition_news {
	SL_CONDITION_SAME,
	SL_CONDITION_CHANGED, /* new, or another status or reason */
	SL_CONDITION_RAISED,  /* the level is higher now */
};

/* News (>= 0), -EINVAL for words that are none, -ENOSPC by rule 3. */
int sl_conditions_report(struct sl_conditions *conditions, const struct sl_condition_report *report,
			 uint64_t now_ns);

/* NULL: no report of that type. */
const struct sl_condition *sl_conditions_find(const struct sl_conditions *conditions,
					      const char *type);

/* The last terminal reason; stays until the next. -EINVAL: there is no end without a reason. */
int sl_conditions_end(struct sl_conditions *conditions, const char *reason, uint64_t now_ns);

enum sl_condition_level sl_condition_level(const struct sl_condition *condition);

/* For printing. */
struct sl_condition_view {
	struct sl_condition condition;
	const char *level;
	char since[SL_FORMAT_MAX], last[SL_FORMAT_MAX];
};
extern const struct sl_field sl_condition_fields[];
void sl_condition_view(struct sl_condition_view *out, const struct sl_condition *condition);

/*
 * All of it as one object, and back. Reading is strict: -EBADMSG for anything that
 * the writer would not have written, and *out is untouched. -ENOMEM.
 */
int sl_conditions_json(struct json_object **out, const struct sl_conditions *conditions);
int sl_conditions_read(struct sl_conditions *out, struct json_object *json);

#endif
