// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/epoll.h"
#include "relay/flow_private.h"

/* linux/in6.h, which does not go with netinet/in.h. */
#ifndef IPV6_ORIGDSTADDR
#define IPV6_ORIGDSTADDR 74
#endif

void sl_flow_fail(struct sl_relay_flow *flow, enum sl_relay_cause cause, int code)
{
	if (flow->ended)
		return;
	flow->ended = true;
	flow->end.cause = cause;
	flow->end.code = code;
	sl_timer_off(&flow->idle);
	STAILQ_INSERT_TAIL(&flow->relay->ended_flows, flow, done);
	sl_relay_kick(flow->relay);
}

void sl_flow_touch(struct sl_relay_flow *flow)
{
	sl_timer_set(&flow->idle, &flow->relay->flow_idles, sl_relay_now_ms(flow->relay));
}

static void idle_due(struct sl_timer *timer)
{
	struct sl_relay_flow *flow = SL_OWNER(timer, struct sl_relay_flow, idle);

	flow->relay->counts[SL_RELAY_IDLE]++;
	sl_flow_fail(flow, flow->refused ? SL_RELAY_CAUSE_REFUSED : SL_RELAY_CAUSE_IDLE, 0);
}

int sl_flow_init(struct sl_relay *relay)
{
	LIST_INIT(&relay->flows);
	STAILQ_INIT(&relay->ended_flows);
	sl_timer_queue_init(&relay->flow_idles, relay->options.flow_idle_ms, idle_due);
	return sl_htab_new(&relay->flow_table, sizeof(struct sl_flow_key), sizeof(void *));
}

void sl_flow_clear(struct sl_relay *relay)
{
	sl_htab_free(&relay->flow_table);
	free(relay->batch);
	relay->batch = NULL;
}

int sl_flow_listen(struct sl_relay *relay, const struct sl_relay_listener *listener,
		   struct sl_err *err)
{
	const int on = 1;
	int family = 0;
	socklen_t len = sizeof(family);

	if (!relay->batch)
		relay->batch = malloc(sizeof(*relay->batch));
	if (!relay->batch)
		return sl_err_sys(err, ENOMEM, "can't make room for datagrams");
	if (getsockopt(listener->fd, SOL_SOCKET, SO_DOMAIN, &family, &len) ||
	    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(listener->fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof(on)) ||
	    (family == AF_INET6 &&
	     setsockopt(listener->fd, IPPROTO_IPV6, IPV6_ORIGDSTADDR, &on, sizeof(on))))
		return sl_err_sys(err, errno, "can't learn where datagrams were sent to");
	return 0;
}

/* An IPv6 socket has IPv4 ends as mapped addresses; control messages have them plain. */
static void normalize(struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 v6 = *(const struct sockaddr_in6 *)addr;
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;

	if (addr->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return;
	memset(addr, 0, sizeof(*addr));
	v4->sin_family = AF_INET;
	v4->sin_port = v6.sin6_port;
	memcpy(&v4->sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4->sin_addr));
}

static __be16 split(const struct sockaddr_storage *from, struct sl_addr *addr)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

	if (from->ss_family == AF_INET) {
		*addr = (struct sl_addr){ { 0, 0, SL_BE32(0xffff), v4->sin_addr.s_addr } };
		return v4->sin_port;
	}
	memcpy(addr->be, &v6->sin6_addr, sizeof(addr->be));
	return v6->sin6_port;
}

static int find_original(struct msghdr *message, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR;
		bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR;
		size_t size = v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

		if ((!v4 && !v6) || c->cmsg_len < CMSG_LEN(size))
			continue;
		memcpy(out, CMSG_DATA(c), size);
		normalize(out);
		return 0;
	}
	return -ENOENT;
}

static int add_flow(struct sl_relay_entry *entry, const struct sl_flow_key *key,
		    const struct sockaddr_storage *client, const struct sockaddr_storage *original,
		    struct sl_relay_flow **out)
{
	struct sl_relay *relay = entry->relay;
	_cleanup_free_ struct sl_relay_flow *flow = calloc(1, sizeof(*flow));
	struct sl_relay_flow **row;

	if (!flow)
		return -ENOMEM;
	flow->netns = -1;
	/* The listener may be gone before the flow is answered, and its namespace with it. */
	if (entry->listener.netns >= 0)
		flow->netns = fcntl(entry->listener.netns, F_DUPFD_CLOEXEC, 0);
	if (entry->listener.netns >= 0 && flow->netns < 0)
		return -errno;
	row = sl_htab_add(relay->flow_table, key, NULL);
	if (!row) {
		sl_cleanup_fd(&flow->netns);
		return -ENOMEM;
	}
	flow->relay = relay;
	flow->key = *key;
	flow->client = *client;
	flow->original = *original;
	flow->inner = (struct sl_flow_end){ -1, { sl_flow_inner_ready } };
	flow->outer = (struct sl_flow_end){ -1, { sl_flow_outer_ready } };
	flow->since_ns = sl_relay_now_ns();
	STAILQ_INIT(&flow->held);
	LIST_INSERT_HEAD(&relay->flows, flow, all);
	relay->flow_count++;
	relay->counts[SL_RELAY_FLOWS]++;
	sl_flow_touch(flow);
	*out = *row = TAKE_PTR(flow);
	return 0;
}

/* One datagram that came to the listener. */
static void take(struct sl_relay_entry *entry, struct msghdr *message, size_t size)
{
	struct sl_relay *relay = entry->relay;
	struct sockaddr_storage client = *(struct sockaddr_storage *)message->msg_name, original;
	struct sl_relay_ask ask = { .way = SL_RELAY_WAY_UDP,
				    .listener = entry->listener.arg,
				    .fd = entry->listener.fd };
	struct sl_flow_key key = { .listener = entry->listener.fd };
	struct sl_relay_flow **found, *flow = NULL;

	if (find_original(message, &original)) {
		relay->counts[SL_RELAY_FLOW_DROPPED]++;
		return;
	}
	normalize(&client);
	key.client_port_be = split(&client, &key.client);
	key.original_port_be = split(&original, &key.original);
	found = sl_htab_get(relay->flow_table, &key);
	if (found) {
		sl_flow_take(*found, message->msg_iov->iov_base, size);
		return;
	}
	if (relay->flow_count >= relay->options.flows ||
	    add_flow(entry, &key, &client, &original, &flow)) {
		relay->counts[SL_RELAY_FLOWS_FULL]++;
		return;
	}
	sl_flow_take(flow, message->msg_iov->iov_base, size);
	ask.client = client;
	ask.original = original;
	relay->options.ops->flow_admit(relay->options.arg, flow, &ask);
}

void sl_flow_receive(struct sl_relay_entry *entry)
{
	struct sl_batch *batch = entry->relay->batch;
	int n = sl_batch_receive(batch, entry->listener.fd);

	for (int i = 0; i < n && !entry->removed; i++)
		take(entry, &batch->messages[i].msg_hdr, batch->messages[i].msg_len);
}

static void destroy(struct sl_relay_flow *flow)
{
	struct sl_relay *relay = flow->relay;
	const struct sl_relay_ops *ops = relay->options.ops;

	LIST_REMOVE(flow, all);
	relay->flow_count--;
	sl_htab_del(relay->flow_table, &flow->key);
	sl_flow_drop_held(flow);
	sl_epoll_close(relay->epoll, &flow->inner.fd);
	sl_epoll_close(relay->epoll, &flow->outer.fd);
	sl_cleanup_fd(&flow->netns);
	flow->end.duration_us = (sl_relay_now_ns() - flow->since_ns) / 1000;
	if (flow->answered)
		ops->flow_ended(relay->options.arg, flow, &flow->end);
	else
		ops->flow_gone(relay->options.arg, flow);
	free(flow);
}

void sl_flow_reap(struct sl_relay *relay)
{
	struct sl_relay_flow *flow;

	while ((flow = STAILQ_FIRST(&relay->ended_flows))) {
		STAILQ_REMOVE_HEAD(&relay->ended_flows, done);
		destroy(flow);
	}
}

void sl_flow_end_all(struct sl_relay *relay)
{
	struct sl_relay_flow *flow;

	LIST_FOREACH(flow, &relay->flows, all)
	sl_flow_fail(flow, SL_RELAY_CAUSE_FREED, 0);
}

static int may_answer(const struct sl_relay_flow *flow)
{
	if (flow->answered)
		return -EALREADY;
	return flow->ended ? -ECONNRESET : 0;
}

int sl_relay_flow_dial(struct sl_relay_flow *flow, const struct sl_relay_target *target)
{
	struct sl_relay *relay = flow->relay;
	int ret = may_answer(flow) ?: sl_dial_check(target);

	if (!ret && target->head_size)
		ret = -EINVAL;
	if (ret)
		return ret;
	flow->answered = true;
	flow->end.address = target->addresses[0];
	flow->end.port = target->port;
	ret = sl_dial_socket(SOCK_DGRAM, target, &target->addresses[0], &flow->outer.fd);
	if (!ret)
		ret = sl_flow_socket(flow, &flow->inner.fd);
	if (!ret)
		ret = sl_relay_watch(relay, flow->outer.fd, EPOLLIN, &flow->outer.watch);
	if (!ret)
		ret = sl_relay_watch(relay, flow->inner.fd, EPOLLIN, &flow->inner.watch);
	if (ret) {
		relay->counts[SL_RELAY_DIAL_FAILED]++;
		sl_flow_fail(flow,
			     sl_relay_is_shortage(-ret) ? SL_RELAY_CAUSE_MEMORY
							: SL_RELAY_CAUSE_DIAL,
			     -ret);
		return 0;
	}
	flow->end.connected = true;
	relay->counts[SL_RELAY_CONNECTED]++;
	sl_flow_touch(flow);
	sl_flow_send_held(flow);
	sl_relay_kick(relay);
	return 0;
}

int sl_relay_flow_refuse(struct sl_relay_flow *flow)
{
	int ret = may_answer(flow);

	if (ret)
		return ret;
	flow->answered = flow->refused = true;
	flow->relay->counts[SL_RELAY_REFUSED]++;
	sl_flow_drop_held(flow);
	return 0;
}

void sl_relay_flow_reset(struct sl_relay_flow *flow)
{
	sl_flow_fail(flow, SL_RELAY_CAUSE_RESET, 0);
}

void sl_relay_flow_set(struct sl_relay_flow *flow, void *data)
{
	flow->data = data;
}

void *sl_relay_flow_get(const struct sl_relay_flow *flow)
{
	return flow->data;
}
