/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a process shape ends. */
#ifndef SLUICE_LOAD_TAIL_H
#define SLUICE_LOAD_TAIL_H

#include "load.h"
#include "proc.h"

/*
 * Prints "what=proc"; then becomes the tail command, or connects to --server (sending
 * the identity and --bytes when given), or does nothing more. 0 or negative.
 */
int sl_tail(const struct sl_opts *o);

/* "sl-load tail ..." at `path`, with the tail's options. */
void sl_tail_argv(struct sl_argv *argv, const char *path, const struct sl_opts *o);

/* "what=step": an image or a process on the way, with its executable's path. */
void sl_tail_step(const char *name);

#endif
