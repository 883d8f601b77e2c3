/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "session_agent.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "session_world.h"

struct agent agent;

bool agent_one_in(unsigned int n)
{
	return (unsigned long)random() % n == 0;
}

static unsigned int client_of(unsigned int row)
{
	return (unsigned int)sl_record_at(agent.records, row)->cgroup_id - 100;
}

/* SL_RECORDS_MAX: it has no row. */
static unsigned int row_of(unsigned int client)
{
	unsigned int row = SL_RECORDS_MAX;

	sl_record_by_cgroup(agent.records, 100 + client, &row);
	return row;
}

enum sl_record_state agent_state(unsigned int client)
{
	return sl_record_state(agent.records, row_of(client));
}

void agent_die(void)
{
	for (unsigned int i = 0; i < agent.conn_count; i++) {
		if (agent.conns[i].accepted) {
			agent.conns[i].over = agent.conns[i].closed = true;
			agent.conns[i].accepted = false;
			agent.conns[i].used = agent.conns[i].ups;
		}
	}
	for (unsigned int i = 0; i < CLIENTS; i++) {
		agent.clients[i].draining = false;
		agent.clients[i].serial = agent.clients[i].drained_serial = 0;
	}
	sl_sessions_free(&agent.sessions);
	agent.seen.deaths++;
}

/* The worker's, at a step of its own. */
static bool may_die(void)
{
	if (!agent.upsets || !agent_one_in(60))
		return false;
	agent_die();
	return true;
}

static void end_conn(uint64_t id)
{
	agent.conns[id - 1].over = true;
}

static void carry_out_one(struct agent_client *client, unsigned int row,
			  const struct sl_effect *effect)
{
	switch (effect->kind) {
	case SL_EFFECT_CLOSE:
		end_conn(effect->conn);
		break;
	case SL_EFFECT_UNDO:
		client->made = false;
		cr_assert_eq(sl_session_undo(agent.sessions, row), 0);
		break;
	case SL_EFFECT_DRAIN:
		client->draining = true;
		client->serial = effect->serial;
		break;
	case SL_EFFECT_FREEZE:
		cr_assert(!client->in_hand, "drained: frozen over a call in hand");
		client->frozen = true;
		client->draining = false;
		break;
	case SL_EFFECT_THAW:
		client->frozen = client->draining = false;
		break;
	case SL_EFFECT_KILL:
		client->dead = true;
		break;
	case SL_EFFECT_SAVE:
		client->saved_end = agent_state((unsigned int)(client - agent.clients)) ==
				    SL_RECORD_ENDED;
		break;
	default:
		break;
	}
}

/* False: the worker died over it. */
static bool carry_out(const struct sl_step *step)
{
	for (unsigned int i = 0; i < step->count; i++) {
		if (may_die())
			return false;
		carry_out_one(&agent.clients[client_of(step->row)], step->row, &step->effects[i]);
	}
	return !may_die();
}

/* Rule 5, told independently. */
void agent_check(unsigned int i)
{
	const struct agent_client *client = &agent.clients[i];
	enum sl_record_state state = agent_state(i);
	const struct sl_record *record = sl_record_at(agent.records, row_of(i));
	bool stopped;

	if (!agent.sessions || state < SL_RECORD_LIVE)
		return;
	cr_assert(client->made, "whole: the record is there before the sandbox");
	if (state == SL_RECORD_ENDED) {
		cr_assert_neq(record->reason[0], '\0', "reason");
		cr_assert(client->saved_end, "the end is not stored");
	}
	if (state == SL_RECORD_ENDED &&
	    (record->end == SL_SESSION_END_KILL || record->end == SL_SESSION_END_REMOVE)) {
		cr_assert(client->dead);
		return;
	}
	stopped = (state == SL_RECORD_LOST && client->options.freeze_on_loss) ||
		  (state == SL_RECORD_ENDED && record->end == SL_SESSION_END_FROZEN);
	if (stopped)
		cr_assert(client->frozen || client->draining, "client %u runs on", i);
	else
		cr_assert(!client->frozen && !client->draining, "frozen: client %u is left so", i);
}

void agent_start(void)
{
	unsigned int at = 0;
	struct sl_step step;

	cr_assert_eq(sl_sessions_new(&agent.sessions, agent.records, NULL), 0);
	for (unsigned int i = 0; i < CLIENTS; i++)
		agent.clients[i].lost_ms = agent.now_ms;
	while (sl_sessions_start(agent.sessions, &at, agent.now_ms, &step)) {
		if (!carry_out(&step))
			return;
	}
	for (unsigned int i = 0; i < CLIENTS; i++)
		cr_assert_neq(agent_state(i), SL_RECORD_PREPARED,
			      "whole: a half attached one stays");
}

bool agent_own(const struct agent_conn *conn)
{
	unsigned int row = row_of(conn->client);

	return sl_record_state(agent.records, row) == SL_RECORD_LIVE &&
	       sl_record_epoch(agent.records, row) == conn->epoch && !conn->closed;
}

static void hang_up(unsigned int i)
{
	struct agent_conn *conn = &agent.conns[i];
	uint64_t before[CLIENTS];
	struct sl_step step;
	bool own = conn->accepted && agent_own(conn);

	for (unsigned int c = 0; c < CLIENTS; c++)
		before[c] = agent_state(c);
	conn->closed = true;
	conn->accepted = false;
	sl_session_hung_up(agent.sessions, i + 1, "cut", agent.now_ms, &step);
	for (unsigned int c = 0; c < CLIENTS; c++) {
		if (own && c == conn->client)
			continue;
		cr_assert_eq(agent_state(c), before[c], "old: the end of a displaced one counts");
	}
	if (own) {
		cr_assert_eq(agent_state(conn->client), SL_RECORD_LOST);
		agent.clients[conn->client].lost_ms = agent.now_ms;
	}
	carry_out(&step);
}

static void reply(struct agent_conn *conn, const struct sl_step *step)
{
	struct agent_client *client = &agent.clients[conn->client];

	if (conn->over)
		return;
	conn->down = *step;
	conn->answered = true;
	if (step->answer == SL_ANSWER_NEW || step->answer == SL_ANSWER_RECOVERED)
		memcpy(client->token, sl_record_at(agent.records, step->row)->token,
		       SL_SESSION_TOKEN);
}

/* A sandbox is made while the worker may die. */
static bool finish_attach(unsigned int client, struct sl_step *step)
{
	if (may_die())
		return false;
	agent.clients[client].made = true;
	if (may_die())
		return false;
	if (agent.upsets && agent_one_in(10)) {
		agent.clients[client].made = false;
		cr_assert_eq(sl_session_undo(agent.sessions, step->row), 0);
		step->answer = SL_ANSWER_AGAIN;
		return true;
	}
	cr_assert_eq(sl_session_attached(agent.sessions, step->row, 1, agent.now_ms, step), 0);
	return carry_out(step);
}

static void check_answer(const struct agent_conn *conn, const struct sl_step *step, uint64_t before,
			 enum sl_record_state state)
{
	if (state == SL_RECORD_LIVE || state == SL_RECORD_LOST)
		cr_assert_eq(step->answer == SL_ANSWER_RECOVERED, conn->epoch > before,
			     "old: epoch %lu after %lu", (unsigned long)conn->epoch,
			     (unsigned long)before);
	if (step->answer == SL_ANSWER_STALE)
		cr_assert_eq(step->epoch, before);
	if (step->answer == SL_ANSWER_OVER)
		cr_assert(step->reason && step->reason[0], "reason");
	if (step->answer == SL_ANSWER_RECOVERED)
		agent.seen.recoveries++;
}

static void enter(unsigned int i, enum agent_kind kind)
{
	struct agent_conn *conn = &agent.conns[i];
	struct agent_client *client = &agent.clients[conn->client];
	struct sl_record_new wanted = session_new(conn->client, conn->epoch);
	enum sl_record_state state = agent_state(conn->client);
	uint64_t before = sl_record_epoch(agent.records, row_of(conn->client));
	struct sl_step step;

	wanted.options = client->options;
	if (kind == ATTACH)
		cr_assert_eq(sl_session_attach(agent.sessions, i + 1, &wanted, agent.now_ms, &step,
					       NULL),
			     0);
	else
		cr_assert_eq(sl_session_recover(agent.sessions, i + 1, client->token, conn->epoch,
						agent.now_ms, &step, NULL),
			     0);
	check_answer(conn, &step, before, state);
	for (unsigned int k = 0; k < step.count; k++)
		agent.seen.displacements += step.effects[k].kind == SL_EFFECT_CLOSE;
	if (step.count && !carry_out(&step))
		return;
	if (step.answer == SL_ANSWER_NEW && !finish_attach(conn->client, &step))
		return;
	reply(conn, &step);
	if (step.answer == SL_ANSWER_NEW || step.answer == SL_ANSWER_RECOVERED)
		return;
	conn->over = true;
	conn->used = conn->ups;
	hang_up(i);
}

static void request(unsigned int i, const struct agent_message *message)
{
	struct agent_conn *conn = &agent.conns[i];
	struct agent_client *client = &agent.clients[conn->client];
	unsigned int row;
	int ret = sl_session_heard(agent.sessions, i + 1, agent.now_ms, &row);

	cr_assert_eq(ret == 0, agent_own(conn), "old: a request of %s connection is %s",
		     agent_own(conn) ? "the" : "a displaced", ret ? "refused" : "carried out");
	if (ret) {
		agent.seen.stale_requests++;
		return;
	}
	cr_assert_eq(row, row_of(conn->client));
	cr_assert_geq(message->epoch, client->policy, "old: policy");
	client->policy = message->epoch;
}

/* One event of a connection; false: there was none. */
static bool serve_conn(unsigned int i)
{
	struct agent_conn *conn = &agent.conns[i];

	if (conn->closed)
		return false;
	if (conn->used < conn->ups) {
		const struct agent_message *message = &conn->up[conn->used++];

		conn->accepted = true;
		if (message->kind == UPDATE)
			request(i, message);
		else
			enter(i, message->kind);
		return true;
	}
	if (!conn->over)
		return false;
	hang_up(i);
	return true;
}

bool agent_serve(void)
{
	unsigned int first = agent.conn_count ? (unsigned int)random() % agent.conn_count : 0;

	for (unsigned int k = 0; k < agent.conn_count && agent.sessions; k++) {
		if (serve_conn((first + k) % agent.conn_count))
			return true;
	}
	return false;
}

/* Rule 7. */
void agent_expire(void)
{
	int64_t before_ms = agent.now_ms;
	struct sl_step step;

	while (agent.sessions && agent_serve())
		continue;
	while (agent.sessions && sl_sessions_expire(agent.sessions, before_ms, &step)) {
		unsigned int i = client_of(step.row);

		if (sl_record_state(agent.records, step.row) == SL_RECORD_ENDED) {
			cr_assert_geq(before_ms - agent.clients[i].lost_ms, SESSION_GRACE_MS,
				      "recovery: the grace was shorter");
			agent.seen.ends++;
		} else {
			agent.clients[i].lost_ms = before_ms;
		}
		if (!carry_out(&step))
			return;
	}
}

void agent_drain(unsigned int i)
{
	struct agent_client *client = &agent.clients[i];
	uint32_t serial = client->drained_serial;
	struct sl_step step;

	if (serial && agent_one_in(2)) {
		/* Told late: calls may have come in between. */
		client->drained_serial = 0;
		agent.seen.stale_drains += serial != client->serial || !client->draining;
		sl_session_drained(agent.sessions, row_of(i), serial, &step);
		carry_out(&step);
	} else if (client->draining && !client->in_hand) {
		client->drained_serial = client->serial;
	}
}
