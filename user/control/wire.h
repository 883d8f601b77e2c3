/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a varlink connection: JSON objects, each ended by a NUL byte, over a unix
 * stream socket (https://varlink.org/Method-Call), with descriptors beside them.
 *
 *	sl_wire_new(&wire, fd, &limits)		takes over fd, makes it non-blocking
 *	sl_wire_fill(wire)			when readable: one read
 *	sl_wire_next(wire, &json, &fds)		until -EAGAIN
 *	sl_wire_put(wire, json, fds)		queues
 *	sl_wire_flush(wire)			when writable, or right away
 *	sl_wire_free(&wire)
 *
 * Rules
 * 1. Descriptors belong to the message that the last byte of their sendmsg() is in, so a
 *    sender puts one message into each. unix(7): a read never goes past such a byte run.
 * 2. What the peer can make grow is bounded: one message, its depth, its descriptors, and
 *    what it leaves unread.
 * 3. After any error but -EAGAIN and -ENOBUFS the connection is of no more use.
 */
#ifndef SLUICE_USER_CONTROL_WIRE_H
#define SLUICE_USER_CONTROL_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "base/fds.h"

#define SL_WIRE_DEPTH 32            /* of nested objects and arrays */
#define SL_WIRE_MESSAGE (4UL << 20) /* bytes of one that is received, by default */

struct sl_wire;

/* Bytes; 0 is the default. */
struct sl_wire_limits {
	size_t message; /* received, without its NUL (SL_WIRE_MESSAGE) */
	size_t queue;   /* that the peer has not read (1 MiB); one message always fits */
};

/* -ENOMEM, -errno of fcntl(2). `fd` is taken over on success. */
int sl_wire_new(struct sl_wire **out, int fd, const struct sl_wire_limits *limits);
void sl_wire_free(struct sl_wire **wire);

int sl_wire_fd(const struct sl_wire *wire);

/*
 * Reads once. -EAGAIN: nothing there. -EPIPE: the peer has closed. -EMSGSIZE: a message
 * above the limit. -EPROTO: descriptors beyond SL_FDS_MAX, or before those of an earlier
 * message were taken. Other errors are recvmsg(2)'s.
 */
int sl_wire_fill(struct sl_wire *wire);

/*
 * Takes the next whole message. The caller owns *json and the descriptors, which are all
 * close-on-exec. -EAGAIN: none yet. -EBADMSG: not one JSON object in UTF-8.
 */
int sl_wire_next(struct sl_wire *wire, struct json_object **json, struct sl_fds *fds);

/* One JSON object, strictly, and nothing else. -EBADMSG, -ENOMEM. */
int sl_wire_parse(struct json_object **out, const char *text, size_t len);

/* Whether part of a message is there, or a whole one that was not taken. */
bool sl_wire_partial(const struct sl_wire *wire);

/*
 * Queues a copy; `json` stays the caller's. Descriptors (may be NULL) are duplicated.
 * -ENOBUFS: the queue is full, nothing was queued. -ENOMEM, -EMFILE.
 */
int sl_wire_put(struct sl_wire *wire, struct json_object *json, const struct sl_fds *fds);

/* Writes what the peer takes. -EAGAIN: some is left. Errors of sendmsg(2). */
int sl_wire_flush(struct sl_wire *wire);

/* Bytes that are queued. */
size_t sl_wire_queued(const struct sl_wire *wire);

#endif
