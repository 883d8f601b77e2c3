/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One stream or flow on its way through the relay: who it is from, where it wants to go, the
 * verdict, the look-up of the name, the dial. Belongs to its loop, and ends with the stream.
 */
#ifndef SLUICE_USER_EGRESS_PASSAGE_H
#define SLUICE_USER_EGRESS_PASSAGE_H

#include "egress/egress_private.h"

struct sl_passage {
	TAILQ_ENTRY(sl_passage) entry;
	struct sl_egress_loop *loop;
	struct sl_relay_stream *stream; /* or flow: one of the two */
	struct sl_relay_flow *flow;
	struct sl_resolver_request *request; /* waited for */
	struct sl_sock client;
	struct sockaddr_storage source, original;
	char name[SL_LEASE_NAME]; /* "": it asks for an address */
	struct sl_addr addr;      /* that it asks for; with a name: the synthetic one, or none */
	bool has_addr;            /* addr is an address to dial */
	bool explicit;            /* asked of the explicit proxy */
	bool asked;               /* and that was told */
	bool named;               /* a rule has the name, or it was leased */
	enum sl_transport transport;
	uint16_t port; /* host order */
	struct sl_addr targets[SL_RELAY_ADDRESSES_MAX];
	unsigned int target_count;
};

/* Takes it on its way; what it is for is filled in. */
void sl_passage_go(struct sl_passage *passage);
/* It asked for `host`, which is neither a name nor an address. */
void sl_passage_refuse_odd(struct sl_passage *passage, const char *host);
/* Whether the policy in force still lets it be; told if not. */
bool sl_passage_may_stay(struct sl_passage *passage);
void sl_passage_free(struct sl_passage *passage);
/* Refuses it; `reason` is one word, NULL: the refusal's own. */
void sl_passage_refuse(struct sl_passage *passage, enum sl_relay_refusal refusal,
		       const char *reason);

/* --- account.c --- */

/*
 * What an explicit proxy was asked for: an event, and from now on in the client's record. Once
 * it is decided, since a name that no rule has is kept among those; nothing for others.
 */
void sl_passage_asked(struct sl_passage *passage);

/* It could not be made: `code` is errno of the dial, or of the look-up, whose address is none. */
void sl_passage_unreachable(struct sl_passage *passage, const struct sl_addr *addr, uint16_t port,
			    int code);

/* --- head.c --- */

/* The PROXY v2 head for it, `size` bytes of room; its length or -errno. */
int sl_passage_head(struct sl_passage *passage, void *head, size_t size);

#endif
