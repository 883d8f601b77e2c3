/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trust on first use (`integrity: first-use`): what a sandbox expects the file at a path to
 * be. The first digest that is seen there, while a rule matches the path, is remembered in
 * the set; another one is not granted what the rule says until it is accepted.
 *
 * What is remembered lives as long as the sandbox, over all its policies; a digest that is
 * accepted takes the place of the one before. Processes that run keep what they were granted
 * when they were executed: a file that loses trust loses it for its next exec.
 *
 * Pins are not remembered: where a policy has one for a path, the pin alone decides.
 */
#ifndef SLUICE_USER_GUARD_TRUST_H
#define SLUICE_USER_GUARD_TRUST_H

#include "guard/guard.h"

/* -ENOENT: nothing is remembered. -EEXIST: another path of the same hash is. */
int sl_trust_read(struct sl_set *set, unsigned int sandbox, const char *path,
		  uint8_t sha256[SL_SHA256_LEN]);

/*
 * Remembers `found` if nothing is remembered; *trusted is what is now. -E2BIG: the map is
 * full, and the file stays untrusted; -EEXIST as above.
 */
int sl_trust_first(struct sl_set *set, unsigned int sandbox, const char *path,
		   const uint8_t found[SL_SHA256_LEN], uint8_t trusted[SL_SHA256_LEN]);

struct sl_trust_report {
	unsigned int sandboxes;        /* that remember the path, now with this digest */
	unsigned int changed;          /* of those, the ones that had another */
	unsigned int pinned;           /* policies in which a pin decides all the same */
	uint8_t before[SL_SHA256_LEN]; /* of the last one that changed */
};

/*
 * Makes a digest the trusted one of a path in each sandbox that remembers the path, and
 * grants what it earns to the processes that run it already. -ENOENT: none remembers it.
 * Callers serialise changes of the set, but need not keep a broker from preparing files.
 */
int sl_trust_accept(struct sl_set *set, const char *path, const uint8_t sha256[SL_SHA256_LEN],
		    struct sl_trust_report *report);

/* The digest that was found of an executable under any policy of first use. -ENOENT: none. */
int sl_trust_found(struct sl_set *set, const struct sl_exe *exe, uint8_t sha256[SL_SHA256_LEN]);

/* Ends what a sandbox remembers. */
int sl_trust_forget(struct sl_set *set, unsigned int sandbox);

#endif
