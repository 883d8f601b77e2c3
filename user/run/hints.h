/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is right in a policy and will hardly work on this machine: told before the command
 * starts, not found out from its failures. Nothing here changes what is allowed.
 */
#ifndef SLUICE_USER_RUN_HINTS_H
#define SLUICE_USER_RUN_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/compile.h"

#define SL_NAMESERVERS_MAX 3 /* MAXNS of <resolv.h> */

/* The addresses of a resolv.conf(5); how many, 0 too when it can't be read. */
size_t sl_nameservers(const char *resolv_conf, struct sl_addr out[SL_NAMESERVERS_MAX]);

/*
 * When `path` is a script: that its interpreter is what runs, and what to write instead.
 * False when it is none, or can't be read.
 */
bool sl_hint_script(char *dst, size_t size, const char *rule, const char *path);

/*
 * When entry `rule` has names, and its binaries may ask none of these servers: what to add.
 * False when it lacks nothing.
 */
bool sl_hint_resolver(char *dst, size_t size, const struct sl_compiled *compiled, size_t rule,
		      const struct sl_addr *servers, size_t count);

/* Logs both for every entry, SL_HINTS_MAX lines at most; without `resolvers` the first. */
#define SL_HINTS_MAX 16
void sl_hints_tell(const struct sl_compiled *compiled, bool resolvers);

#endif
