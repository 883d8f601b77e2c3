// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "relay/flow_private.h"

#define TURN 4 /* batches of one direction before others have their turn */

int sl_batch_receive(struct sl_batch *batch, int fd)
{
	int n;

	for (unsigned int i = 0; i < SL_BATCH; i++) {
		batch->pieces[i] = (struct iovec){ batch->data[i], SL_DATAGRAM_MAX };
		batch->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &batch->names[i],
			.msg_namelen = sizeof(batch->names[i]),
			.msg_iov = &batch->pieces[i],
			.msg_iovlen = 1,
			.msg_control = batch->control[i],
			.msg_controllen = sizeof(batch->control[i]),
		};
	}
	n = recvmmsg(fd, batch->messages, SL_BATCH, MSG_DONTWAIT, NULL);
	return n < 0 ? -errno : n;
}

static void drop(struct sl_relay_flow *flow, unsigned int count)
{
	flow->relay->counts[SL_RELAY_FLOW_DROPPED] += count;
}

/* Errors that are about one datagram, or that pass; all others are the far end's. */
static bool is_passing(int code)
{
	return code == EAGAIN || code == EINTR || code == EMSGSIZE || code == ENOBUFS ||
	       code == ENOMEM;
}

struct way {
	struct sl_flow_end *from, *to;
	enum sl_relay_cause from_cause, to_cause;
	uint64_t *bytes, *datagrams;
};

static bool same_client(const struct sl_relay_flow *flow, const struct sockaddr_storage *name)
{
	if (name->ss_family == AF_INET) {
		const struct sockaddr_in *a = (const struct sockaddr_in *)&flow->client;
		const struct sockaddr_in *b = (const struct sockaddr_in *)name;

		return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
	}
	const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)&flow->client;
	const struct sockaddr_in6 *b = (const struct sockaddr_in6 *)name;

	return a->sin6_port == b->sin6_port &&
	       !memcmp(&a->sin6_addr, &b->sin6_addr, sizeof(a->sin6_addr));
}

/*
 * Makes messages that were received into ones to send. What came before the socket was
 * connected may be another client's: it is left out.
 */
static unsigned int prepare(struct sl_relay_flow *flow, struct sl_batch *batch, unsigned int n,
			    bool of_client)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (of_client && !same_client(flow, &batch->names[i]))
			continue;
		batch->pieces[i].iov_len = batch->messages[i].msg_len;
		batch->messages[kept++].msg_hdr =
			(struct msghdr){ .msg_iov = &batch->pieces[i], .msg_iovlen = 1 };
	}
	drop(flow, n - kept);
	return kept;
}

/* False: the flow has failed. */
static bool send_batch(struct sl_relay_flow *flow, const struct way *way, unsigned int n)
{
	struct mmsghdr *messages = flow->relay->batch->messages;
	unsigned int at = 0;

	while (at < n) {
		int sent =
			sendmmsg(way->to->fd, messages + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
		int code = errno;

		for (int i = 0; i < sent; i++)
			*way->bytes += messages[at + (unsigned int)i].msg_len;
		if (sent > 0) {
			*way->datagrams += (unsigned int)sent;
			at += (unsigned int)sent;
		} else if (is_passing(code)) {
			/* Datagrams may get lost, and later ones count more. */
			drop(flow, 1);
			at++;
		} else {
			sl_flow_fail(flow, way->to_cause, code);
			return false;
		}
	}
	return true;
}

static void move(struct sl_relay_flow *flow, const struct way *way, bool of_client)
{
	struct sl_batch *batch = flow->relay->batch;

	for (unsigned int turn = 0; turn < TURN && !flow->ended; turn++) {
		int n = sl_batch_receive(batch, way->from->fd);

		if (n < 0 && !is_passing(-n))
			sl_flow_fail(flow, way->from_cause, -n);
		if (n <= 0)
			return;
		sl_flow_touch(flow);
		if (!send_batch(flow, way, prepare(flow, batch, (unsigned int)n, of_client)) ||
		    n < SL_BATCH)
			return;
	}
}

static struct way way_out(struct sl_relay_flow *flow)
{
	return (struct way){ .from = &flow->inner,
			     .to = &flow->outer,
			     .from_cause = SL_RELAY_CAUSE_CLIENT,
			     .to_cause = SL_RELAY_CAUSE_SERVER,
			     .bytes = &flow->end.bytes_sent,
			     .datagrams = &flow->end.datagrams_sent };
}

void sl_flow_inner_ready(struct sl_watch *watch, uint32_t events)
{
	struct sl_relay_flow *flow = SL_OWNER(watch, struct sl_relay_flow, inner.watch);
	struct way way = way_out(flow);

	(void)events;
	if (!flow->ended)
		move(flow, &way, true);
}

void sl_flow_outer_ready(struct sl_watch *watch, uint32_t events)
{
	struct sl_relay_flow *flow = SL_OWNER(watch, struct sl_relay_flow, outer.watch);
	struct way way = { .from = &flow->outer,
			   .to = &flow->inner,
			   .from_cause = SL_RELAY_CAUSE_SERVER,
			   .to_cause = SL_RELAY_CAUSE_CLIENT,
			   .bytes = &flow->end.bytes_received,
			   .datagrams = &flow->end.datagrams_received };

	(void)events;
	if (!flow->ended)
		move(flow, &way, false);
}

static void send_one(struct sl_relay_flow *flow, const void *data, size_t size)
{
	if (send(flow->outer.fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
		flow->end.bytes_sent += size;
		flow->end.datagrams_sent++;
	} else if (is_passing(errno)) {
		drop(flow, 1);
	} else {
		sl_flow_fail(flow, SL_RELAY_CAUSE_SERVER, errno);
	}
}

void sl_flow_take(struct sl_relay_flow *flow, const void *data, size_t size)
{
	struct sl_flow_held *held;

	if (flow->ended || flow->refused) {
		drop(flow, 1);
		return;
	}
	if (flow->answered) {
		sl_flow_touch(flow);
		send_one(flow, data, size);
		return;
	}
	held = flow->held_bytes + size <= SL_RELAY_FLOW_HELD_MAX ? malloc(sizeof(*held) + size)
								 : NULL;
	if (!held) {
		drop(flow, 1);
		return;
	}
	memcpy(held->data, data, size);
	held->size = size;
	/* Empty datagrams take memory, too. */
	flow->held_bytes += size + sizeof(*held);
	STAILQ_INSERT_TAIL(&flow->held, held, all);
}

void sl_flow_drop_held(struct sl_relay_flow *flow)
{
	struct sl_flow_held *held;

	while ((held = STAILQ_FIRST(&flow->held))) {
		STAILQ_REMOVE_HEAD(&flow->held, all);
		free(held);
		drop(flow, 1);
	}
	flow->held_bytes = 0;
}

void sl_flow_send_held(struct sl_relay_flow *flow)
{
	struct sl_flow_held *held;

	while (!flow->ended && (held = STAILQ_FIRST(&flow->held))) {
		STAILQ_REMOVE_HEAD(&flow->held, all);
		send_one(flow, held->data, held->size);
		free(held);
	}
}
