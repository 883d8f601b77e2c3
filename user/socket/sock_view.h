/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A socket as users see it, made from the kernel's record. One table of fields describes
 * it for columns, for -j and for event lines.
 */
#ifndef SLUICE_USER_SOCK_VIEW_H
#define SLUICE_USER_SOCK_VIEW_H

#include <sluice/sock.h>

#include "socket/process_view.h"

/*
 * X(NAME, "word"). failed: a connection that ended before its handshake without an error
 * of the network, as when no route or no free port is found; only the application was told
 * why. aborted: closed or disconnected by the application before the handshake.
 * closing: one side has closed. connected: a datagram socket with a peer.
 */
#define SL_VIEW_STATES(X)             \
	X(OPEN, "open")               \
	X(LISTENING, "listening")     \
	X(CONNECTING, "connecting")   \
	X(CONNECTED, "connected")     \
	X(ESTABLISHED, "established") \
	X(CLOSING, "closing")         \
	X(CLOSED, "closed")           \
	X(RESET, "reset")             \
	X(REFUSED, "refused")         \
	X(TIMED_OUT, "timed-out")     \
	X(UNREACHABLE, "unreachable") \
	X(FAILED, "failed")           \
	X(ABORTED, "aborted")

enum sl_view_state {
#define X(name, text) SL_VIEW_##name,
	SL_VIEW_STATES(X)
#undef X
		SL_VIEW_STATE_MAX
};

const char *sl_view_state_name(enum sl_view_state state);

/* X(NAME, "word"). none: a stream socket that has not been used yet. */
#define SL_VIEW_DIRECTIONS(X) \
	X(NONE, "none")       \
	X(OUT, "out")         \
	X(IN, "in")           \
	X(LISTEN, "listen")   \
	X(DATAGRAM, "datagram")

enum sl_view_direction {
#define X(name, text) SL_VIEW_DIRECTION_##name,
	SL_VIEW_DIRECTIONS(X)
#undef X
		SL_VIEW_DIRECTION_MAX
};

/* What a reader should know about a socket beside its state. */
enum sl_view_sock_flag {
	SL_VIEW_INHERITED = 1 << 0,     /* `user` is not its owner */
	SL_VIEW_FOREIGN = 1 << 1,       /* made outside the sandbox */
	SL_VIEW_PREEXISTING = 1 << 2,   /* there before the sandbox was attached */
	SL_VIEW_PROBE = 1 << 3,         /* a datagram socket connected and closed, nothing sent */
	SL_VIEW_RECONNECTED = 1 << 4,   /* not its first connection */
	SL_VIEW_PACKET_COUNTS = 1 << 5, /* bytes were counted by packet, not by call */
};

struct sl_view_sock {
	__u64 cookie;
	const char *sandbox; /* name of the owner's, NULL: not known */
	__u32 sandbox_id;
	char proto[16];
	const char *family; /* NULL: a family without a name */
	enum sl_view_direction direction;
	enum sl_view_state state;
	char error[24]; /* "ECONNREFUSED", "" for none */
	int error_code; /* as a number */
	struct sl_endpoint local;
	struct sl_endpoint remote;
	struct sl_endpoint original;
	const char *name; /* by which it was looked up, or a proxy asked; NULL: none known */
	__u64 bytes_sent;
	__u64 bytes_acked;
	__u64 bytes_received;
	__u64 duration_us; /* from the first use, or the last connect, to the close */
	bool ended;        /* closed: duration_us is valid */
	bool acks;         /* bytes_acked is valid */
	__u64 since_ns;
	__u64 closed_ns;
	__u32 flags; /* enum sl_view_sock_flag */
	__u32 ifindex;
	__u32 peers;
	__u64 netns_cookie;
	struct sl_view_process process; /* the owner */
	struct sl_view_process opener;  /* pid 0: the same */
	struct sl_view_process user;    /* pid 0: nobody else */
	struct sl_view_process peer;    /* owner of the other end; pid 0: not known */
};

extern const struct sl_field sl_view_sock_fields[];

/*
 * `more` NULL: ask the source, if the record says that there is more. 0 or -ENOMEM; what
 * can't be looked up is absent. Borrows from the source only.
 */
int sl_view_sock_fill(struct sl_view_sock *view, const struct sl_sock *sock,
		      const struct sl_sock_more *more, struct sl_view_source *source);

/* What the record's flags, TCP state and error say together. */
enum sl_view_state sl_view_sock_state(const struct sl_sock *sock);
enum sl_view_direction sl_view_sock_direction(const struct sl_sock *sock);

/* Neither address nor port. */
bool sl_view_endpoint_empty(const struct sl_endpoint *endpoint);

#endif
