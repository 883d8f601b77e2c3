/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sandbox through the agent, as a runtime makes one: a cgroup, a process in it that waits
 * under a filter, a session.
 *
 *	sl_guest_open(&guest, &spec, &err);	the cgroup; connected, Hello said
 *	sl_guest_start(&guest, args, &err);	a caller (caller.h) that waits; may be left out
 *	sl_guest_attach(&guest, &ms, &err);
 *	sl_guest_go(&guest, &err);		the caller runs
 *	sl_guest_detach(&guest, &ms, &err);	what still runs in it is killed
 *	sl_guest_clear(&guest);			of SL_GUEST_NONE too
 */
#ifndef SLUICE_BENCH_GUEST_H
#define SLUICE_BENCH_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/listener.h"
#include "child.h"
#include "control/client.h"
#include "daemon.h"

/* What a sandbox is under; all but the first allow this program GUEST_PORT of the world. */
enum sl_guest_policy {
	SL_GUEST_OBSERVE, /* nothing is decided */
	SL_GUEST_PATHS,   /* a path and an address: the kernel decides alone */
	SL_GUEST_NAMES,   /* the same, and a name that is looked up again */
	SL_GUEST_HELD,    /* a pattern of paths: each exec is held, and answered by the agent */
	SL_GUEST_POLICY_MAX
};
extern const char *const sl_guest_policies[];

struct sl_guest_spec {
	const struct sl_daemon *daemon;
	const char *parent; /* cgroup in which the sandbox's is made */
	unsigned int number;
	enum sl_guest_policy policy;
	uint16_t port;
};

struct sl_guest {
	struct sl_guest_spec spec;
	char cgroup[256];
	struct sl_control *control;
	struct sl_handoff handoff;
	int listener;
	struct sl_child child;
	char sandbox[16];
	bool attached;
};

#define SL_GUEST_NONE                                 \
	{                                             \
		.handoff = { -1, -1 }, .listener = -1 \
	}

int sl_guest_open(struct sl_guest *guest, const struct sl_guest_spec *spec, struct sl_err *err);

/* `args` are the caller's, NULL last; `keep` is a descriptor that it gets, or -1. */
int sl_guest_start(struct sl_guest *guest, const char *const args[], int keep, struct sl_err *err);

/* How long the agent took goes to *ms, if that is not NULL. */
int sl_guest_attach(struct sl_guest *guest, double *ms, struct sl_err *err);
int sl_guest_go(struct sl_guest *guest, struct sl_err *err);
/* On a new connection, if the agent's worker was another one since. */
int sl_guest_detach(struct sl_guest *guest, double *ms, struct sl_err *err);
void sl_guest_clear(struct sl_guest *guest);

#endif
