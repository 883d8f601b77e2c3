/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "socket/sock_view.h"

static const char *const state_words[] = {
#define X(name, text) text,
	SL_VIEW_STATES(X)
#undef X
};

static const char *const direction_words[] = {
#define X(name, text) text,
	SL_VIEW_DIRECTIONS(X)
#undef X
};

static const char *const flag_words[] = {
	"inherited", "foreign", "preexisting", "probe", "reconnected", "packet-counts",
};

const char *sl_view_state_name(enum sl_view_state state)
{
	return state < ARRAY_SIZE(state_words) ? state_words[state] : "unknown";
}

bool sl_view_endpoint_empty(const struct sl_endpoint *endpoint)
{
	return !endpoint->port_be && !endpoint->addr_be[3] && !endpoint->addr_be[1] &&
	       !endpoint->addr_be[0];
}

static const struct sl_view_sock *sock_of(const void *record)
{
	return record;
}

static bool has_local(const void *record)
{
	return !sl_view_endpoint_empty(&sock_of(record)->local);
}

static bool has_remote(const void *record)
{
	return !sl_view_endpoint_empty(&sock_of(record)->remote);
}

static bool has_original(const void *record)
{
	return !sl_view_endpoint_empty(&sock_of(record)->original);
}

static bool has_ended(const void *record)
{
	return sock_of(record)->ended;
}

static bool has_acks(const void *record)
{
	return sock_of(record)->acks;
}

static bool has_process(const void *record)
{
	return sock_of(record)->process.pid != 0;
}

static bool has_opener(const void *record)
{
	return sock_of(record)->opener.pid != 0;
}

static bool has_user(const void *record)
{
	return sock_of(record)->user.pid != 0;
}

static bool has_peer(const void *record)
{
	return sock_of(record)->peer.pid != 0;
}

static bool has_direction(const void *record)
{
	return sock_of(record)->direction != SL_VIEW_DIRECTION_NONE;
}

#define SOCK struct sl_view_sock

const struct sl_field sl_view_sock_fields[] = {
	SL_FIELD_TEXT(SOCK, sandbox, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_ID(SOCK, sandbox_id, NULL),
	SL_FIELD_ID(SOCK, cookie, "COOKIE"),
	SL_FIELD_STRING(SOCK, proto, "PROTO"),
	SL_FIELD_TEXT(SOCK, family, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_ENUM(SOCK, direction, NULL, direction_words, .flags = SL_FIELD_NULL,
		      .present = has_direction),
	SL_FIELD_ENUM(SOCK, state, "STATE", state_words),
	SL_FIELD_STRING(SOCK, error, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_ENDPOINT(SOCK, local, "LOCAL", .flags = SL_FIELD_NULL | SL_FIELD_ELIDE,
			  .present = has_local),
	SL_FIELD_ENDPOINT(SOCK, remote, "REMOTE", .flags = SL_FIELD_NULL | SL_FIELD_ELIDE,
			  .present = has_remote),
	SL_FIELD_ENDPOINT(SOCK, original, NULL, .flags = SL_FIELD_NULL, .present = has_original),
	SL_FIELD_TEXT(SOCK, name, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_BYTES(SOCK, bytes_sent, "SENT"),
	SL_FIELD_BYTES(SOCK, bytes_acked, NULL, .present = has_acks),
	SL_FIELD_BYTES(SOCK, bytes_received, "RECV"),
	/* Closed within the same microsecond is zero, not absent. */
	SL_FIELD_DURATION_US(SOCK, duration_us, NULL, .flags = SL_FIELD_JSON_ONLY | SL_FIELD_NULL,
			     .present = has_ended),
	SL_FIELD_AS(DURATION_US, SOCK, duration_us, "duration", NULL, .flags = SL_FIELD_PLAIN_ONLY,
		    .present = has_ended),
	SL_FIELD_AS(TIME, SOCK, since_ns, "since", NULL),
	SL_FIELD_AS(TIME, SOCK, closed_ns, "closed", NULL),
	SL_FIELD_FLAGS(SOCK, flags, NULL, flag_words),
	SL_FIELD_ID(SOCK, netns_cookie, NULL),
	SL_FIELD_UINT(SOCK, ifindex, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_UINT(SOCK, peers, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_OBJECT(SOCK, process, "", sl_view_process_fields, .flags = SL_FIELD_NULL,
			.present = has_process),
	SL_FIELD_OBJECT(SOCK, opener, NULL, sl_view_process_fields, .present = has_opener),
	SL_FIELD_OBJECT(SOCK, user, NULL, sl_view_process_fields, .present = has_user),
	SL_FIELD_OBJECT(SOCK, peer, NULL, sl_view_process_fields, .present = has_peer),
	{ 0 },
};

static bool is_stream(const struct sl_sock *sock)
{
	return sock->family != AF_PACKET && sock->type == SOCK_STREAM;
}

/* End of a connection that may have failed; ordered by how much is known. */
static enum sl_view_state ended_state(const struct sl_sock *sock)
{
	switch (sock->error) {
	case ECONNREFUSED:
		return SL_VIEW_REFUSED;
	case ECONNRESET:
	case EPIPE:
		/* Before the handshake a reset is a refusal: this is connect(AF_UNSPEC). */
		return sock->flags & SL_SOCK_ESTABLISHED ? SL_VIEW_RESET : SL_VIEW_ABORTED;
	case ETIMEDOUT:
		return SL_VIEW_TIMED_OUT;
	case EHOSTUNREACH:
	case ENETUNREACH:
		return SL_VIEW_UNREACHABLE;
	case ENOENT:
	case EIO:
		/* Of a look-up. */
		return SL_VIEW_FAILED;
	}
	if (!is_stream(sock) || !(sock->flags & SL_SOCK_CONNECTED) ||
	    (sock->flags & SL_SOCK_ESTABLISHED))
		return SL_VIEW_CLOSED;
	/* No error of the network: the kernel found no way before a packet left. */
	return sock->error || sock->state == TCP_CLOSE ? SL_VIEW_FAILED : SL_VIEW_ABORTED;
}

static enum sl_view_state stream_state(const struct sl_sock *sock)
{
	if (sock->flags & SL_SOCK_LISTENING)
		return SL_VIEW_LISTENING;
	switch (sock->state) {
	case TCP_FIN_WAIT1:
	case TCP_FIN_WAIT2:
	case TCP_TIME_WAIT:
	case TCP_CLOSE_WAIT:
	case TCP_LAST_ACK:
	case TCP_CLOSING:
		return SL_VIEW_CLOSING;
	case TCP_CLOSE:
		/* Over, though a descriptor still holds it; or never begun. */
		if (sock->flags & SL_SOCK_CONNECTED || sock->flags & SL_SOCK_ACCEPTED)
			return ended_state(sock);
		return SL_VIEW_OPEN;
	}
	if (sock->flags & SL_SOCK_ESTABLISHED)
		return SL_VIEW_ESTABLISHED;
	return sock->flags & SL_SOCK_CONNECTED ? SL_VIEW_CONNECTING : SL_VIEW_OPEN;
}

enum sl_view_state sl_view_sock_state(const struct sl_sock *sock)
{
	if (sock->flags & SL_SOCK_RELEASED || sock->closed_ns)
		return ended_state(sock);
	if (is_stream(sock))
		return stream_state(sock);
	return sock->flags & SL_SOCK_CONNECTED ? SL_VIEW_CONNECTED : SL_VIEW_OPEN;
}

enum sl_view_direction sl_view_sock_direction(const struct sl_sock *sock)
{
	if (!is_stream(sock))
		return sock->flags & SL_SOCK_CONNECTED ? SL_VIEW_DIRECTION_OUT
						       : SL_VIEW_DIRECTION_DATAGRAM;
	if (sock->flags & SL_SOCK_ACCEPTED)
		return SL_VIEW_DIRECTION_IN;
	if (sock->flags & SL_SOCK_LISTENING)
		return SL_VIEW_DIRECTION_LISTEN;
	/* Which side connected an earlier one was not seen. */
	if (sock->flags & SL_SOCK_PREEXISTING && !sock->since_ns)
		return SL_VIEW_DIRECTION_NONE;
	return sock->flags & SL_SOCK_CONNECTED ? SL_VIEW_DIRECTION_OUT : SL_VIEW_DIRECTION_NONE;
}

static __u32 view_flags(const struct sl_sock *sock)
{
	const __u32 used = SL_SOCK_SENT;
	__u32 flags = 0;

	if (sock->flags & SL_SOCK_INHERITED)
		flags |= SL_VIEW_INHERITED;
	if (sock->flags & SL_SOCK_FOREIGN)
		flags |= SL_VIEW_FOREIGN;
	if (sock->flags & SL_SOCK_PREEXISTING)
		flags |= SL_VIEW_PREEXISTING;
	/* Name resolution connects a UDP socket to learn its own address, and closes it. */
	if (sock->closed_ns && !is_stream(sock) && sock->flags & SL_SOCK_CONNECTED &&
	    !(sock->flags & used) && !sock->bytes_sent && !sock->bytes_received)
		flags |= SL_VIEW_PROBE;
	if (sock->generation)
		flags |= SL_VIEW_RECONNECTED;
	if (sock->flags & SL_SOCK_COUNTED_SKB)
		flags |= SL_VIEW_PACKET_COUNTS;
	return flags;
}

static void fill_error(struct sl_view_sock *view, int error)
{
	const char *name = error > 0 ? strerrorname_np(error) : NULL;

	view->error_code = error;
	if (name)
		snprintf(view->error, sizeof(view->error), "%s", name);
	else if (error)
		snprintf(view->error, sizeof(view->error), "errno %d", error);
}

static void fill_duration(struct sl_view_sock *view, const struct sl_sock *sock)
{
	view->ended = sock->closed_ns != 0;
	if (sock->since_ns && sock->closed_ns > sock->since_ns)
		view->duration_us = (sock->closed_ns - sock->since_ns) / 1000;
}

static int fill_processes(struct sl_view_sock *view, const struct sl_sock *sock,
			  const struct sl_sock_more *more, struct sl_view_source *source)
{
	int ret = sl_view_owner_fill(&view->process, &sock->owner, source);

	if (!ret && more->opener.tgid)
		ret = sl_view_owner_fill(&view->opener, &more->opener, source);
	if (!ret && more->user.tgid)
		ret = sl_view_owner_fill(&view->user, &more->user, source);
	if (!ret && sock->flags & SL_SOCK_PEER_KNOWN)
		ret = sl_view_owner_fill(&view->peer, &sock->peer, source);
	return ret;
}

int sl_view_sock_fill(struct sl_view_sock *view, const struct sl_sock *sock,
		      const struct sl_sock_more *more, struct sl_view_source *source)
{
	const bool accepted = sock->flags & SL_SOCK_ACCEPTED;
	struct sl_sock_more looked_up;

	if (!more) {
		sl_view_source_more(source, sock, &looked_up);
		more = &looked_up;
	}
	*view = (struct sl_view_sock){
		.cookie = sock->cookie,
		.sandbox = sl_view_source_sandbox(source, sock->owner.sandbox),
		.sandbox_id = sock->owner.sandbox,
		.family = sl_family_name(sock->family),
		.direction = sl_view_sock_direction(sock),
		.state = sl_view_sock_state(sock),
		.local = sock->local,
		.remote = sock->remote,
		.original = sl_view_endpoint_empty(&more->original) && !accepted ? sock->remote
										 : more->original,
		.name = sl_view_source_name(source, sock->name),
		.bytes_sent = sock->bytes_sent,
		.bytes_acked = sock->bytes_acked,
		.bytes_received = sock->bytes_received,
		.acks = sock->protocol == IPPROTO_TCP && is_stream(sock),
		.since_ns = sock->since_ns,
		.closed_ns = sock->closed_ns,
		.flags = view_flags(sock),
		.ifindex = sock->ifindex,
		.peers = sock->peers,
		.netns_cookie = sock->netns_cookie,
	};
	sl_format_protocol(view->proto, sizeof(view->proto), sock->family, sock->type,
			   sock->protocol);
	fill_error(view, sock->error);
	fill_duration(view, sock);
	return fill_processes(view, sock, more, source);
}
