/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a sandbox reaches what its policy names: policy DNS, whose answers become leases in the
 * guard, and, where the sandbox has a network namespace with loopback only, the relay that
 * dials for it outside. Each has its threads here, and fails alone.
 *
 *	sl_egress_new(&egress, &options, &err);		listeners are there, nobody serves yet
 *	sl_egress_start(egress, &err);
 *	sl_apply_load(…, ready calls sl_egress_ready(egress, apply, policy_id))
 *	sl_egress_switch(egress, true);			the policy is in force; members may run
 *	a reload: sl_apply_load() with ready, sl_egress_switch(egress, loaded)
 *	sl_egress_free(&egress);
 *
 * Rules
 * 1. A name is asked upstream only if a rule names it; an address is told only if a rule lets
 *    the name have it, and only after the guard knows it. So what a client was told is what
 *    it may reach, for as long as it may still use it.
 * 2. The guard has decided a connection before it arrives at the relay. Where to is decided
 *    here again, on the very address that is dialled, by the same decide().
 * 3. Who is not known to be a member of the sandbox gets nothing.
 * 4. A policy that is replaced is borrowed until the switch has returned.
 */
#ifndef SLUICE_USER_EGRESS_H
#define SLUICE_USER_EGRESS_H

#include <sys/socket.h>

#include "dns/resolver.h"
#include "guard/apply.h"
#include "kernel/set.h"

struct sl_egress;

/* Where explicit proxy requests (HTTP, SOCKS5) are taken in a relay's namespace: 127.0.0.1. */
#define SL_EGRESS_PROXY_PORT 3128

struct sl_egress_options {
	struct sl_set *set;
	unsigned int sandbox;
	int netns;   /* the members', borrowed; -1: direct, this process' */
	bool direct; /* there, too: no relay */
	bool resume; /* a process before this one served it: what its names were goes on */
	struct sl_resolver_config resolver; /* upstreams */
	const char *search;                 /* a resolv.conf(5) whose search domains clients use */
	const char *hosts;                  /* a hosts(5) that clients read before they ask DNS */
	/* Relay: all streams go to this proxy, with a PROXY v2 head. Family 0: none. */
	struct sockaddr_storage proxy;
	/* Relay: streams to endpoints with rules on requests go there, as above. */
	struct sockaddr_storage inspector;
	uint32_t mark;        /* SO_MARK of what is dialled; 0: none */
	const char *device;   /* SO_BINDTODEVICE; NULL: none; copied */
	unsigned int threads; /* of the relay; 0: one a CPU, four at most */
	unsigned int idle_ms; /* of a relayed stream; 0: no limit */
};

/* On failure nothing is left. */
int sl_egress_new(struct sl_egress **out, const struct sl_egress_options *options,
		  struct sl_err *err);
void sl_egress_free(struct sl_egress **egress);

/* Tells the guard all leases under a policy that is not in force yet. Any thread. */
int sl_egress_ready(struct sl_egress *egress, struct sl_apply *apply, __u32 policy_id,
		    struct sl_err *err);

/*
 * What was made ready is in force, or (false) will not be. Relayed streams that the policy
 * does not allow any more are reset. Any thread.
 */
void sl_egress_switch(struct sl_egress *egress, bool loaded);

/* Nobody is answered before a policy is in force; until then clients wait. */
int sl_egress_start(struct sl_egress *egress, struct sl_err *err);

struct sl_egress_stats {
	uint64_t queries, refused_names; /* asked of policy DNS; of these, no rule names it */
	uint64_t leases, synthetic;      /* that live; names with an address of their own */
	uint64_t unleased;               /* answers that were withheld: a table is full */
	uint64_t crowded;                /* the same: an address has too many names */
	uint64_t limited;                /* queries refused: too many waited */
	uint64_t lost;                   /* came faster than they were read: never seen */
	uint64_t streams, flows;         /* relayed, all so far */
	uint64_t denied;                 /* streams, flows and names */
	uint64_t dial_failed;
	uint64_t strangers; /* who asked was not known */
};
void sl_egress_stats(struct sl_egress *egress, struct sl_egress_stats *out);

#endif
