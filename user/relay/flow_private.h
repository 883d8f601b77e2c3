/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flows: flow.c has their life, datagram.c their datagrams, flow_socket.c their sockets. */
#ifndef SLUICE_USER_RELAY_FLOW_PRIVATE_H
#define SLUICE_USER_RELAY_FLOW_PRIVATE_H

#include "relay/relay_private.h"

#define SL_BATCH 16           /* datagrams of one call */
#define SL_DATAGRAM_MAX 65536 /* more than any */

/* Both ends as struct sl_addr, and the listener: a name in one sandbox is none in another. */
struct sl_flow_key {
	struct sl_addr client, original;
	__be16 client_port_be, original_port_be;
	int listener;
};

struct sl_flow_held {
	STAILQ_ENTRY(sl_flow_held) all;
	size_t size;
	uint8_t data[];
};

struct sl_flow_end {
	int fd; /* -1: none */
	struct sl_watch watch;
};

struct sl_relay_flow {
	LIST_ENTRY(sl_relay_flow) all;
	STAILQ_ENTRY(sl_relay_flow) done;
	struct sl_relay *relay;
	struct sl_flow_key key;
	struct sockaddr_storage client, original;
	int netns; /* of the listener, owned; -1: the thread's own */
	void *data;
	struct sl_flow_end inner, outer; /* towards the client, the target */
	struct sl_timer idle;
	STAILQ_HEAD(, sl_flow_held) held; /* until it is answered */
	size_t held_bytes;
	uint64_t since_ns;
	struct sl_relay_end end;
	bool answered, refused, ended, failing;
};

struct sl_batch {
	struct mmsghdr messages[SL_BATCH];
	struct iovec pieces[SL_BATCH];
	struct sockaddr_storage names[SL_BATCH];
	_Alignas(struct cmsghdr) uint8_t control[SL_BATCH][CMSG_SPACE(sizeof(struct sockaddr_in6))];
	uint8_t data[SL_BATCH][SL_DATAGRAM_MAX];
};

/* flow.c */
void sl_flow_fail(struct sl_relay_flow *flow, enum sl_relay_cause cause, int code);
void sl_flow_touch(struct sl_relay_flow *flow);

/* datagram.c */
/* A datagram of the client that came by another way than the flow's own socket. */
void sl_flow_take(struct sl_relay_flow *flow, const void *data, size_t size);
void sl_flow_send_held(struct sl_relay_flow *flow);
void sl_flow_drop_held(struct sl_relay_flow *flow);
void sl_flow_inner_ready(struct sl_watch *watch, uint32_t events);
void sl_flow_outer_ready(struct sl_watch *watch, uint32_t events);
/* Up to a batch; the number or -errno. With names and control messages. */
int sl_batch_receive(struct sl_batch *batch, int fd);

/* flow_socket.c */
/* The flow's own end of the original destination, in the namespace of the client. */
int sl_flow_socket(struct sl_relay_flow *flow, int *out);

#endif
