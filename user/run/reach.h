/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the command of `sluice run --policy` reaches what the policy names: by the host's
 * network or by a relay, names by policy DNS or by the host's resolver.
 *
 *	sl_reach_open(&reach, &options, &err);		checks; a relay's namespace is made
 *	sl_reach_listen(reach, set, sandbox, apply, &err);	before the policy is loaded
 *	…  sl_apply_load(apply) calls sl_reach_ready()
 *	sl_reach_start(reach, &err);			before the command starts
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
};

/* How names become addresses. */
enum sl_reach_dns {
	SL_REACH_DNS_AUTO,   /* policy DNS, if the policy has names */
	SL_REACH_DNS_POLICY, /* always */
	SL_REACH_DNS_HOST,   /* looked up here from time to time; the command asks whom it may */
};

/* As given on the command line; NULL: not. */
struct sl_reach_options {
	unsigned int net;     /* enum sl_reach_net */
	unsigned int dns;     /* enum sl_reach_dns */
	const char *upstream; /* "ADDRESS[:PORT]", up to three with commas; else resolv.conf */
	const char *proxy;    /* "ADDRESS:PORT" */
	const char *inspect;  /* "ADDRESS:PORT" */
};

/* Whether anything but the defaults was asked for. */
bool sl_reach_asked(const struct sl_reach_options *options);

/* -EINVAL with what is wrong. */
int sl_reach_open(struct sl_reach **out, const struct sl_reach_options *options,
		  struct sl_err *err);
void sl_reach_free(struct sl_reach **reach);

/* What of it the policy has to be opened with: names_by_dns, own_netns, inspects. */
void sl_reach_apply_options(const struct sl_reach *reach, struct sl_apply_options *options);

/* Whether there is something to serve: a relay, or DNS for a policy with names. */
bool sl_reach_serves(const struct sl_reach *reach, const struct sl_apply *apply);

/* Where there is not, this and the rest do nothing. */
int sl_reach_listen(struct sl_reach *reach, struct sl_set *set, unsigned int sandbox,
		    const char *name, const struct sl_apply *apply, struct sl_err *err);

int sl_reach_ready(struct sl_reach *reach, struct sl_apply *apply, __u32 policy_id,
		   struct sl_err *err);

/* The policy is in force. */
int sl_reach_start(struct sl_reach *reach, struct sl_err *err);

/* In the child, while it may: moves into the relay's namespace. 0 or -errno. */
int sl_reach_enter(const struct sl_reach *reach);

/* Warns of what could not be served, if there is something. */
void sl_reach_tell(const struct sl_reach *reach);

#endif
