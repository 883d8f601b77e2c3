/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of an instance (relay.h), in this order:
 *
 *	relay.c		the loop: readiness, time limits, who has more to do, who has ended
 *	accept.c	listeners, and when they rest
 *	stream.c	a stream from accept to its end
 *	dial.c		connecting to one of several addresses
 *	explicit.c	what an explicit proxy's client says and is told (head.h, reply.h)
 *	flow.c		datagrams
 *
 * Nothing is freed while events are handled: what has ended waits in `ended` until the turn is
 * over, so that no event and no caller's pointer in that turn is left without its object.
 */
#ifndef SLUICE_USER_RELAY_PRIVATE_H
#define SLUICE_USER_RELAY_PRIVATE_H

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "base/htab.h"
#include "relay/pump.h"
#include "relay/relay.h"
#include "relay/timer.h"

#define SL_RELAY_EDGES (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* How long a client may take to read a refusal, or the end of an HTTP answer. */
#define SL_RELAY_LINGER_MS 2000
/* How long bytes received before a reset may take to be passed on. */
#define SL_RELAY_FLUSH_MS 10000
#define SL_RELAY_FLUSH_STEP_MS 20
/* When to try again after accepting stopped. */
#define SL_RELAY_REST_MS 100

/* The structure that a member is in. */
#define SL_OWNER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Who is told of a descriptor's readiness; its address is what epoll has. */
struct sl_watch {
	void (*ready)(struct sl_watch *watch, uint32_t events);
};

struct sl_relay_entry { /* a listener */
	LIST_ENTRY(sl_relay_entry) all;
	struct sl_watch watch;
	struct sl_relay *relay;
	struct sl_relay_listener listener;
	bool watched;
	bool removed; /* freed when the turn is over */
};

struct sl_side {
	struct sl_pump_side side;
	struct sl_watch watch;
};

struct sl_dial;
struct sl_request;
struct sl_reply;

enum sl_stream_state {
	SL_STREAM_HEAD,  /* an explicit request is being read */
	SL_STREAM_ASKED, /* admit() was called */
	SL_STREAM_DIALLING,
	SL_STREAM_OPEN,
	SL_STREAM_REPLYING, /* a refusal is being sent */
	SL_STREAM_LINGER,   /* all was said: until the client has read it */
	SL_STREAM_ENDED,
};

struct sl_relay_stream {
	LIST_ENTRY(sl_relay_stream) all;
	TAILQ_ENTRY(sl_relay_stream) ready; /* while `queued` */
	STAILQ_ENTRY(sl_relay_stream) done; /* while ended */
	struct sl_relay *relay;
	void *listener_arg, *data;
	struct sl_side client, server;
	struct sl_pump up, down; /* of the client, to the client */
	struct sl_timer phase;   /* of the state: head, connect, linger, flush */
	struct sl_timer idle, life;
	struct sl_dial *dial;
	struct sl_request *request; /* of an explicit proxy's client, until bytes may flow */
	struct sockaddr_storage peer;
	uint64_t since_ns;
	int64_t flush_until_ms; /* 0: not flushing */
	enum sl_stream_state state;
	enum sl_relay_way way;
	struct sl_relay_end end;
	bool queued;
	bool answered, asked; /* what the caller knows */
	bool failing;         /* end.cause and end.code are set: the first failure counts */
	bool told;            /* in words, by a proxy's answer */
};

struct sl_relay {
	struct sl_relay_options options;
	int epoll, kick; /* kick: an eventfd, for calls from outside of a turn */
	struct sl_watch kick_watch;
	bool running;
	int64_t now_ms; /* of the turn */
	struct sl_pump_ctx pump;
	int own_netns; /* of the thread, -1 until a listener has another */
	LIST_HEAD(, sl_relay_entry) listeners;
	LIST_HEAD(, sl_relay_stream) streams;
	TAILQ_HEAD(sl_stream_queue, sl_relay_stream) ready;
	STAILQ_HEAD(, sl_relay_stream) ended;
	LIST_HEAD(, sl_relay_flow) flows;
	STAILQ_HEAD(, sl_relay_flow) ended_flows;
	struct sl_htab *flow_table;
	struct sl_batch *batch; /* of datagrams */
	struct sl_timer_queue heads, connects, staggers, idles, lives, lingers, flushes, rests,
		flow_idles;
	struct sl_timer rest;
	bool resting, has_removed;
	unsigned int stream_count, flow_count;
	uint64_t counts[SL_RELAY_COUNT_MAX];
};

/* relay.c */
uint64_t sl_relay_now_ns(void);
int sl_relay_watch(struct sl_relay *relay, int fd, uint32_t events, struct sl_watch *watch);
/* The instance becomes ready, if what goes on is not a turn of it. */
void sl_relay_kick(struct sl_relay *relay);
/* sl_monotonic_ms(), which is read once in a turn. */
int64_t sl_relay_now_ms(const struct sl_relay *relay);
/* Whether this is errno of what takes descriptors or memory and will not work better at once. */
bool sl_relay_is_shortage(int code);

/* accept.c */
void sl_relay_rest(struct sl_relay *relay, enum sl_relay_count why);
void sl_relay_wake(struct sl_relay *relay);
void sl_relay_rest_due(struct sl_timer *timer);
void sl_relay_drop_removed(struct sl_relay *relay);

/* stream.c */
int sl_stream_new(struct sl_relay *relay, const struct sl_relay_entry *entry, int *fd,
		  const struct sockaddr_storage *peer);
void sl_stream_destroy(struct sl_relay_stream *stream);
/* Turns of those that have more to move. */
void sl_stream_run_ready(struct sl_relay *relay);
/* Notes why it fails, unless that is known. */
void sl_stream_fail(struct sl_relay_stream *stream, enum sl_relay_cause cause, int code);
/* It has ended, both ways reset if it failed. */
void sl_stream_end(struct sl_relay_stream *stream);
/* Tells who asks what was asked for. */
void sl_stream_ask(struct sl_relay_stream *stream, const char *host, uint16_t port);
/* `fd` is the target's, connected: bytes may flow. */
void sl_stream_open(struct sl_relay_stream *stream, int *fd);
void sl_stream_queue(struct sl_relay_stream *stream);
/* No delays for small segments, and silent peers are noticed; of a listener: what it accepts. */
void sl_stream_set_socket(int fd);
void sl_stream_init_timers(struct sl_relay *relay);

/* dial.c */
int sl_dial_new(struct sl_relay_stream *stream, const struct sl_relay_target *target);
void sl_dial_free(struct sl_dial **dial);
/* Nothing comes of it any more. NULL is allowed. */
void sl_dial_stop(struct sl_dial *dial);
void sl_dial_stagger_due(struct sl_timer *timer);
/* Whether a target can be dialled. 0 or -EINVAL. */
int sl_dial_check(const struct sl_relay_target *target);
/* A socket of SOCK_STREAM or SOCK_DGRAM towards a target's address, connecting. */
int sl_dial_socket(int type, const struct sl_relay_target *target, const struct sl_addr *addr,
		   int *out);
/* The dial came to nothing: the client is told. */
void sl_dial_failed(struct sl_relay_stream *stream, int code);

/* explicit.c */
void sl_explicit_read(struct sl_relay_stream *stream);
/* The head did not come in time. */
void sl_explicit_slow(struct sl_relay_stream *stream);
/* Takes effect on what is sent first, each way. -ENOMEM. */
int sl_explicit_connected(struct sl_relay_stream *stream);
/* Replies; then it lingers. `hint` may be NULL. */
void sl_explicit_refuse(struct sl_relay_stream *stream, const struct sl_reply *reply);
/* What is told of a dial's errno. */
void sl_explicit_unreachable(struct sl_relay_stream *stream, int code);
void sl_explicit_free(struct sl_request **request);

/* flow.c */
void sl_flow_receive(struct sl_relay_entry *entry);
int sl_flow_listen(struct sl_relay *relay, const struct sl_relay_listener *listener,
		   struct sl_err *err);
void sl_flow_reap(struct sl_relay *relay);
int sl_flow_init(struct sl_relay *relay);
void sl_flow_end_all(struct sl_relay *relay);
void sl_flow_clear(struct sl_relay *relay);

#endif
