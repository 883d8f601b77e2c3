/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A verdict on what no hook of the kernel sees: the host that a client of a proxy names, the
 * address that a relay is about to dial, the name that is asked of the policy DNS. What a
 * lineage has is read from the guard, whose exec hook has computed it; the rest is decide().
 */
#ifndef SLUICE_USER_GUARD_ASK_H
#define SLUICE_USER_GUARD_ASK_H

#include "guard/guard.h"
#include "policy/decide.h"

/* Who asks: of a socket's record. */
struct sl_guard_who {
	__u32 lineage; /* 0: not known */
	__u32 opener;  /* lineage of who made the socket; 0: not known */
};

/* What the record of a client's socket says of who asks. */
void sl_guard_who(struct sl_guard_who *who, struct sl_set *set, const struct sl_sock *sock);

/*
 * Of `query` transport, port, addr and names count. Any miss denies. The verdict is that of
 * the policy, whatever the guard's mode: see sl_guard_ask_mode(). 0; -errno of reading the guard.
 */
int sl_guard_ask(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		 const struct sl_guard_who *who, const struct sl_query *query,
		 struct sl_decision *out);

/*
 * Makes of a denial what the sandbox's mode makes of it: audit lets it pass. Frozen denies what
 * was allowed. Returns whether it passes.
 */
bool sl_guard_ask_mode(const struct sl_guard *guard, struct sl_decision *decision);

#endif
