/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pipes to splice through (splice(2)). Who has bytes to move takes one and gives it back when
 * it is empty, so there are as many as directions that hold something, not as streams. Idle
 * ones are kept, a few of them, the one used last first.
 *
 * A pipe larger than the system's default counts against fs.pipe-user-pages-soft unless the
 * process has CAP_SYS_ADMIN or CAP_SYS_RESOURCE: where it can't be had, the default has to do.
 */
#ifndef SLUICE_USER_RELAY_PIPES_H
#define SLUICE_USER_RELAY_PIPES_H

#include <stddef.h>

#define SL_PIPES_IDLE_MAX 32

struct sl_pipe {
	int fd[2]; /* read, write */
	size_t held;
};

struct sl_pipes {
	struct sl_pipe *idle[SL_PIPES_IDLE_MAX];
	unsigned int idle_count;
	unsigned int count; /* that exist */
	unsigned int bytes; /* that one is to hold */
};

void sl_pipes_init(struct sl_pipes *pipes, unsigned int bytes);
void sl_pipes_clear(struct sl_pipes *pipes);

/* NULL: no descriptor or memory. */
struct sl_pipe *sl_pipes_take(struct sl_pipes *pipes);

/* What it still holds is lost. NULL is allowed. */
void sl_pipes_give(struct sl_pipes *pipes, struct sl_pipe *pipe);

#endif
