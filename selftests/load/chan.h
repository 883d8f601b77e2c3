/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ways to send and to receive on a stream socket, by name. A channel borrows the
 * socket and owns what a way needs besides: a pipe, a memfd with the payload, a ring.
 */
#ifndef SLUICE_LOAD_CHAN_H
#define SLUICE_LOAD_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "addr.h"
#include "uring.h"

/* The largest piece that one call handles. */
#define SL_CHUNK 65536

struct sl_chan {
	int fd; /* borrowed */
	int pipe[2];
	int file; /* memfd that holds one chunk of payload */
	struct sl_uring *uring;
	const char *uring_mode;
	const struct sl_addr *to; /* for a way that connects by itself; NULL when done */
	unsigned int zerocopy;    /* notifications still to come */
	uint64_t peeked;
};

struct sl_via {
	const char *name;
	bool fastopen;         /* the first send connects, do not connect before */
	bool fastopen_connect; /* set TCP_FASTOPEN_CONNECT before connect */
	/* Bytes that the kernel accepted, at most len; -errno when none. */
	ssize_t (*send)(struct sl_chan *chan, const void *buf, size_t len);
};

struct sl_take {
	const char *name;
	/* Bytes consumed, 0 at the end; -errno. */
	ssize_t (*recv)(struct sl_chan *chan, void *buf, size_t len);
};

#define SL_CHAN_INIT                                     \
	{                                                \
		.fd = -1, .pipe = { -1, -1 }, .file = -1 \
	}

/* The payload: SL_CHUNK bytes, byte i is i % 251. */
const char *sl_payload(void);

/* NULL name: plain send and recv. NULL for a name that there is not. */
const struct sl_via *sl_via_find(const char *name);
const struct sl_take *sl_take_find(const char *name);

/* Opens what is missing; 0 or -errno. */
int sl_chan_pipe(struct sl_chan *chan);
int sl_chan_file(struct sl_chan *chan);
int sl_chan_uring(struct sl_chan *chan);
/* Moves `len` bytes out of the pipe into the socket; bytes moved or -errno. */
ssize_t sl_chan_from_pipe(struct sl_chan *chan, size_t len);

/* Waits until the kernel has let go of all zero-copy buffers. */
int sl_chan_flush(struct sl_chan *chan);

/* Closes what the channel owns, not the socket. */
void sl_chan_close(struct sl_chan *chan);

#endif
