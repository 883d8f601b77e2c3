/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The relay: takes connections and datagrams that a sandbox's namespace steers here, or that
 * a client of an explicit proxy (HTTP, SOCKS5) sends here, asks whether and where to, dials
 * from the network namespace of the calling thread, and moves bytes both ways. It knows
 * nothing of policies: that is what the operations are for.
 *
 *	sl_relay_new(&relay, &options, &err);
 *	sl_relay_listen(relay, &listener, &err);	any number, of any sandbox
 *	wait_ms = sl_relay_run(relay, -1);		in a loop of its own; or, in a larger
 *							loop, poll sl_relay_fd() for wait_ms,
 *							then sl_relay_run(relay, 0)
 *	sl_relay_free(&relay);
 *
 * Each stream: admit() is called once, and answered once, there or later, by sl_relay_dial()
 * or sl_relay_refuse(). A stream that ends unanswered is told by gone(), one that was answered
 * by ended(): exactly one of the two, after which the pointer means nothing. Flows likewise.
 *
 * Rules
 * 1. One instance is one thread's: all functions and all operations run there. Several threads
 *    may listen on the same descriptor, each with an instance of its own.
 * 2. A stream fails alone, and what one has to move is bounded for each turn: who has more waits
 *    until the others had theirs. A full side stops the reading of the other side only.
 * 3. A connection that was steered here has been accepted before anything is asked. A refusal,
 *    or a dial that failed, is an RST: the application sees ECONNRESET. ECONNREFUSED can't be
 *    had, since the kernel completes the handshake before a listener sees anything.
 * 4. A FIN is passed on as a FIN, an RST as an RST, after what was received before it.
 * 5. What a client sends before its dial is done stays in the kernel, but for the head of an
 *    explicit request.
 * 6. Operations may call sl_relay_dial() and sl_relay_refuse() of any stream, and nothing that
 *    frees the instance or runs it.
 * 7. Without free descriptors or memory, or with all streams taken, nothing is accepted until
 *    some are free again: clients wait in the listener's queue, and the instance is not ready.
 */
#ifndef SLUICE_USER_RELAY_RELAY_H
#define SLUICE_USER_RELAY_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "policy/addr.h"
#include "relay/head_fault.h"

struct sl_relay;
struct sl_relay_stream;
struct sl_relay_flow; /* datagrams between one client's port and one original destination */

#define SL_RELAY_ADDRESSES_MAX 16    /* of a target; later ones are not tried */
#define SL_RELAY_HEAD_MAX 16384      /* bytes of a request's head: 431 */
#define SL_RELAY_FIRST_MAX 8192      /* bytes of a target's head */
#define SL_RELAY_HOST_MAX 256        /* with terminator: names are 253 bytes at most */
#define SL_RELAY_DEVICE_MAX 16       /* IFNAMSIZ */
#define SL_RELAY_FLOW_HELD_MAX 65536 /* bytes of datagrams that wait for their flow's answer */

enum sl_relay_kind {
	SL_RELAY_TRANSPARENT, /* TCP; getsockname() of what is accepted is the original */
	SL_RELAY_PROXY,       /* TCP; the first byte tells HTTP from SOCKS5 */
	SL_RELAY_UDP,         /* the original destination comes with a flow's first datagram */
	SL_RELAY_KIND_MAX
};

struct sl_relay_listener {
	int fd; /* borrowed until unlisten or free; listening, unless UDP; made non-blocking */
	enum sl_relay_kind kind;
	/*
	 * Of the namespace in which the listener is, borrowed; -1: the thread's own. Sockets of
	 * UDP flows are made there, which takes CAP_SYS_ADMIN.
	 */
	int netns;
	void *arg; /* comes with what is asked */
};

enum sl_relay_way {
	SL_RELAY_WAY_TRANSPARENT,
	SL_RELAY_WAY_CONNECT, /* HTTP CONNECT */
	SL_RELAY_WAY_HTTP,    /* a request in absolute form, the only one of its connection */
	SL_RELAY_WAY_SOCKS5,
	SL_RELAY_WAY_UDP,
	SL_RELAY_WAY_MAX
};

extern const char *const sl_relay_way_names[SL_RELAY_WAY_MAX];

/* Valid during the call. */
struct sl_relay_ask {
	enum sl_relay_way way;
	void *listener; /* its arg */
	int fd;         /* what was accepted, or the UDP listener; borrowed */
	struct sockaddr_storage client, original;
	/*
	 * What an explicit request names: a name in lower case (letters, digits, - . _, no dot
	 * at the end) or an address without brackets. NULL: go by `original`.
	 */
	const char *host;
	uint16_t port; /* host order; 0 where `host` is NULL */
};

/* Where to; copied. */
struct sl_relay_target {
	const struct sl_addr *addresses; /* in order of preference (RFC 6724) */
	size_t count;                    /* at least 1; of a flow only the first is used */
	uint16_t port;                   /* host order */
	uint32_t mark;                   /* SO_MARK; 0: none */
	const char *device;              /* SO_BINDTODEVICE; NULL: none */
	const void *head;                /* sent before all else (proxy_v2.h); not of a flow */
	size_t head_size;                /* SL_RELAY_FIRST_MAX at most */
};

/* Why a client is refused; what it is told is in brackets: HTTP, SOCKS5. */
enum sl_relay_refusal {
	SL_RELAY_DENIED,     /* 403, 2 */
	SL_RELAY_UNRESOLVED, /* 502, 4: the name has no address */
	SL_RELAY_BUSY,       /* 503, 1 */
	SL_RELAY_REFUSAL_MAX
};

/* How it ended. */
enum sl_relay_cause {
	SL_RELAY_CAUSE_DONE,      /* both ways closed */
	SL_RELAY_CAUSE_CLIENT,    /* the client reset it, or fell silent (keepalive) */
	SL_RELAY_CAUSE_SERVER,    /* the same of the other end */
	SL_RELAY_CAUSE_DIAL,      /* no address connected; `code` is the last one's errno */
	SL_RELAY_CAUSE_REFUSED,   /* by sl_relay_refuse() */
	SL_RELAY_CAUSE_IDLE,      /* nothing moved for idle_ms */
	SL_RELAY_CAUSE_LIFE,      /* life_ms are over */
	SL_RELAY_CAUSE_RESET,     /* by sl_relay_reset() */
	SL_RELAY_CAUSE_MALFORMED, /* what it sent was no request (told by counters only) */
	SL_RELAY_CAUSE_SLOW,      /* the head did not come in time (told by counters only) */
	SL_RELAY_CAUSE_MEMORY,    /* no memory or descriptor */
	SL_RELAY_CAUSE_FREED,     /* the instance was freed */
	SL_RELAY_CAUSE_MAX
};

extern const char *const sl_relay_cause_names[SL_RELAY_CAUSE_MAX];

struct sl_relay_end {
	enum sl_relay_cause cause;
	int code;                /* errno, 0 where there is none */
	uint64_t bytes_sent;     /* of the client to the target; heads not counted */
	uint64_t bytes_received; /* of the target to the client */
	uint64_t datagrams_sent; /* of flows */
	uint64_t datagrams_received;
	uint64_t duration_us; /* since it was accepted */
	bool connected;       /* a dial succeeded */
	/* To where, or which was the last to fail. */
	struct sl_addr address;
	uint16_t port; /* host order */
};

struct sl_relay_ops {
	void (*admit)(void *arg, struct sl_relay_stream *stream, const struct sl_relay_ask *ask);
	void (*gone)(void *arg, struct sl_relay_stream *stream);
	void (*ended)(void *arg, struct sl_relay_stream *stream, const struct sl_relay_end *end);
	/*
	 * May be NULL. No address connected: of *end cause, code, address and port. Before the
	 * client is told, so that who hears of it from the client finds it known; ended() follows.
	 */
	void (*unreachable)(void *arg, struct sl_relay_stream *stream,
			    const struct sl_relay_end *end);
	/* May be NULL. What a client sent was no request; neither gone() nor ended() follows. */
	void (*malformed)(void *arg, void *listener, enum sl_head_fault fault);
	/* NULL where there are no UDP listeners. */
	void (*flow_admit)(void *arg, struct sl_relay_flow *flow, const struct sl_relay_ask *ask);
	void (*flow_gone)(void *arg, struct sl_relay_flow *flow);
	void (*flow_ended)(void *arg, struct sl_relay_flow *flow, const struct sl_relay_end *end);
};

/* 0 is the default, in brackets; of idle_ms and life_ms 0 is "no limit". */
struct sl_relay_options {
	const struct sl_relay_ops *ops;
	void *arg;
	unsigned int streams;      /* [4096] at a time */
	unsigned int flows;        /* [1024] */
	unsigned int head_ms;      /* [10,000] for the head of an explicit request */
	unsigned int connect_ms;   /* [30,000] from sl_relay_dial() to a connection */
	unsigned int stagger_ms;   /* [250] between tries of addresses (RFC 8305, 5) */
	unsigned int idle_ms;      /* nothing moved */
	unsigned int life_ms;      /* since accepted */
	unsigned int flow_idle_ms; /* [60,000] */
	unsigned int pipe_bytes;   /* [256 KiB] of a pipe that has data; see pipes.h */
};

enum sl_relay_count {
	SL_RELAY_ACCEPTED,
	SL_RELAY_CONNECTED,
	SL_RELAY_DIAL_FAILED,
	SL_RELAY_REFUSED,
	SL_RELAY_MALFORMED,    /* heads that were no request */
	SL_RELAY_OVERSIZED,    /* heads over SL_RELAY_HEAD_MAX */
	SL_RELAY_SLOW,         /* heads that did not come in head_ms */
	SL_RELAY_IDLE,         /* ended by idle_ms or life_ms, flows among them */
	SL_RELAY_NO_FDS,       /* times that accepting stopped for want of descriptors, memory */
	SL_RELAY_FULL,         /* times that it stopped since all streams were taken */
	SL_RELAY_NO_PIPE,      /* turns without a pipe: bytes were copied */
	SL_RELAY_FLOWS,        /* flows begun */
	SL_RELAY_FLOWS_FULL,   /* datagrams dropped: no flow was free */
	SL_RELAY_FLOW_DROPPED, /* datagrams dropped: full, unanswered, refused */
	SL_RELAY_COUNT_MAX
};

extern const char *const sl_relay_count_names[SL_RELAY_COUNT_MAX];

struct sl_relay_stats {
	uint64_t counts[SL_RELAY_COUNT_MAX];
	unsigned int streams, flows; /* now */
	unsigned int pipes;          /* that exist, idle ones among them */
	bool ready;                  /* accepting is not stopped */
};

int sl_relay_new(struct sl_relay **out, const struct sl_relay_options *options, struct sl_err *err);

/* Resets what is open, and tells it. */
void sl_relay_free(struct sl_relay **relay);

int sl_relay_listen(struct sl_relay *relay, const struct sl_relay_listener *listener,
		    struct sl_err *err);

/* No more is taken from it; what was taken goes on. -ENOENT. */
int sl_relay_unlisten(struct sl_relay *relay, int fd);

/* Readable when there is something to do. */
int sl_relay_fd(const struct sl_relay *relay);

/*
 * Does what is ready, waiting for it up to `wait_ms` (-1: until there is something or a time
 * limit ends). Returns the milliseconds until the next limit, 0 when work was left for the
 * next turn, -1 when there is none.
 */
int sl_relay_run(struct sl_relay *relay, int wait_ms);

void sl_relay_stats(const struct sl_relay *relay, struct sl_relay_stats *stats);

/*
 * Answers. -EINVAL (no address, a head or device too long), -ENOMEM: it is still unanswered.
 * -EALREADY: it was answered before. -ECONNRESET: it has ended, and gone() comes next.
 */
int sl_relay_dial(struct sl_relay_stream *stream, const struct sl_relay_target *target);

/*
 * A client of a proxy gets, with HTTP, a JSON document {"reason", "host", "port", "error",
 * "hint"}, `error` being the errno of a dial, by name; others an RST. `reason` is one word, NULL:
 * the refusal's own; `hint` may be NULL.
 */
int sl_relay_refuse(struct sl_relay_stream *stream, enum sl_relay_refusal refusal,
		    const char *reason, const char *hint);

/* Ends it with an RST both ways, answered or not; gone() or ended() comes from the next run. */
void sl_relay_reset(struct sl_relay_stream *stream);

/* What belongs to the caller; NULL at first. */
void sl_relay_set(struct sl_relay_stream *stream, void *data);
void *sl_relay_get(const struct sl_relay_stream *stream);

/*
 * The same of flows. A flow that was refused swallows what comes, until it is idle: so the
 * next datagram asks nothing anew. Errors of the target (ICMP) end a flow, so its client's next
 * datagram begins a new one: the client gets no ICMP, since what is steered always arrives.
 * An error of the client, whose port is closed, closes the socket towards the target, whose
 * next datagram then gets one from the kernel.
 */
int sl_relay_flow_dial(struct sl_relay_flow *flow, const struct sl_relay_target *target);
int sl_relay_flow_refuse(struct sl_relay_flow *flow);
void sl_relay_flow_reset(struct sl_relay_flow *flow);
void sl_relay_flow_set(struct sl_relay_flow *flow, void *data);
void *sl_relay_flow_get(const struct sl_relay_flow *flow);

#endif
