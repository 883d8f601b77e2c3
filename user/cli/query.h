/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What commands that read a set's pinned maps share: open() first, close() last (it takes
 * one that was not opened, zeroed). They need no agent and change nothing.
 */
#ifndef SLUICE_USER_QUERY_H
#define SLUICE_USER_QUERY_H

#include "base/array.h"
#include "cli/command.h"
#include "kernel/set.h"
#include "socket/sock_view.h"

struct sl_query {
	struct sl_set *set;
	struct sl_view_source *source;
};

/* Opens the set that the user named. -errno with cli->err filled, the next step in it. */
int sl_query_open(struct sl_query *query, struct sl_cli *cli);
void sl_query_close(struct sl_query *query);

/* The sandbox that `word` names by its id or name; NULL is 0: all. -ENOENT, -ENOTUNIQ. */
int sl_query_sandbox(struct sl_query *query, struct sl_cli *cli, const char *word,
		     unsigned int *id);

/* From here on views of executables have digests, each computed when it is first asked for. */
void sl_query_digests(struct sl_query *query);

/* The file of an executable, hashed now; `pid` is one that may run it, or 0. */
void sl_query_digest(struct sl_query *query, unsigned int exe_id, unsigned int pid,
		     struct sl_digest *out);

/* Prints an array of records; takes its error for the command's. */
int sl_query_print(struct sl_cli *cli, const struct sl_field *fields,
		   const struct sl_array *records);

/*
 * One table of two: `more` describes what follows in a struct that begins with the record
 * of `fields`. `dst` has room for `max` fields, the last of which ends it.
 */
void sl_fields_join(struct sl_field *dst, size_t max, const struct sl_field *fields,
		    const struct sl_field *more);

#endif
