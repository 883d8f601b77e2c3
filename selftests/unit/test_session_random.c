/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sessions against the properties of selftests/model/session.pml: clients that come back, cut
 * connections, late messages, silence, and a worker that dies between any two effects.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "session_agent.h"
#include "session_world.h"
#include "system/scale.h"

#define ROUNDS SCALED(200)
#define STEPS 300

static void work(unsigned int i)
{
	struct agent_client *client = &agent.clients[i];

	if (client->in_hand)
		client->in_hand = !agent_one_in(3);
	else if (client->released && !client->frozen && !client->draining && agent.sessions)
		client->in_hand = true;
}

static void send_message(struct agent_conn *conn, enum agent_kind kind, uint64_t epoch)
{
	if (!conn->over && conn->ups < ARRAY_SIZE(conn->up))
		conn->up[conn->ups++] = (struct agent_message){ kind, epoch };
}

static void dial(struct agent_client *client)
{
	struct agent_conn *conn;

	if (agent.conn_count == CONNS)
		return;
	client->conn = agent.conn_count++;
	conn = &agent.conns[client->conn];
	*conn = (struct agent_conn){ .client = (unsigned int)(client - agent.clients),
				     .epoch = ++client->epoch };
	send_message(conn, client->released ? RECOVER : ATTACH, client->epoch);
	client->state = WAITING;
}

static void take_answer(struct agent_client *client, struct agent_conn *conn)
{
	conn->answered = false;
	switch (conn->down.answer) {
	case SL_ANSWER_NEW:
	case SL_ANSWER_RECOVERED:
		cr_assert(client->made, "whole: Ok before all is in place");
		client->released = true;
		client->state = CONNECTED;
		return;
	case SL_ANSWER_OVER:
		client->state = TOLD_OVER;
		conn->over = true;
		return;
	default:
		cr_assert_neq(conn->down.answer, SL_ANSWER_UNKNOWN, "recovery: it was known");
		cr_assert_neq(conn->down.answer, SL_ANSWER_STALE, "its epochs only rise");
		client->state = TRYING;
	}
}

static void run_client(unsigned int i)
{
	struct agent_client *client = &agent.clients[i];
	struct agent_conn *conn = &agent.conns[client->conn];

	if (client->gone || client->state == TOLD_OVER)
		return;
	if (client->state == TRYING)
		dial(client);
	else if (client->state == WAITING && conn->answered)
		take_answer(client, conn);
	else if (conn->over)
		client->state = TRYING;
	else if (client->state == CONNECTED)
		send_message(conn, UPDATE, client->epoch);
	/* It is heard for as long as the test lasts. */
	if (client->state == CONNECTED && conn->used == conn->ups)
		conn->used = conn->ups = 0;
}

static void cut(void)
{
	struct agent_conn *conn =
		agent.conn_count ? &agent.conns[(unsigned int)random() % agent.conn_count] : NULL;

	if (!conn || conn->over)
		return;
	conn->over = true;
	if (agent_one_in(2))
		conn->ups = conn->used;
	if (agent_one_in(2))
		conn->answered = false;
}

/* The client gives its connection up before anybody else has noticed. */
static void desert(unsigned int i)
{
	if (agent.clients[i].state == CONNECTED || agent.clients[i].state == WAITING)
		agent.clients[i].state = TRYING;
}

static void upset(unsigned int i)
{
	switch (random() % 8) {
	case 0:
	case 1:
		cut();
		break;
	case 2:
		desert(i);
		break;
	case 3:
		agent.now_ms += random() % (2 * SESSION_GRACE_MS);
		break;
	case 4:
		if (agent.sessions && agent_one_in(2))
			agent_die();
		break;
	default:
		break;
	}
}

static void any_step(void)
{
	unsigned int i = (unsigned int)random() % CLIENTS;

	if (agent.upsets && agent_one_in(4))
		upset(i);
	if (!agent.sessions)
		agent_start();
	agent.now_ms += random() % 50;
	run_client(i);
	for (long k = random() % 3; k && agent.sessions; k--)
		agent_serve();
	if (agent.sessions && agent_one_in(8))
		agent_expire();
	work(i);
	if (agent.sessions)
		agent_drain(i);
	for (unsigned int c = 0; c < CLIENTS; c++)
		agent_check(c);
}

/* Where it stops, when nothing upsets it any more: `ends`. */
static void check_rest(unsigned int i)
{
	const struct agent_client *client = &agent.clients[i];
	enum sl_record_state state = agent_state(i);

	if (client->gone) {
		cr_assert(state == SL_RECORD_FREE || state == SL_RECORD_ENDED,
			  "ends: client %u stays away", i);
	} else if (client->state == TOLD_OVER) {
		cr_assert_eq(state, SL_RECORD_ENDED);
	} else {
		cr_assert_eq(client->state, CONNECTED, "ends: client %u is %d", i, client->state);
		cr_assert_eq(state, SL_RECORD_LIVE, "recovery");
		cr_assert(agent_own(&agent.conns[client->conn]), "recovery");
		cr_assert_eq(client->policy, client->epoch, "old");
	}
	if (state == SL_RECORD_ENDED && client->options.end == SL_SESSION_END_FROZEN)
		cr_assert(client->frozen);
}

static void round_of(unsigned int seed)
{
	srandom(seed);
	memset(agent.clients, 0, sizeof(agent.clients));
	memset(agent.conns, 0, sizeof(agent.conns));
	agent.conn_count = 0;
	agent.now_ms = 1000;
	cr_assert_eq(sl_record_table_new(&agent.records, CLIENTS), 0);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		agent.clients[i].options = session_new(i, 1).options;
		agent.clients[i].options.freeze_on_loss = !agent_one_in(4);
		agent.clients[i].options.end = (enum sl_session_end)(random() % SL_SESSION_END_MAX);
	}
	agent.upsets = true;
	for (unsigned int k = 0; k < STEPS; k++)
		any_step();
	for (unsigned int i = 0; i < CLIENTS; i++) {
		agent.clients[i].gone = agent_one_in(3);
		if (agent.clients[i].gone && agent.clients[i].epoch)
			agent.conns[agent.clients[i].conn].over = true;
	}
	for (unsigned int k = 0; k < 30; k++)
		any_step();
	agent.upsets = false;
	for (unsigned int k = 0; k < 900; k++)
		any_step();
	for (unsigned int i = 0; i < CLIENTS; i++)
		check_rest(i);
	sl_sessions_free(&agent.sessions);
	sl_record_table_free(&agent.records);
}

Test(session_random, keeps_the_properties_of_the_model, .timeout = 300)
{
	for (unsigned int seed = 1; seed <= ROUNDS; seed++)
		round_of(seed);
	/* Else it has tested less than it says. */
	cr_assert_gt(agent.seen.recoveries, ROUNDS);
	cr_assert_gt(agent.seen.ends, ROUNDS / 4);
	cr_assert_gt(agent.seen.deaths, ROUNDS);
	cr_assert_gt(agent.seen.displacements, ROUNDS / 4);
	cr_assert_gt(agent.seen.stale_requests, 0);
	cr_assert_gt(agent.seen.stale_drains, 0);
}
