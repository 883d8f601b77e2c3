/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An agent without sockets, cgroups and threads, around the sessions under test: what its
 * effects do to sandboxes, connections whose ends come late, and a worker that dies between
 * any two effects. It asserts the properties of selftests/model/session.pml at each step.
 */
#ifndef SLUICE_TEST_SESSION_AGENT_H
#define SLUICE_TEST_SESSION_AGENT_H

#include "session/session.h"

#define CLIENTS 3
#define CONNS 512

enum agent_kind { ATTACH, RECOVER, UPDATE };

struct agent_message {
	enum agent_kind kind;
	uint64_t epoch;
};

struct agent_conn {
	unsigned int client;
	uint64_t epoch; /* that its Attach or Recover has */
	bool over;      /* cut, or closed by either end */
	bool accepted;  /* by the worker that is there now */
	bool closed;    /* the agent has done with it */
	struct agent_message up[2];
	unsigned int ups, used;
	struct sl_step down;
	bool answered;
};

enum client_state { TRYING, WAITING, CONNECTED, TOLD_OVER };

struct agent_client {
	enum client_state state;
	unsigned int conn;
	uint64_t epoch;
	uint8_t token[SL_SESSION_TOKEN];
	bool released, gone;
	struct sl_session_options options;
	/* Its sandbox. */
	bool made, frozen, draining, dead, in_hand, saved_end;
	uint32_t drained_serial; /* of a drain that is done and not reported; 0: none */
	uint32_t serial;
	uint64_t policy;
	int64_t lost_ms;
};

struct agent {
	struct sl_record_table *records;
	struct sl_sessions *sessions; /* NULL: no worker */
	struct agent_client clients[CLIENTS];
	struct agent_conn conns[CONNS];
	unsigned int conn_count;
	int64_t now_ms;
	bool upsets; /* the worker may die, making a sandbox may fail */
	struct {
		unsigned long recoveries, ends, deaths, displacements;
		unsigned long stale_requests, stale_drains;
	} seen;
};

extern struct agent agent;

bool agent_one_in(unsigned int n);

/* The worker, whole or at the end of its life. */
void agent_start(void);
void agent_die(void);

/* One event of any connection; false: none is left. */
bool agent_serve(void);
/* Reads all that has arrived, then looks at the timers. */
void agent_expire(void);
/* A drain of client i's calls goes on or is reported. */
void agent_drain(unsigned int i);

enum sl_record_state agent_state(unsigned int client);
/* The truth of who is whose: the connection that brought the epoch of the record. */
bool agent_own(const struct agent_conn *conn);
void agent_check(unsigned int i);

#endif
