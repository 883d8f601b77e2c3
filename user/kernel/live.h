/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Proof that a set records: what is pinned is compared with what must be, and a canary
 * process makes a connection inside each sandbox whose record must appear. Needs nothing
 * but the pins: it works when whoever loaded the set is gone.
 *
 *	struct sl_live live; sl_live_check(&live, …); read it; sl_live_free(&live);
 *
 * Findings are conditions as in Kubernetes. FaultFree tells of records that were lost; all
 * other types are about being live, and make `live` false unless they are true.
 */
#ifndef SLUICE_USER_LIVE_H
#define SLUICE_USER_LIVE_H

#include <stdbool.h>

#include "base/array.h"
#include "kernel/set.h"

enum sl_condition_status {
	SL_CONDITION_UNKNOWN, /* could not be found out; the reason says why */
	SL_CONDITION_TRUE,
	SL_CONDITION_FALSE,
	SL_CONDITION_STATUS_MAX
};
extern const char *const sl_condition_status_words[SL_CONDITION_STATUS_MAX];

struct sl_condition {
	unsigned int sandbox; /* id; 0: of the set */
	const char *type;     /* "LinksAttached", …: static */
	enum sl_condition_status status;
	const char *reason; /* one word for programs: static */
	char message[256];  /* for people, the next step in it */
};

struct sl_live_sandbox {
	struct sl_sandbox row;
	__u64 processes;
	__u64 sockets; /* open ones */
	bool live;
};

struct sl_live_fault {
	const char *counter;
	__u64 value;
	const char *meaning;
	const char *advice; /* the limit to raise, or what to look at */
};

struct sl_live {
	bool attached;              /* there is a sandbox */
	bool live;                  /* all that is attached is proven to record */
	struct sl_array sandboxes;  /* struct sl_live_sandbox, by id */
	struct sl_array conditions; /* struct sl_condition */
	struct sl_array faults;     /* struct sl_live_fault; counters that aren't zero */
};

struct sl_live_options {
	bool no_canary; /* compare pins only */
	int timeout_ms; /* of each canary */
};

/*
 * Fills *live (initialised here; freed by the caller also after an error) for the set at
 * `dir`. That nothing is attached, or isn't live, is no error. -EPERM and others with err.
 */
int sl_live_check(struct sl_live *live, const char *dir, const struct sl_live_options *options,
		  struct sl_err *err);
void sl_live_free(struct sl_live *live);

/* Whom the next step is meant for. */
enum sl_live_advice {
	SL_LIVE_ATTACHED, /* a set that sandboxes were attached to */
	SL_LIVE_RUN,      /* one command's own */
	SL_LIVE_AGENT,    /* one command in an agent's set */
	SL_LIVE_ADVICE_MAX
};

/*
 * Adds a struct sl_live_fault for each counter of faults that isn't zero, of a sandbox, 0: of
 * all the set. -ENOMEM or -errno.
 */
int sl_live_faults(struct sl_set *set, unsigned int sandbox, enum sl_live_advice whom,
		   struct sl_array *faults);

#endif
