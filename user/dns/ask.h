/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking the resolver for records of any type: for the server. What else is asked for is
 * addresses (dns/resolver.h).
 */
#ifndef SLUICE_USER_DNS_ASK_H
#define SLUICE_USER_DNS_ASK_H

#include "dns/message.h"
#include "dns/resolver.h"

struct sl_ask; /* one who waits */

/* Valid during the call. */
struct sl_reply {
	int error;               /* as sl_resolver_addresses_fn, but for -ENOENT and -ENODATA */
	const ldns_pkt *message; /* NOERROR or NXDOMAIN; NULL with an error */
	const char *upstream;    /* "192.0.2.1:53"; NULL: from the cache, or none answered */
};

typedef void (*sl_ask_fn)(void *arg, const struct sl_reply *reply);

/*
 * `fn` is called once: from here when the answer is at hand, *ask is untouched then and 1 is
 * returned; else later from sl_resolver_run(), *ask is what to cancel until then, and 0 is
 * returned. -ENOMEM, -ENOBUFS: not asked, `fn` is not called.
 */
int sl_ask(struct sl_resolver *resolver, const struct sl_question *question, sl_ask_fn fn,
	   void *arg, struct sl_ask **ask);

/* Whether it would be answered from the cache now. */
bool sl_ask_at_hand(const struct sl_resolver *resolver, const struct sl_question *question);

/* `fn` is not called. *ask becomes NULL. */
void sl_ask_cancel(struct sl_ask **ask);

#endif
