/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What serve.c and serve_open.c share. */
#ifndef SLUICE_USER_AGENT_SERVE_PRIVATE_H
#define SLUICE_USER_AGENT_SERVE_PRIVATE_H

#include "agent/serve.h"

struct sl_serve {
	struct json_object *json;        /* as it was asked for, without the descriptor */
	struct sl_reach_options options; /* borrows from `json` and `upstreams` */
	char upstreams[256];             /* with commas */
	uint64_t mark;
	const char *device;
	int netns; /* -1: the agent's */
	__u64 netns_cookie;
	uint64_t tag; /* of the namespace with the keeper; 0: not held */
	struct sl_reach *reach;
	struct sl_agent_set *set;
	struct sl_use *now, *next; /* that it asks */
	pthread_mutex_t lock;      /* over what follows, and the end of what it says */
	bool serving;
};

#endif
