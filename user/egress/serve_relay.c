/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the relay asks: who is it, and where to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sockaddr.h"
#include "egress/passage.h"
#include "socket/sock_client.h"

static void stranger(struct sl_egress *egress, enum sl_transport transport)
{
	const struct sl_decision decision = { SL_VERDICT_DENY, SL_REASON_NO_IDENTITY,
					      SL_RULE_NONE };

	atomic_fetch_add(&egress->strangers, 1);
	sl_egress_tell(egress, NULL, transport == SL_TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP,
		       NULL, NULL, &decision, sl_egress_policy(egress));
}

/* A name, or an address in text form; false: neither. */
static bool take_host(struct sl_passage *passage, const char *host)
{
	struct sl_prefix prefix;

	if (!sl_prefix_parse(host, &prefix) && prefix.len == 128) {
		passage->addr = prefix.addr;
		return true;
	}
	if (sl_host_normal(passage->name, host, NULL))
		return false;
	if (sl_host_is_local(passage->name)) {
		passage->addr = (struct sl_addr){ { 0, 0, SL_BE32(0xffff), SL_BE32(0x7f000001) } };
		passage->name[0] = '\0';
	}
	return true;
}

static bool take_original(struct sl_passage *passage, const struct sockaddr_storage *original)
{
	struct sl_endpoint end;

	if (!sl_sockaddr_endpoint(&end, original))
		return false;
	passage->port = ntohs(end.port_be);
	memcpy(passage->addr.be, end.addr_be, sizeof(passage->addr.be));
	return true;
}

/*
 * By which name. The address of a synthetic one's name is looked up; a real one is dialled as it
 * is, and its name, if one was asked for, is what the rules are about.
 */
static bool take_name(struct sl_passage *passage)
{
	const struct sl_lease_client client = { .tgid = passage->client.owner.tgid,
						.start_ns = passage->client.owner.start_ns };
	struct sl_egress *egress = passage->loop->egress;

	if (passage->name[0])
		return true;
	passage->has_addr = !sl_pool_has(egress->pool, &passage->addr);
	passage->named = sl_egress_name(egress, &passage->addr, &client, passage->name);
	/* A synthetic address that stands for no name leads nowhere. */
	return passage->has_addr || passage->name[0];
}

/* Who is asking: nobody, or another sandbox', is a stranger. */
static int find_client(struct sl_passage *passage, const struct sl_relay_ask *ask)
{
	struct sl_egress *egress = passage->loop->egress;
	struct sl_endpoint from = { 0 };
	int rc;

	(void)sl_sockaddr_endpoint(&from, &ask->client);
	rc = passage->transport == SL_TRANSPORT_UDP
		     ? sl_sock_by_datagram(egress->set, egress->netns_cookie, IPPROTO_UDP,
					   from.port_be, &passage->client)
		     : sl_sock_client(egress->set, ask->fd, &passage->client);
	return rc ?: passage->client.owner.sandbox == egress->sandbox ? 0 : -ENOENT;
}

/* NULL: a stranger's, or no memory. */
static struct sl_passage *begin(struct sl_egress_loop *loop, const struct sl_relay_ask *ask)
{
	struct sl_passage *passage = calloc(1, sizeof(*passage));

	if (!passage)
		return NULL;
	passage->loop = loop;
	passage->source = ask->client;
	passage->original = ask->original;
	passage->explicit = ask->host;
	passage->transport = ask->way == SL_RELAY_WAY_UDP ? SL_TRANSPORT_UDP : SL_TRANSPORT_TCP;
	if (find_client(passage, ask)) {
		stranger(loop->egress, passage->transport);
		free(passage);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&loop->passages, passage, entry);
	return passage;
}

static void unmapped(struct sl_passage *passage)
{
	const struct sl_decision decision = { SL_VERDICT_DENY, SL_REASON_UNMAPPED_NAME,
					      SL_RULE_NONE };
	struct sl_endpoint remote = { .port_be = htons(passage->port) };
	struct sl_egress *egress = passage->loop->egress;

	memcpy(remote.addr_be, passage->addr.be, sizeof(remote.addr_be));
	sl_egress_tell(egress, &passage->client,
		       passage->transport == SL_TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP, &remote,
		       NULL, &decision, sl_egress_policy(egress));
	sl_passage_refuse(passage, SL_RELAY_DENIED, sl_reason_name(SL_REASON_UNMAPPED_NAME));
}

static void set_off(struct sl_passage *passage, const struct sl_relay_ask *ask)
{
	passage->port = ask->port;
	if (ask->host && !take_host(passage, ask->host))
		sl_passage_refuse_odd(passage, ask->host);
	else if ((ask->host || take_original(passage, &ask->original)) && take_name(passage))
		sl_passage_go(passage);
	else
		unmapped(passage);
}

static void admit(void *arg, struct sl_relay_stream *stream, const struct sl_relay_ask *ask)
{
	struct sl_egress_loop *loop = arg;
	struct sl_passage *passage = begin(loop, ask);

	if (!passage) {
		(void)sl_relay_refuse(stream, SL_RELAY_DENIED,
				      sl_reason_name(SL_REASON_NO_IDENTITY), NULL);
		return;
	}
	atomic_fetch_add(&loop->egress->streams, 1);
	passage->stream = stream;
	sl_relay_set(stream, passage);
	set_off(passage, ask);
}

static void flow_admit(void *arg, struct sl_relay_flow *flow, const struct sl_relay_ask *ask)
{
	struct sl_egress_loop *loop = arg;
	struct sl_passage *passage = begin(loop, ask);

	if (!passage) {
		(void)sl_relay_flow_refuse(flow);
		return;
	}
	atomic_fetch_add(&loop->egress->flows, 1);
	passage->flow = flow;
	sl_relay_flow_set(flow, passage);
	set_off(passage, ask);
}

/* NULL: a stranger's. */
static void over(struct sl_passage *passage)
{
	if (passage)
		sl_passage_free(passage);
}

static void gone(void *arg, struct sl_relay_stream *stream)
{
	(void)arg;
	over(sl_relay_get(stream));
}

static void ended(void *arg, struct sl_relay_stream *stream, const struct sl_relay_end *end)
{
	(void)arg;
	(void)end;
	over(sl_relay_get(stream));
}

static void unreachable(void *arg, struct sl_relay_stream *stream, const struct sl_relay_end *end)
{
	(void)arg;
	sl_passage_unreachable(sl_relay_get(stream), &end->address, end->port, end->code);
}

static void malformed(void *arg, void *listener, enum sl_head_fault fault)
{
	struct sl_egress_loop *loop = arg;

	(void)listener;
	sl_egress_malformed(loop->egress, fault);
}

static void flow_gone(void *arg, struct sl_relay_flow *flow)
{
	(void)arg;
	over(sl_relay_flow_get(flow));
}

static void flow_ended(void *arg, struct sl_relay_flow *flow, const struct sl_relay_end *end)
{
	struct sl_passage *passage = sl_relay_flow_get(flow);

	(void)arg;
	if (passage && !end->connected && end->code)
		sl_passage_unreachable(passage, &end->address, end->port, end->code);
	over(passage);
}

const struct sl_relay_ops sl_egress_relay_ops = {
	.admit = admit,
	.gone = gone,
	.ended = ended,
	.unreachable = unreachable,
	.malformed = malformed,
	.flow_admit = flow_admit,
	.flow_gone = flow_gone,
	.flow_ended = flow_ended,
};
