/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sl-load do: single system calls, one after the other, on one current socket. For what
 * tries to get around mediation, where the result of each call is the truth.
 *
 * A verb returns what its call returned, or -errno; -SL_EUSAGE and -SL_ENOFEATURE end it
 * all. The tables are listed in do.c.
 */
#ifndef SLUICE_LOAD_DO_H
#define SLUICE_LOAD_DO_H

#include "load.h"

struct sl_doer {
	const struct sl_opts *o;
	int fd; /* the current socket, owned; -1: none */
};

struct sl_verb {
	const char *name;
	long (*run)(struct sl_doer *doer, const char *arg); /* arg: "" when there is none */
};

extern const struct sl_verb sl_socket_verbs[];
extern const struct sl_verb sl_entry_verbs[];
extern const struct sl_verb sl_leave_verbs[];

/* Of arguments ADDR:PORT; 0 or -SL_EUSAGE. */
int sl_do_addr(const char *arg, struct sl_addr *out);

/* The descriptor becomes the current socket; passes errors (negative) on. */
long sl_do_use(struct sl_doer *doer, long fd);

#endif
