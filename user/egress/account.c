/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of passages, told as the kernel tells what it sees: the hooks see the relay. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/log.h"
#include "egress/passage.h"

static void account(struct sl_egress *egress, struct sl_relayed *relayed)
{
	int rc = sl_relayed_tell(egress->set, relayed);

	if (rc)
		sl_log_error("sandbox %u: what became of a connection could not be told: %s",
			     egress->sandbox, strerror(-rc));
}

static void fill_end(struct sl_endpoint *end, const struct sl_addr *addr, uint16_t port)
{
	*end = (struct sl_endpoint){ .port_be = htons(port) };
	memcpy(end->addr_be, addr->be, sizeof(end->addr_be));
}

static void name_client(struct sl_egress *egress, struct sl_relayed *relayed, const char *name,
			bool named)
{
	pthread_mutex_lock(&egress->lock);
	/* What a workload made up is kept apart from what rules have. */
	(void)sl_naming_intern(egress->naming, name, named ? 0 : SL_NAME_DENIED,
			       &relayed->sock.name);
	pthread_mutex_unlock(&egress->lock);
}

/* The client's record, with what it has asked for and by which name. */
static void fill(struct sl_relayed *relayed, struct sl_passage *passage)
{
	struct sl_egress *egress = passage->loop->egress;

	*relayed = (struct sl_relayed){
		.sock = passage->client,
		.sandbox = egress->sandbox,
		.counter = SL_COUNTER_MAX,
	};
	(void)sl_sock_more_read(egress->set, &passage->client, &relayed->more);
	fill_end(&relayed->more.original, &passage->addr, passage->port);
	relayed->sock.flags |= SL_SOCK_MORE;
	/* By that it would be called what its connection to the proxy is. */
	if (passage->explicit)
		relayed->sock.name = 0;
	if (!passage->name[0])
		return;
	name_client(egress, relayed, passage->name, passage->named);
}

void sl_passage_asked(struct sl_passage *passage)
{
	struct sl_relayed relayed;

	if (!passage->explicit || passage->asked)
		return;
	passage->asked = true;
	fill(&relayed, passage);
	relayed.kind = SL_EVENT_REQUEST;
	account(passage->loop->egress, &relayed);
}

static void unreachable(struct sl_egress *egress, struct sl_relayed *relayed, int code)
{
	relayed->kind = SL_EVENT_UNREACHABLE;
	relayed->counter = SL_COUNTER_RELAY_UNREACHABLE;
	relayed->sock.error = code;
	/* As the socket would be, had it been connected there itself. */
	relayed->sock.flags &= ~SL_SOCK_ESTABLISHED;
	relayed->sock.flags |= SL_SOCK_RELEASED;
	relayed->sock.state = TCP_CLOSE;
	account(egress, relayed);
}

void sl_passage_unreachable(struct sl_passage *passage, const struct sl_addr *addr, uint16_t port,
			    int code)
{
	struct sl_egress *egress = passage->loop->egress;
	struct sl_relayed relayed;

	atomic_fetch_add(&egress->dial_failed, 1);
	fill(&relayed, passage);
	fill_end(&relayed.sock.remote, addr, port);
	unreachable(egress, &relayed, code);
}

void sl_egress_unresolved(struct sl_egress *egress, const struct sl_sock *client, const char *name,
			  bool named, int code)
{
	struct sl_relayed relayed = { .sock = *client, .sandbox = egress->sandbox };

	/* Neither end is where it was to go: that is not known. */
	relayed.sock.remote = (struct sl_endpoint){ 0 };
	relayed.sock.flags &= ~SL_SOCK_MORE;
	name_client(egress, &relayed, name, named);
	unreachable(egress, &relayed, code);
}

void sl_egress_malformed(struct sl_egress *egress, enum sl_head_fault fault)
{
	struct sl_relayed relayed = {
		.sandbox = egress->sandbox,
		.counter = SL_COUNTER_PROXY_BAD_REQUEST,
	};

	sl_log_debug("sandbox %u: the proxy was sent no request: %s", egress->sandbox,
		     sl_head_faults[fault].text);
	account(egress, &relayed);
}
