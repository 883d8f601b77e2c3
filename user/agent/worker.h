/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The worker of sluiced: its loop, from adopting to the end. See agent.h. */
#ifndef SLUICE_USER_AGENT_WORKER_H
#define SLUICE_USER_AGENT_WORKER_H

#include "agent/agent.h"

/*
 * For sl_keeper_run(); `options` is a struct sl_agent_options. SIGTERM and SIGHUP are blocked
 * before. Returns 0 after SIGTERM, SL_KEEPER_GIVE_UP when it can't start.
 */
int sl_agent_worker(struct sl_keeper_link *link, void *options);

#endif
