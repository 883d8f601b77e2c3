/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One direction of a stream: bytes that were prepared first, then what comes from one socket
 * goes into the other, through a pipe that is held only while it has something.
 *
 * Rules
 * 1. Sides are told by edges (EPOLLET): they stay readable or writable until a call says
 *    EAGAIN.
 * 2. Nothing is read while the other side is full, so a stalled reader holds one pipe at most,
 *    and its writer is stopped by TCP.
 * 3. What was received before an end or an error is passed on before it.
 */
#ifndef SLUICE_USER_RELAY_PUMP_H
#define SLUICE_USER_RELAY_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/pipes.h"

struct sl_pump_side {
	int fd; /* -1: none yet */
	bool readable, writable;
};

struct sl_pump {
	struct sl_pump_side *from, *to;
	struct sl_pipe *pipe; /* NULL: nothing is held */
	uint8_t *first;       /* owned; sent before all else */
	size_t first_size, first_at;
	uint64_t bytes; /* passed on, without `first` */
	uint64_t left;  /* bytes that may still be read, with `limited` */
	int error;      /* of reading, errno */
	bool limited;
	bool broken; /* the socket's error was seen elsewhere: its end is no end */
	bool eof;    /* read to the end */
	bool closed; /* and that was passed on */
	bool dead;   /* the other side takes no more */
};

/* Where pumps of one loop get what they need, and count. */
struct sl_pump_ctx {
	struct sl_pipes pipes;
	uint8_t *copy; /* SL_PUMP_COPY bytes, for turns without a pipe */
	uint64_t no_pipe;
};

#define SL_PUMP_COPY 65536
#define SL_PUMP_TURN (1 << 20) /* bytes of one direction before others have their turn */

/* Adds to what is sent before all else. -ENOMEM: it is as it was. */
int sl_pump_first(struct sl_pump *pump, const void *data, size_t size);

/* Moves what can be moved. True: the turn is used up and there may be more. */
bool sl_pump_run(struct sl_pump *pump, struct sl_pump_ctx *ctx);

/* Reads no more and passes on nothing: its far side is gone. */
void sl_pump_kill(struct sl_pump *pump, struct sl_pump_ctx *ctx);

/* Whether all that will ever come has been passed on, its end too unless it was limited. */
bool sl_pump_done(const struct sl_pump *pump);

/* Whether nothing more will be passed on. */
bool sl_pump_over(const struct sl_pump *pump);

#endif
