/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A policy on its way into a sandbox's guard: read, checked, its names looked up, loaded
 * whole or not at all; and, for who stays with it, its names looked up again and the files
 * of held calls prepared.
 *
 *	sl_apply_open(&apply, &options, &err);	refuses what the holder can't do
 *	sl_apply_resolve(apply, &err);		may take long
 *	sl_apply_load(apply, set, sandbox, mode, &policy_id, &err);
 *	sl_apply_refresh(apply, &err);		every SL_NAMES_REFRESH_MS, if there are names
 *	sl_apply_free(&apply);			what is loaded stays in force
 *
 * Where nobody stays (SL_GUARD_HOLDS_NOTHING), policies that need held calls (wildcards
 * within a path, pinned digests) are refused: they would deny what they mean to allow, and
 * nobody would be there to look at the files.
 *
 * Files may be used by several threads, and while names are refreshed; all else is for one
 * thread at a time.
 */
#ifndef SLUICE_USER_GUARD_APPLY_H
#define SLUICE_USER_GUARD_APPLY_H

#include "guard/files.h"
#include "guard/guard.h"
#include "policy/policy.h"

struct sl_apply;

struct sl_apply_options {
	const char *file; /* is read, or what messages call the text */
	const char *text; /* NULL: the file's */
	size_t len;
	enum sl_guard_holder holder;
	bool quiet; /* says nothing of what it leaves alone, nor of names */
	/* Policy DNS tells the guard the addresses of names: none are looked up here. */
	bool names_by_dns;
	bool own_netns; /* all of loopback is the sandbox's own */
	bool inspects;  /* a proxy looks into requests (policy.h) */
	bool relayed;   /* names get synthetic addresses (policy.h) */
	/*
	 * Called by load when all is ready but not in force, with the files if there are some.
	 * From then on both the policy before and this one may be asked. An error ends the load.
	 * May be NULL.
	 */
	int (*ready)(void *arg, __u32 policy_id, struct sl_err *err);
	void *arg;
};

int sl_apply_open(struct sl_apply **out, const struct sl_apply_options *options,
		  struct sl_err *err);
void sl_apply_free(struct sl_apply **apply);

/* Looks the names up. That some have no address is said, and no error. */
int sl_apply_resolve(struct sl_apply *apply, struct sl_err *err);

/*
 * `mode` SL_GUARD_MODE_MAX: as it was under the policy before, or as the file says if there
 * was none. Callers hold the sandbox against others (sl_shared_lock). The set is borrowed
 * from here on by who stays.
 */
int sl_apply_load(struct sl_apply *apply, struct sl_set *set, unsigned int sandbox,
		  enum sl_guard_mode mode, __u32 *policy_id, struct sl_err *err);

/* In place of load: it is in force already, loaded by a process that is dead. */
int sl_apply_adopt(struct sl_apply *apply, struct sl_set *set, unsigned int sandbox,
		   __u32 policy_id, struct sl_err *err);

/* Looks the names up again and tells the guard what has changed. After load. */
int sl_apply_refresh(struct sl_apply *apply, struct sl_err *err);

/* Whether there are names to be refreshed. */
bool sl_apply_has_names(const struct sl_apply *apply);

/* Whether a rule has a name or a pattern of names: something for policy DNS to tell. */
bool sl_apply_wants_dns(const struct sl_apply *apply);

/* Whether it has what only user space can match: then calls are to be held. */
bool sl_apply_needs_files(const struct sl_apply *apply);

/* Whether it has strict binaries, for which nobody may trace anybody. */
bool sl_apply_strict(const struct sl_apply *apply);

/* What held calls are looked at by, after load; NULL when the kernel can match all by itself. */
struct sl_files *sl_apply_files(const struct sl_apply *apply);

const struct sl_policy *sl_apply_policy(const struct sl_apply *apply);

/* The compiled policy, which a refresh changes: locked from here until unlock. */
struct sl_compiled *sl_apply_lock(struct sl_apply *apply);
void sl_apply_unlock(struct sl_apply *apply);

#endif
