/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections: who is at the other end, and what waits for an answer. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/cgroup.h"

void sl_agent_gone(struct sl_client *client, void *data, void *ctx)
{
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = data;
	struct sl_step step;

	if (!conn)
		return;
	sl_htab_del(agent->conns, &conn->id);
	/* An agent that stops concludes nothing: the next one goes on. */
	if (!agent->stop) {
		sl_session_hung_up(agent->sessions, conn->id, sl_client_cause(client),
				   sl_monotonic_ms(), &step);
		sl_agent_do(agent, &step);
	}
	free(conn);
}

static struct sl_conn *conn_new(struct sl_agent *agent, struct sl_client *client)
{
	struct sl_conn *conn = calloc(1, sizeof(*conn)), **slot;

	if (!conn)
		return NULL;
	conn->id = ++agent->last_conn;
	conn->client = client;
	slot = sl_htab_add(agent->conns, &conn->id, NULL);
	if (!slot) {
		free(conn);
		return NULL;
	}
	*slot = conn;
	sl_client_set(client, conn);
	return conn;
}

struct sl_conn *sl_conn_of(struct sl_agent *agent, struct sl_request *request)
{
	const struct sl_err err = { .code = ENOMEM, .text = "the agent has no memory" };
	struct sl_client *client = sl_request_client(request);
	struct sl_conn *conn = sl_client_get(client);

	conn = conn ?: conn_new(agent, client);
	if (!conn)
		sl_reply_refused(request, &err);
	return conn;
}

struct sl_conn *sl_conn_find(const struct sl_agent *agent, uint64_t id)
{
	struct sl_conn **conn = sl_htab_get(agent->conns, &id);

	return conn ? *conn : NULL;
}

struct sl_conn *sl_conn_next(const struct sl_agent *agent, size_t *at)
{
	void *conn;

	return sl_htab_next(agent->conns, at, NULL, &conn) ? *(struct sl_conn **)conn : NULL;
}

struct sl_request *sl_conn_request(const struct sl_agent *agent, uint64_t id)
{
	const struct sl_conn *conn = sl_conn_find(agent, id);

	return conn ? sl_client_request(conn->client) : NULL;
}

struct sl_conn *sl_conn_enter(struct sl_agent *agent, struct sl_request *request)
{
	struct sl_conn *conn = sl_conn_of(agent, request);

	if (conn && !conn->version) {
		sl_reply_error(request, "NoHello", NULL);
		return NULL;
	}
	return conn;
}

struct member {
	__u32 tgid;
};

static int is_member(const struct sl_process *process, void *arg)
{
	const struct member *member = arg;

	return process->key.tgid == member->tgid && process->sandbox;
}

/*
 * Root in a sandbox would take its own sandbox off. Who has gone since it connected can't
 * be looked up, and might have been a member.
 */
bool sl_conn_outside(struct sl_agent *agent, const struct sl_client *client)
{
	const struct ucred *peer = sl_client_peer(client);
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	struct member member = { (__u32)peer->pid };
	int ret = sl_agent_set(agent, &set, NULL);

	/* Without a set there are no members. */
	if (ret == -ENOENT)
		return true;
	if (ret || peer->pid <= 0 || sl_procs_each(set->set, is_member, &member))
		return false;
	return !kill(peer->pid, 0);
}

uint64_t sl_agent_group(const struct ucred *peer, void *ctx)
{
	const struct sl_agent *agent = ctx;
	char cgroup[PATH_MAX];
	size_t len;

	if (peer->pid <= 0 || sl_cgroup_of(cgroup, sizeof(cgroup), peer->pid, NULL))
		return SL_RECORDS_MAX + 1; /* it has gone, or its cgroup can't be told */
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		const char *own = sl_record_at(agent->records, row)->cgroup;

		len = strlen(own);
		if (len && !strncmp(cgroup, own, len) && (!cgroup[len] || cgroup[len] == '/'))
			return row + 1;
	}
	return 0;
}

void sl_conns_heard(struct sl_agent *agent, int64_t now_ms)
{
	struct sl_conn *conn;
	unsigned int row;

	for (size_t at = 0; (conn = sl_conn_next(agent, &at));) {
		/* A watcher's call is never answered: it says nothing. */
		if (!conn->watches && sl_client_request(conn->client))
			(void)sl_session_heard(agent->sessions, conn->id, now_ms, &row);
	}
}

void sl_conn_end(struct sl_agent *agent, uint64_t id, const char *cause)
{
	struct sl_conn *conn = sl_conn_find(agent, id);

	if (!conn)
		return;
	/* Its answer goes first. */
	if (id == agent->answering)
		conn->over = true;
	else
		sl_client_end(conn->client, cause);
}

/* What the agent does to connections, and has not to do to many; NULL: nothing to tell. */
static const char *const untold[SL_SERVER_COUNT_MAX] = {
	[SL_SERVER_REFUSED] = "refused: no room for more of that user, or in all",
	[SL_SERVER_NO_FDS] = "put off: no descriptor or memory is free",
	[SL_SERVER_MALFORMED] = "ended: what was sent is no call",
	[SL_SERVER_STALLED] = "ended: a call was begun and not finished, or an answer not read",
};

bool sl_conns_untold(const struct sl_agent *agent)
{
	for (unsigned int i = 0; i < SL_SERVER_COUNT_MAX; i++) {
		if (untold[i] && sl_server_count(agent->server, i) != agent->conns_told[i])
			return true;
	}
	return false;
}

void sl_conns_log(struct sl_agent *agent)
{
	for (unsigned int i = 0; i < SL_SERVER_COUNT_MAX; i++) {
		uint64_t now = sl_server_count(agent->server, i);

		if (untold[i] && now != agent->conns_told[i])
			sl_log_notice("connections %s (%llu)", untold[i],
				      (unsigned long long)(now - agent->conns_told[i]));
		agent->conns_told[i] = now;
	}
}
