/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the text of a policy to a sandbox under it, in a job: what attaching, updating and a
 * reload have in common.
 *
 *	struct sl_load load = { .held = …, .key = …, .text = …, … };
 *	sl_load_open(&load, &err);			checks, looks names up: may take long
 *	sl_load_into(&load, set, sandbox, &err);	in force; load.use, path and sha256 are set
 *	sl_load_end(&load);
 */
#ifndef SLUICE_USER_AGENT_LOAD_H
#define SLUICE_USER_AGENT_LOAD_H

#include "agent/copy.h"
#include "agent/held.h"
#include "agent/serve.h"

struct sl_load {
	struct sl_held *held;
	const struct sl_copies *copies;
	struct sl_serve *serve; /* borrowed; NULL: it has no egress of its own */
	uint64_t tag;           /* of the listener that goes with it; 0, or not known yet: none */
	uint8_t key[SL_SESSION_KEY];
	const char *text, *name; /* borrowed */
	size_t len;
	bool quiet; /* nobody is told what the policy lacks */
	enum sl_guard_holder holder;
	enum sl_guard_mode mode; /* SL_GUARD_MODE_MAX: as before, at first as the policy says */
	/* Of load_into: */
	struct sl_use *use; /* counted */
	uint32_t policy_id;
	char path[PATH_MAX];
	uint8_t sha256[SL_SHA256_LEN];
	struct sl_apply *apply; /* private */
};

int sl_load_open(struct sl_load *load, struct sl_err *err);

/* The sandbox is held against others (sl_shared_lock) by this. */
int sl_load_into(struct sl_load *load, struct sl_agent_set *set, unsigned int sandbox,
		 struct sl_err *err);

void sl_load_end(struct sl_load *load);

#endif
