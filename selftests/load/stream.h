/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One TCP connection from its start to its end, as the options of tcp-send say, and its
 * "what=sock" line. Also what every process shape does at its end.
 */
#ifndef SLUICE_LOAD_STREAM_H
#define SLUICE_LOAD_STREAM_H

#include "chan.h"
#include "load.h"
#include "truth.h"

struct sl_stream {
	int fd; /* owned */
	struct sl_chan chan;
	struct sl_sock_note note;
	struct sl_addr to;
	uint64_t sent;
	uint64_t received;
	const char *step; /* what was being done last */
	int err;          /* positive errno of the failed step, 0 */
	bool in_progress; /* a non-blocking connect said EINPROGRESS */
	bool quiet;       /* no "what=sock" line */
};

#define SL_STREAM_INIT                         \
	{                                      \
		.fd = -1, .chan = SL_CHAN_INIT \
	}

/* Creates, binds and connects (unless a Fast Open way will). 0 or negative, told. */
int sl_stream_open(struct sl_stream *s, const struct sl_opts *o, const struct sl_addr *to);

/* Takes over a connected descriptor instead. */
void sl_stream_adopt(struct sl_stream *s, const struct sl_opts *o, int fd);

/* Sends `count` messages of `bytes`, each read back when --recv is given. */
int sl_stream_send(struct sl_stream *s, const struct sl_opts *o, uint64_t bytes, uint64_t count);

/* Sends the caller's identity (struct sl_ident). */
int sl_stream_identify(struct sl_stream *s, uint32_t n);

/* Reads to the end of the stream. */
int sl_stream_drain(struct sl_stream *s, const struct sl_opts *o);

/* "what=open", for a socket that will be held. */
void sl_stream_tell_open(struct sl_stream *s);

/* Prints "what=sock" and closes. Takes and returns the result so far. */
int sl_stream_end(struct sl_stream *s, int rc);

/*
 * Open, identify, send, hold and end, to the first --server. `bytes` is what to send
 * without --bytes; count is 1 without --count.
 */
int sl_stream_run(const struct sl_opts *o, uint64_t bytes);

#endif
