/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent's part of a `sluice run`: its set, which is loaded already, and a session that
 * holds the sandbox. What is the run's own stays with it: the cgroup, the command, its
 * filter, the events, and the table.
 *
 *	sl_run_agent_open(&agent, socket, &err);	NULL: there is none
 *	sl_run_agent_attach(agent, &attach, &set, &sandbox, &err);
 *	loop: poll sl_run_agent_fd(); sl_run_agent_tick(agent, &err)
 *	sl_run_agent_detach(agent, set, sandbox); sl_run_agent_free(&agent);
 *
 * Rules
 * 1. A refusal of the agent is an error, never a run without it.
 * 2. An agent that dies is waited for: the kernel goes on deciding, calls that are held wait
 *    or fail, and the session is recovered when there is an agent again.
 * 3. The session ends with the run, whatever ends that: then the agent kills what is left,
 *    and removes the sandbox and its cgroup.
 */
#ifndef SLUICE_USER_RUN_AGENT_H
#define SLUICE_USER_RUN_AGENT_H

#include <stdbool.h>

#include "kernel/set.h"
#include "run/reach.h"

struct sl_run_agent;

/* The word in place of a socket. */
#define SL_RUN_AGENT_NONE "none"

/* `socket` NULL: the usual one, if somebody listens there; *out is NULL without an agent. */
int sl_run_agent_open(struct sl_run_agent **out, const char *socket, struct sl_err *err);
/* Leaves the session to rule 3, if it was not detached. */
void sl_run_agent_free(struct sl_run_agent **agent);

struct sl_run_attach {
	const char *cgroup;
	const char *policy; /* its text; NULL: observed only */
	const char *mode;   /* NULL: as the policy says */
	bool hold_connect;  /* what the listener's filter was made for; else exec */
	int listener;       /* borrowed; -1: nothing is held */
	/* With a policy; NULL: as the agent does without egress. */
	const struct sl_reach_options *egress;
	int netns; /* of a relay, borrowed; -1: none */
};

/*
 * Makes the sandbox, and opens the set that it is in, which the caller frees. All or nothing.
 */
int sl_run_agent_attach(struct sl_run_agent *agent, const struct sl_run_attach *attach,
			struct sl_set **set, unsigned int *sandbox, struct sl_err *err);

/* A secret by which another process can go on with the session: "" before attach. */
const char *sl_run_agent_token(const struct sl_run_agent *agent);

/* Readable when tick has something to do. */
int sl_run_agent_fd(const struct sl_run_agent *agent);

/* Says what has become of the agent. An error: the session is over, and nothing holds it. */
int sl_run_agent_tick(struct sl_run_agent *agent, struct sl_err *err);

/* Whether the session is over, and that is why the command was killed. */
int sl_run_agent_check(struct sl_run_agent *agent, struct sl_err *err);

/* What was served; untouched when nothing was, or the agent does not say. */
void sl_run_agent_egress(struct sl_run_agent *agent, struct sl_egress_stats *out);

/* The end, by the agent or, when it does not answer, without it. */
void sl_run_agent_detach(struct sl_run_agent *agent, const struct sl_set *set,
			 unsigned int sandbox);

/* By a process that has the token, when the one that attached is dead: as detach. */
void sl_run_agent_finish(const char *socket, const char *token);

/* The socket that it was opened at. */
const char *sl_run_agent_socket(const struct sl_run_agent *agent);

#endif
