/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluiced's worker: what its files share. One thread runs the loop (worker.c): the control
 * socket, the sessions, their effects. Beside it are the broker's threads (held.h) and a few
 * for what may take long (work.h); these get what they need by value or counted, and what
 * came of it goes back to the loop.
 *
 *	conn.c		connections: who is at the other end, and what waits for an answer
 *	box.c		sandboxes: what this worker has of each session
 *	effects.c	what the steps of session/session.h ask for
 *	start.c		adopting what the worker before has left
 *	methods.c	the methods, and those that do little
 *	attach.c, listen.c, update.c, detach.c, report.c, show.c, watch.c, resolve.c	the others
 *	gone.c		sessions whose cgroup was removed
 *	sweep.c		what nothing in the set refers to any more
 *
 * Rules
 * 1. Only the loop touches what is in here, but for what is said to be for any thread.
 * 2. After a step of the sessions, sl_agent_do() with it before anything else.
 */
#ifndef SLUICE_USER_AGENT_AGENT_H
#define SLUICE_USER_AGENT_AGENT_H

#include <pthread.h>

#include "agent/copy.h"
#include "agent/held.h"
#include "agent/serve.h"
#include "agent/work.h"
#include "base/htab.h"
#include "control/params.h"
#include "control/server.h"
#include "kernel/sweep.h"
#include "session/session.h"
#include "session/store.h"

struct sl_agent_options {
	const char *socket, *state_dir, *set_dir;
	/* The keeper's: made before the first worker, inherited by all. */
	int listener;
	struct sl_record_table *records;
	/* How often the worker has to say that it is there (sl_keeper_beat()). */
	unsigned int beat_ms;
};

/* What belongs to a connection; the client's data. */
struct sl_conn {
	uint64_t id;
	struct sl_client *client;
	uint32_t version; /* of the protocol; 0: no Hello yet */
	bool watches;
	uint64_t lost;        /* changes that a watcher was not told */
	unsigned int freezes; /* row + 1 whose freeze is waited for */
	bool over;            /* to be ended when it is answered */
};

/* What this worker has of a session; its row is the record's. */
struct sl_box {
	/*
	 * cgroup.freeze and cgroup.kill of the cgroup that was attached, whatever has its path
	 * by now; open all the time, so that no lack of descriptors keeps it from being frozen.
	 * -1: it was gone when this worker looked.
	 */
	int freeze, kill;
	struct sl_use *use;     /* counted; NULL: none */
	uint32_t policy_id;     /* of `use` */
	struct sl_serve *serve; /* NULL: it has no egress of its own */
	int64_t refresh_ms;     /* names, next; -1: it has none */
	int64_t drain_ms;       /* a drain is waited for until then; -1: none */
	int64_t remove_ms;      /* what ended stays to be asked about until then; -1: it goes on */
	uint32_t drain_serial;
	bool frozen;           /* cgroup.freeze was written */
	unsigned int changing; /* jobs that load a policy */
	/* To be loaded anew once these are done, from its file; which is in force is known then. */
	bool reload, reload_file;
	bool leaving;   /* is being detached */
	bool unsaved;   /* it could not be stored, or was put off: at the next tick */
	bool attaching; /* is stored once, when all is noted */
	struct sl_conditions conditions;
};

struct sl_agent {
	const struct sl_agent_options *options;
	struct sl_keeper_link *link;
	struct sl_record_table *records;
	struct sl_sessions *sessions;
	struct sl_store *store;
	struct sl_copies *copies;
	struct sl_held *held;
	struct sl_work *work;
	struct sl_server *server;
	struct sl_htab *conns;         /* id -> struct sl_conn * */
	uint64_t last_conn, answering; /* 0: none */
	uint64_t conns_told[SL_SERVER_COUNT_MAX];
	struct sl_box *boxes[SL_RECORDS_MAX];
	int epoll, signals;
	int64_t tick_ms, look_ms;
	struct sl_decisions *decisions;
	struct sl_sweep_clock sweep;
	bool sweeping; /* a job does */
	bool stop;
	/* Any thread, by sl_agent_set(): the set, NULL: not open. */
	pthread_mutex_t set_lock;
	struct sl_agent_set *set;
};

/* --- start.c --- */

/* What the worker before left: records, sandboxes, listeners, calls. Before any client. */
int sl_agent_adopt(struct sl_agent *agent, struct sl_err *err);

/* --- box.c --- */

/*
 * The set, counted, opened unless it is; for any thread. -ENOENT: there is none.
 */
int sl_agent_set(struct sl_agent *agent, struct sl_agent_set **out, struct sl_err *err);

/* The row's box, made when there is none; NULL: no memory. */
struct sl_box *sl_agent_box(struct sl_agent *agent, unsigned int row);
void sl_agent_box_drop(struct sl_agent *agent, unsigned int row);

/* Opens the cgroup of the record, -1: it is gone, or another one has its place by now. */
int sl_agent_cgroup(const struct sl_record *record);
/* The files of it that a box keeps open. -ENOENT as above, or -errno. */
int sl_agent_box_cgroup(struct sl_agent *agent, unsigned int row);

/* Puts a policy that is in force into the box: takes over the count of `use`. */
void sl_agent_box_use(struct sl_agent *agent, unsigned int row, struct sl_use *use,
		      uint32_t policy_id);

/* A condition of a row: noted, and if it is news, logged, stored and told. */
void sl_agent_report(struct sl_agent *agent, unsigned int row,
		     const struct sl_condition_report *report);

/*
 * The id of a sandbox of the set by its cgroup, and its id if that is not 0; 0: there is none.
 * For any thread.
 */
unsigned int sl_agent_sandbox(struct sl_set *set, unsigned int id, uint64_t cgroup_id);

/* What has become of loading a policy without being asked to. NULL: it is in force. */
void sl_agent_report_policy(struct sl_agent *agent, unsigned int row, const char *reason,
			    const char *message);

/* Looks whether the policy of a session is what the guard decides by; a condition says it. */
bool sl_agent_enforced(struct sl_agent *agent, unsigned int row);

/* Row of a sandbox id. -ENOENT. */
int sl_agent_row(const struct sl_agent *agent, uint64_t sandbox, unsigned int *row);

/* --- effects.c --- */

void sl_agent_do(struct sl_agent *agent, const struct sl_step *step);
/* Drains that are done or took too long; returns when the next one does, or -1. */
int64_t sl_agent_drains(struct sl_agent *agent, int64_t now_ms);
/* Whatever the record wants: of a session that is about to be forgotten. */
void sl_agent_thaw(struct sl_agent *agent, unsigned int row);
/* What can't be stored is tried again. */
void sl_agent_save(struct sl_agent *agent, unsigned int row);
void sl_agent_save_again(struct sl_agent *agent);
/* Takes back what was made for a row, but its record; for any thread. */
void sl_agent_undo(struct sl_agent *agent, const struct sl_record *record, struct sl_err *err);

/* --- conn.c --- */

void sl_agent_gone(struct sl_client *client, void *data, void *ctx);
/* That of a request, made at its first. NULL: no memory, it was answered. */
struct sl_conn *sl_conn_of(struct sl_agent *agent, struct sl_request *request);
/* By its number, NULL: it has gone. */
struct sl_conn *sl_conn_find(const struct sl_agent *agent, uint64_t id);
/* Walks all of them: start with *at = 0. */
struct sl_conn *sl_conn_next(const struct sl_agent *agent, size_t *at);
/*
 * The connection of a request that may do more than ResolveFd: after Hello, and from outside
 * of all sandboxes. NULL: it was answered.
 */
struct sl_conn *sl_conn_enter(struct sl_agent *agent, struct sl_request *request);
/*
 * For control/server.h: the sandbox, plus 1, of root within one, by the cgroup that it is in
 * just now. That is enough to share out room: who is no member is another question.
 */
uint64_t sl_agent_group(const struct ucred *peer, void *ctx);

/* Whether the peer is no member of a sandbox. */
bool sl_conn_outside(struct sl_agent *agent, const struct sl_client *client);
/* The call of a connection that waits for an answer, NULL: none, or it has gone. */
struct sl_request *sl_conn_request(const struct sl_agent *agent, uint64_t id);
/* Logs what connections were refused or ended for since the last call: a line for each kind. */
void sl_conns_log(struct sl_agent *agent);
bool sl_conns_untold(const struct sl_agent *agent);
/* Calls that the agent itself keeps waiting are signs of life (rule 2 of session.h). */
void sl_conns_heard(struct sl_agent *agent, int64_t now_ms);

/* --- methods.c --- */

extern const struct sl_interface sl_agent_interface;

void sl_reply_error(struct sl_request *request, const char *name, struct json_object *parameters);
void sl_reply_refused(struct sl_request *request, const struct sl_err *err);
/* Reads parameters; false: it was answered. */
bool sl_read_params(struct sl_request *request, const struct sl_param *params, void *out);
/*
 * The row that a method is about: of the id that `sandbox` is (NULL: it was not given), or
 * the connection's own. False: it was answered.
 */
bool sl_target(struct sl_agent *agent, struct sl_request *request, const struct sl_conn *conn,
	       const char *sandbox, unsigned int *row);
/* Of a session that is over or unknown, and so on: its answer; the connection ends. */
void sl_reply_step(struct sl_agent *agent, struct sl_request *request, const struct sl_step *step);
/* Ends a connection once its answer is on its way; `cause` as of sl_client_end(). */
void sl_conn_end(struct sl_agent *agent, uint64_t id, const char *cause);

void sl_method_attach(struct sl_request *request, void *ctx);
void sl_method_add_listener(struct sl_request *request, void *ctx);
void sl_method_plan(struct sl_request *request, void *ctx);
void sl_method_update(struct sl_request *request, void *ctx);
void sl_method_detach(struct sl_request *request, void *ctx);
void sl_method_report(struct sl_request *request, void *ctx);
void sl_method_list(struct sl_request *request, void *ctx);
void sl_method_show(struct sl_request *request, void *ctx);
void sl_method_status(struct sl_request *request, void *ctx);
void sl_method_watch(struct sl_request *request, void *ctx);
void sl_method_resolve_fd(struct sl_request *request, void *ctx);
void sl_method_resolve_tuple(struct sl_request *request, void *ctx);

/* --- detach.c, gone.c --- */

/* By itself, of a session that has ended; its row is another's or free some time later. */
void sl_agent_detach(struct sl_agent *agent, unsigned int row);
/* Ends sessions whose cgroup is gone, and detaches the oldest of them beyond some. */
void sl_agent_gone_look(struct sl_agent *agent);

/* --- update.c --- */

/* Loads the policy of a row anew from its copy, or from where it came from. */
void sl_agent_reload(struct sl_agent *agent, unsigned int row, bool from_file);
/* Looks the names of policies up again that are due; returns when the next one is, or -1. */
int64_t sl_agent_refresh(struct sl_agent *agent, int64_t now_ms);

/* --- detach.c --- */

/* Detaches the sandboxes of sessions of which nothing is to stay, once they are over. */
void sl_agent_remove_ended(struct sl_agent *agent);

/* --- sweep.c --- */

/* Begins to remove what nothing in the set refers to any more, when there may be much of it. */
void sl_agent_sweep(struct sl_agent *agent);

/* --- show.c, watch.c --- */

int sl_session_json(struct json_object **out, struct sl_agent *agent, unsigned int row);
/* Tells all watchers of a row; `gone`: its last state. */
void sl_agent_tell(struct sl_agent *agent, unsigned int row, bool gone);

/* --- decisions.c --- */

/* Logs what was denied since the last call. */
int sl_decisions_new(struct sl_decisions **out);
void sl_decisions_free(struct sl_decisions **decisions);
void sl_decisions_log(struct sl_decisions *decisions, struct sl_set *set);

#endif
