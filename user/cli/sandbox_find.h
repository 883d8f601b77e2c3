/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sandbox that a word on the command line names. */
#ifndef SLUICE_USER_SANDBOX_FIND_H
#define SLUICE_USER_SANDBOX_FIND_H

#include "cli/query.h"

/*
 * `word` is an id, a name, or a cgroup: absolute or relative to the cgroup2 mount, in the
 * words of the attach, or as another path to the same directory. The cgroup need not
 * exist any more. -ENOENT, -ENOTUNIQ with cli->err filled.
 */
int sl_sandbox_find(struct sl_query *query, struct sl_cli *cli, const char *word,
		    struct sl_sandbox *out);

#endif
