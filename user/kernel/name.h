/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of a sandbox in the set's maps (sluice/name.h), for who serves its DNS: a text gets
 * an id, an address and who looked it up get that id, and from then on the hooks put it into
 * the records of sockets and into decisions.
 *
 *	sl_naming_new(&naming, set, sandbox);		takes over what is there
 *	sl_naming_intern(naming, "example.org", 0, &id);
 *	sl_naming_put(naming, who, addr.be, id);	before the answer is sent
 *	sl_naming_remove(naming, who, addr.be);		when it has expired
 *	sl_naming_free(&naming);
 *
 * Hooks look only while the sandbox' guard says so (sl_guard_names()).
 *
 * Names are bounded, since a workload makes them up: of each kind the latest stay, and an
 * older one is forgotten with its id, which is never given out again. What refers to it shows
 * no name then; nothing is decided by names here. Not locked: one thread.
 */
#ifndef SLUICE_USER_NAME_H
#define SLUICE_USER_NAME_H

#include <sluice/name.h>

#include "kernel/set.h"

#define SL_NAMES_ALLOWED_MAX 8192 /* of a sandbox */
#define SL_NAMES_DENIED_MAX 1024

struct sl_naming;

/* 0 or -errno. `set` must outlive it. */
int sl_naming_new(struct sl_naming **out, struct sl_set *set, unsigned int sandbox);
void sl_naming_free(struct sl_naming **naming);

/*
 * The id of a name, given to it now if it is new. `flags` are those of enum sl_name_flag; the
 * latest hold. -ENAMETOOLONG, -ENOSPC: the set has no room for more names, -ENOMEM.
 */
int sl_naming_intern(struct sl_naming *naming, const char *text, __u32 flags, __u32 *id);

/*
 * What an address is called, for a process or, `who` NULL, for all that have not looked it up
 * themselves. IPv4 as ::ffff:a.b.c.d. 0 or -errno.
 */
int sl_naming_put(const struct sl_naming *naming, const struct sl_process_key *who,
		  const __be32 addr_be[4], __u32 id);

/* No error when there is none. */
int sl_naming_remove(const struct sl_naming *naming, const struct sl_process_key *who,
		     const __be32 addr_be[4]);

/* A name by its id. -ENOENT: there is none, or it was forgotten. */
int sl_name_read(const struct sl_set *set, __u32 id, struct sl_name *out);

/*
 * All names of a sandbox, 0: of all, and what addresses they are known by. `fn` as in
 * sl_sandbox_each; it may change the maps.
 */
int sl_name_each(struct sl_set *set, unsigned int sandbox,
		 int (*fn)(__u32 id, const struct sl_name *name, void *arg), void *arg);
int sl_named_each(struct sl_set *set, unsigned int sandbox,
		  int (*fn)(const struct sl_named *named, __u32 id, void *arg), void *arg);

/* Removes all of a sandbox. 0 or -errno. sl_sandbox_detach() does. */
int sl_name_forget(struct sl_set *set, unsigned int sandbox);

#endif
