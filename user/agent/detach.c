/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Detach: the end of a session and of its sandbox. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/cgroup.h"
#include "kernel/shared.h"

/* How long what is killed may take to be gone, and how often it is looked. */
#define KILL_MS 5000
#define LOOK_MS 5

/* How long the runtime of a session that ended with its command may ask why. */
#define ASK_MS 5000

static const char *const running_words[] = { "refuse", "kill", "release" };
enum running { RUNNING_REFUSE, RUNNING_KILL, RUNNING_RELEASE };

struct detach {
	struct sl_job job;
	struct sl_agent *agent;
	uint64_t conn; /* 0: nobody has asked */
	unsigned int row, sandbox;
	char cgroup[PATH_MAX];
	bool there;  /* the cgroup is the one that was attached */
	bool remove; /* it goes as well */
	enum running running;
	uint64_t cgroup_id;
	struct sl_err err;
	int ret;
};

/* --- in a job --- */

static bool populated(const struct detach *d)
{
	bool value = false;

	return !sl_cgroup_populated(d->cgroup, &value) && value;
}

static int empty(struct detach *d)
{
	int64_t end_ms = sl_monotonic_ms() + KILL_MS;

	if (d->there && d->remove)
		(void)sl_cgroup_destroy(d->cgroup, KILL_MS);
	if (!d->there || d->running == RUNNING_RELEASE || !populated(d))
		return 0;
	if (d->running == RUNNING_REFUSE) {
		sl_err_set(&d->err, EBUSY, "processes are left in '%s'", d->cgroup);
		return sl_err_hint(&d->err, "end them first, or say `running: kill`; with "
					    "`release` they go on, mediated by nothing");
	}
	sl_cgroup_kill(d->cgroup);
	while (populated(d)) {
		if (sl_monotonic_ms() > end_ms)
			return sl_err_set(&d->err, EBUSY, "what was killed in '%s' does not end",
					  d->cgroup);
		poll(NULL, 0, LOOK_MS);
	}
	return 0;
}

/* Ids are used again: it has to be that of the cgroup. -ENOENT. */
static int find(struct detach *d, struct sl_set *set)
{
	unsigned int id;
	int ret = sl_sandbox_of_cgroup(set, d->cgroup_id, &id);

	if (!ret && id != d->sandbox)
		ret = -ENOENT;
	if (ret && ret != -ENOENT)
		sl_err_sys(&d->err, -ret, "can't read the sandboxes of the set");
	return ret;
}

static void run(struct sl_job *job)
{
	struct detach *d = (struct detach *)job;
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;

	d->ret = empty(d);
	d->ret = d->ret ?: sl_agent_set(d->agent, &set, &d->err);
	if (!d->ret)
		d->ret = find(d, set->set);
	d->ret = d->ret
			 ?: sl_shared_detach(d->agent->options->set_dir, d->sandbox,
					     sl_guard_forget, &d->err);
	/* Without it, or without a set, somebody else was faster. Any other error is none of that. */
	if (d->ret != -ENOENT)
		return;
	d->ret = 0;
	d->err = (struct sl_err){ 0 };
}

/* --- in the loop --- */

static void forget(struct detach *d)
{
	struct sl_agent *agent = d->agent;
	uint8_t key[SL_SESSION_KEY];
	struct sl_step step;
	struct sl_err err = { 0 };

	memcpy(key, sl_record_at(agent->records, d->row)->key, sizeof(key));
	if (!sl_session_end(agent->sessions, d->row, SL_SESSION_END_CONTINUE, "it was detached",
			    &step))
		sl_agent_do(agent, &step);
	/* What was let go is not to stay frozen, nor what is put into the cgroup next. */
	sl_agent_thaw(agent, d->row);
	sl_held_release(agent->held, sl_record_at(agent->records, d->row)->listener);
	sl_agent_tell(agent, d->row, true);
	sl_session_forget(agent->sessions, d->row);
	sl_serve_drop(agent->boxes[d->row]->serve, agent->link);
	sl_agent_box_drop(agent, d->row);
	if (sl_store_remove(agent->store, key, &err))
		sl_log_err(SL_LOG_ERROR, &err);
	sl_copies_clean(agent->copies, key, 0);
}

/* Of what nobody has asked for: if it fails, the row is there to say so. */
static void report(struct sl_agent *agent, const struct detach *d)
{
	const struct sl_condition_report failed = {
		.type = "Detached",
		.status = SL_CONDITION_FALSE,
		.reason = "Failed",
		.message = d->err.text,
		.bad = true,
	};

	if (d->ret)
		sl_agent_report(agent, d->row, &failed);
	else
		sl_log_info("sandbox %u, whose cgroup is gone, was detached", d->sandbox);
}

static void done(struct sl_job *job)
{
	_cleanup_free_ struct detach *d = (struct detach *)job;
	struct sl_agent *agent = d->agent;
	struct sl_request *request = sl_conn_request(agent, d->conn);
	const struct sl_conn *conn = sl_conn_find(agent, d->conn);

	if (job->dropped)
		return;
	agent->answering = d->conn;
	if (d->ret)
		agent->boxes[d->row]->leaving = false;
	else
		forget(d);
	if (!d->conn)
		report(agent, d);
	else if (request && d->ret)
		sl_reply_refused(request, &d->err);
	else if (request)
		sl_request_reply(request, NULL);
	agent->answering = 0;
	if (conn && conn->over)
		sl_conn_end(agent, d->conn, NULL);
}

struct params {
	const char *sandbox;
	unsigned int running;
};

static const struct sl_param params[] = {
	SL_PARAM(STRING, struct params, sandbox, .optional = true, .max = 20),
	SL_PARAM_ENUM(struct params, running, running_words, .optional = true),
	{ 0 },
};

static struct detach *detach_new(struct sl_agent *agent, unsigned int row, uint64_t conn,
				 enum running running)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	_cleanup_fd_ int cgroup = sl_agent_cgroup(record);
	struct detach *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->job = (struct sl_job){ .key = row, .run = run, .done = done };
	d->agent = agent;
	d->conn = conn;
	d->row = row;
	d->sandbox = record->sandbox;
	d->cgroup_id = record->cgroup_id;
	d->there = cgroup >= 0;
	d->running = running;
	strcpy(d->cgroup, record->cgroup);
	return d;
}

void sl_agent_detach(struct sl_agent *agent, unsigned int row)
{
	struct detach *d = detach_new(agent, row, 0, RUNNING_REFUSE);

	if (!d)
		return;
	agent->boxes[row]->leaving = true;
	sl_work_add(agent->work, &d->job);
}

void sl_method_detach(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	struct sl_conn *conn = sl_conn_enter(agent, request);
	struct params read = { 0 };
	struct sl_err err = { 0 };
	unsigned int row;
	struct detach *d;

	if (!conn || !sl_read_params(request, params, &read) ||
	    !sl_target(agent, request, conn, read.sandbox, &row))
		return;
	if (agent->boxes[row]->leaving) {
		sl_reply_error(request, "Again", NULL);
		return;
	}
	d = detach_new(agent, row, conn->id, (enum running)read.running);
	if (!d) {
		sl_err_sys(&err, ENOMEM, "can't detach");
		sl_reply_refused(request, &err);
		return;
	}
	agent->boxes[row]->leaving = true;
	sl_work_add(agent->work, &d->job);
}

/* Nobody is there who would come back, nor anything that is to be kept until he does. */
static void end_gone(struct sl_agent *agent, unsigned int row)
{
	const struct sl_record *record = sl_record_at(agent->records, row);
	enum sl_record_state state = sl_record_state(agent->records, row);
	_cleanup_fd_ int cgroup = -1;
	struct sl_step step;

	if (record->options.end != SL_SESSION_END_REMOVE || agent->boxes[row]->leaving ||
	    (state != SL_RECORD_LIVE && state != SL_RECORD_LOST) ||
	    sl_session_connected(agent->sessions, row))
		return;
	cgroup = sl_agent_cgroup(record);
	if (cgroup < 0 && !sl_session_end(agent->sessions, row, SL_SESSION_END_REMOVE,
					  "its cgroup was removed", &step)) {
		sl_agent_do(agent, &step);
		/* Nor who would ask why. */
		agent->boxes[row]->remove_ms = 0;
	}
}

/* Its runtime, which sees that its command was killed, has time to ask why. */
static bool was_asked_about(struct sl_box *box)
{
	int64_t now_ms = sl_monotonic_ms();

	if (box->remove_ms < 0)
		box->remove_ms = now_ms + ASK_MS;
	return box->remove_ms <= now_ms;
}

void sl_agent_remove_ended(struct sl_agent *agent)
{
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);)
		end_gone(agent, row);
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);) {
		const struct sl_record *record = sl_record_at(agent->records, row);
		struct detach *d;

		if (sl_record_state(agent->records, row) != SL_RECORD_ENDED ||
		    record->end != SL_SESSION_END_REMOVE || agent->boxes[row]->leaving ||
		    !was_asked_about(agent->boxes[row]))
			continue;
		d = detach_new(agent, row, 0, RUNNING_KILL);
		/* Without memory: at the next tick. */
		if (!d)
			return;
		sl_log_notice("sandbox %u goes: %s", record->sandbox, record->reason);
		d->remove = true;
		agent->boxes[row]->leaving = true;
		sl_work_add(agent->work, &d->job);
	}
}
