/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The in-kernel guard of one sandbox: a compiled policy put into the set's maps and switched
 * on (sluice/guard.h).
 *
 *	sl_guard_load(set, sandbox, compiled, &options, &policy, &err);
 *	sl_guard_lease(set, policy, compiled, &addr, SL_ADDR_REAL, names, n, &err);	for names
 *	sl_guard_mode(set, sandbox, SL_GUARD_FROZEN, &err);
 *	sl_guard_forget(set, sandbox);					after detaching
 *
 * A policy is loaded under an id of its own, beside the one in force, and switched to by one
 * store: whole or not at all. The one before stays until the next load, because a program
 * that has read its id may still be looking things up. Callers serialise what they do to one
 * sandbox. What is loaded outlives the process, as all of the set does.
 */
#ifndef SLUICE_USER_GUARD_H
#define SLUICE_USER_GUARD_H

#include <sluice/guard.h>

#include "kernel/set.h"
#include "policy/compile.h"

struct sl_guard_options {
	enum sl_guard_mode mode;
	unsigned int flags; /* enum sl_guard_flag */
	int deny_errno;     /* positive; 0: EACCES */
	/* Called when all rows but leases are there, before the switch. May be NULL. */
	int (*prepare)(struct sl_set *set, __u32 policy_id, void *arg, struct sl_err *err);
	void *arg;
};

/* What somebody in user space does for the guard (guard/files.h). */
enum sl_guard_holder {
	SL_GUARD_HOLDS_NOTHING, /* nobody is there, and no filter */
	SL_GUARD_HOLDS_EXEC,    /* if need be, exec is held and its files are looked at */
	SL_GUARD_HOLDS_CALLS,   /* in its place, what comes later: connect(), sends, listen() */
};

/*
 * Whether the guard can do all that the policy asks for. -ENOTSUP with err: nothing weaker
 * than asked is ever loaded.
 */
int sl_guard_supports(const struct sl_compiled *compiled, enum sl_guard_holder holder,
		      struct sl_err *err);

/*
 * -E2BIG with err: a map is too small for the policy. On any error what was in force still
 * is. *policy_id names what was loaded in decisions and for leases.
 */
int sl_guard_load(struct sl_set *set, unsigned int sandbox, const struct sl_compiled *compiled,
		  const struct sl_guard_options *options, __u32 *policy_id, struct sl_err *err);

/*
 * What an address that was learned for names may be reached by: on every port class that one
 * of the names has a rule for; a synthetic one whatever addresses rules let the names have.
 * Replaces the address' earlier lease. Errors as above.
 */
int sl_guard_lease(struct sl_set *set, __u32 policy_id, struct sl_compiled *compiled,
		   const struct sl_addr *addr, enum sl_addr_kind kind, const char *const *names,
		   size_t count, struct sl_err *err);

/* Ends a lease. Missing rows are no error. */
int sl_guard_unlease(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		     const struct sl_addr *addr);

/* Changes the mode only; one store. -ENOENT: no policy was loaded (but for OBSERVE, FROZEN). */
int sl_guard_mode(struct sl_set *set, unsigned int sandbox, enum sl_guard_mode mode,
		  struct sl_err *err);

/*
 * Back to the mode before a change to FROZEN; a sandbox that is not frozen stays as it is.
 * Loading a policy meanwhile changes what it goes back to.
 */
int sl_guard_thaw(struct sl_set *set, unsigned int sandbox, struct sl_err *err);

/*
 * Before a policy is loaded: its paths mean the mount namespace of `pid`, a container's first
 * process, and not the caller's. Links that the policy names are not followed there.
 */
int sl_guard_mounts_of(struct sl_set *set, unsigned int sandbox, pid_t pid, struct sl_err *err);

/* The guard as it is. 0 or -errno. */
int sl_guard_read(struct sl_set *set, unsigned int sandbox, struct sl_guard *out);

/* Removes all policies of a sandbox whose programs are detached. */
int sl_guard_forget(struct sl_set *set, unsigned int sandbox);

const char *sl_guard_mode_name(enum sl_guard_mode mode);

#endif
