/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy of one `sluice run`: read before anything is made, put into the guard before
 * the command starts, its names refreshed while it runs.
 *
 *	sl_enforce_open(&enforce, &options, &err);	NULL policy file: observes
 *	sl_enforce_start(enforce, set, sandbox, &err);	or sl_enforce_borrow(): the agent's
 *	sl_enforce_advise as a sl_advise_fn
 *	sl_enforce_free(&enforce);
 */
#ifndef SLUICE_USER_RUN_ENFORCE_H
#define SLUICE_USER_RUN_ENFORCE_H

#include "event/view_event.h"
#include "guard/files.h"
#include "run/advice.h"
#include "run/reach.h"

struct sl_enforce;

/* Which calls wait for user space. */
enum sl_run_hold {
	SL_RUN_HOLD_AUTO,    /* exec, if the policy has what only user space can match */
	SL_RUN_HOLD_EXEC,    /* every exec */
	SL_RUN_HOLD_CONNECT, /* connect(); sends and listen() too, if the policy has such things */
};

struct sl_enforce_options {
	const char *file;
	const char *text; /* NULL: the file's; borrowed while it is opened */
	size_t len;
	enum sl_guard_mode mode; /* SL_GUARD_MODE_MAX: as the file says */
	enum sl_run_hold hold;
	struct sl_reach *reach; /* borrowed */
};

int sl_enforce_open(struct sl_enforce **out, const struct sl_enforce_options *options,
		    struct sl_err *err);
void sl_enforce_free(struct sl_enforce **enforce);

/* Loads the guard and serves or looks up the names; from here on it decides. */
int sl_enforce_start(struct sl_enforce *enforce, struct sl_set *set, unsigned int sandbox,
		     struct sl_err *err);

/* In place of start: the agent has loaded it; this one only advises. */
void sl_enforce_borrow(struct sl_enforce *enforce, struct sl_set *set);

/* enum sl_hold, or-ed. */
unsigned int sl_enforce_holds(const struct sl_enforce *enforce);

/* The same of a policy that has, or has not, what only user space can match. */
unsigned int sl_run_holds(enum sl_run_hold hold, bool needs_files);
/* What a policy may ask for under such a filter. */
enum sl_guard_holder sl_run_holder(enum sl_run_hold hold);

/* What held calls are looked at by; NULL when the kernel can match all by itself. */
struct sl_files *sl_enforce_files(const struct sl_enforce *enforce);

/* Whether there is something that held calls have to be looked at for. */
bool sl_enforce_needs_files(const struct sl_enforce *enforce);

/* Whether the policy has strict binaries, for which nobody may trace anybody. */
bool sl_enforce_strict(const struct sl_enforce *enforce);

enum sl_guard_mode sl_enforce_mode(const struct sl_enforce *enforce);

/*
 * What of the policy goes with a denial: rule and set_dir of *advice. An sl_advise_fn whose
 * arg is a struct sl_enforce *.
 */
void sl_enforce_advise(struct sl_advice *advice, const struct sl_view_event *event, void *enforce);

#endif
