/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the command of `sluice run --policy`, or a sandbox of the agent, reaches what the policy
 * names: by the host's network or by a relay, names by policy DNS or by the host's resolver.
 *
 *	sl_reach_open(&reach, &options, place, &err);	checks; a relay's namespace is made
 *	sl_reach_listen(reach, set, sandbox, name, apply, &err);	before a policy is loaded
 *	…  sl_apply_load(apply) calls sl_reach_ready()
 *	sl_reach_switch(reach, loaded);			before the command starts
 *	child: sl_reach_enter(reach)
 *	sl_reach_free(&reach);				before the set is
 */
#ifndef SLUICE_USER_RUN_REACH_H
#define SLUICE_USER_RUN_REACH_H

#include "egress/egress.h"

/* In all that is not about making one, NULL serves nothing: names are looked up here. */
struct sl_reach;

enum sl_reach_net {
	SL_REACH_NET_HOST,
	SL_REACH_NET_RELAY, /* a namespace with loopback only, and a relay */
	SL_REACH_NET_MAX
};

extern const char *const sl_reach_net_names[SL_REACH_NET_MAX + 1]; /* ends with NULL */

/* How names become addresses. */
enum sl_reach_dns {
	SL_REACH_DNS_AUTO,   /* policy DNS, if the policy has names */
	SL_REACH_DNS_POLICY, /* always */
	SL_REACH_DNS_HOST,   /* looked up here from time to time; the command asks whom it may */
	SL_REACH_DNS_MAX
};

extern const char *const sl_reach_dns_names[SL_REACH_DNS_MAX + 1];

/* As given on the command line; NULL: not. */
struct sl_reach_options {
	unsigned int net;     /* enum sl_reach_net */
	unsigned int dns;     /* enum sl_reach_dns */
	const char *upstream; /* "ADDRESS[:PORT]", up to three with commas; else resolv.conf */
	/* "ADDRESS:PORT"; direct: a transparent one, one of each family with a comma. */
	const char *proxy;
	/* Direct: whose sockets are told where to, for as long as the set has it; NULL: nobody's. */
	const char *proxy_cgroup;
	const char *inspect; /* "ADDRESS:PORT" */
};

/* Whether anything but the defaults was asked for. */
bool sl_reach_asked(const struct sl_reach_options *options);

/* Where another one than the caller makes the sandbox. */
struct sl_reach_place {
	int netns;           /* the members', borrowed; -1: this process' */
	bool resume;         /* a process before this one served it */
	unsigned int mark;   /* SO_MARK of what is dialled; 0: none */
	const char *device;  /* SO_BINDTODEVICE of that; NULL: none */
	unsigned int relays; /* threads of the relay; 0: one a CPU */
};

/*
 * Texts of `options` are borrowed. `place` NULL: a relay's namespace is made, and messages name
 * options of the command line. -EINVAL with what is wrong.
 */
int sl_reach_open(struct sl_reach **out, const struct sl_reach_options *options,
		  const struct sl_reach_place *place, struct sl_err *err);
void sl_reach_free(struct sl_reach **reach);

/* What of it the policy has to be opened with: names_by_dns, own_netns, inspects. */
void sl_reach_apply_options(const struct sl_reach *reach, struct sl_apply_options *options);

/* Whether a transparent proxy takes what is allowed: sl_reach_listen() sees to it. */
bool sl_reach_leads(const struct sl_reach *reach);

/* Whether there is something to serve: a relay, or DNS for a policy with names. */
bool sl_reach_serves(const struct sl_reach *reach, const struct sl_apply *apply);

/*
 * Where there is not, this and the rest do nothing; again, and where it has been done, too. Who
 * asks waits for a policy.
 */
int sl_reach_listen(struct sl_reach *reach, struct sl_set *set, unsigned int sandbox,
		    const struct sl_apply *apply, struct sl_err *err);

int sl_reach_ready(struct sl_reach *reach, struct sl_apply *apply, __u32 policy_id,
		   struct sl_err *err);

/* The policy is in force, or (false) will not be; the one before is borrowed until then. */
void sl_reach_switch(struct sl_reach *reach, bool loaded);

/* Takes back listen: the members' questions go where they are sent. */
void sl_reach_unlisten(struct sl_reach *reach);

/* The relay's namespace, which stays its own; -1: none. */
int sl_reach_netns(const struct sl_reach *reach);

/* In the child, while it may: moves into the relay's namespace. 0 or -errno. */
int sl_reach_enter(const struct sl_reach *reach);

/* Untouched where nothing is served. */
void sl_reach_stats(const struct sl_reach *reach, struct sl_egress_stats *out);

/* Warns of what could not be served, if there is something. */
void sl_reach_tell(const struct sl_egress_stats *stats);

#endif
