/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inside of a handle of libsluice. Rules of include/sluice/libsluice.h.
 *
 * One machine (machine.c) makes every connection, in steps that never wait: connect, Hello, then
 * what is wanted of it: Attach or Recover, Watch, or nothing. Calls that wait run the machine
 * until they have what they need, so there is one way into a session, and one out of it.
 *
 * Invariants
 * 1. Each Attach and each Recover that is sent has an epoch above all before it, answered or
 *    not (selftests/model/client.pml). So an answer that comes late is nobody's.
 * 2. One call is in hand at most. Who gives up on an answer drops the connection.
 * 3. The epoll descriptor is readable when machine_run() has something to do: the
 *    connection's descriptor and a timer for `due` are in it. A connection is taken out before it
 *    is closed: a child after fork() may have it, too.
 */
#ifndef SLUICE_USER_LIB_PRIVATE_H
#define SLUICE_USER_LIB_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>
#include <sluice/libsluice.h>

#include "base/err.h"
#include "base/fds.h"
#include "control/client.h"

#define SL_RUNTIME_SOCKET "/run/sluice/control.sock"
#define SL_RUNTIME_TOKEN_LEN 64 /* hexadecimal digits */
#define SL_RUNTIME_WORD 64      /* of a component's name or version, with terminator */

enum machine_phase {
	MACHINE_DOWN,
	MACHINE_HELLO, /* sent */
	MACHINE_ASKED, /* Attach or Recover was sent */
	MACHINE_UP,
};

struct sl_runtime {
	char name[SL_RUNTIME_WORD], version[SL_RUNTIME_WORD];
	char path[108]; /* of sockaddr_un */
	int timeout_ms;
	struct sl_err err;
	struct sl_err read_err; /* that nothing has come is no error to tell */
	int epoll, timer;

	/* The connection. */
	struct sl_control *control;
	enum machine_phase phase;
	unsigned int pause_ms; /* before the next try, when that fails too */
	int64_t retry_at;      /* in DOWN */
	bool hurried;          /* a try is wanted, though nothing else is */
	int64_t up_at;         /* since when, in UP */
	int64_t deadline;      /* of the answer that is awaited */
	int failed;            /* why the latest try failed, -errno */
	bool answered;         /* the agent said so of the Attach */
	bool beating;          /* a Heartbeat is not answered */
	int64_t said_at;       /* the latest call that was sent */

	/* The session. */
	enum sl_runtime_state state;
	int final;               /* in OVER */
	struct json_object *ask; /* parameters of Attach until it is answered */
	struct sl_fds fds;       /* that go with it */
	char token[SL_RUNTIME_TOKEN_LEN + 1];
	char sandbox[32];
	uint64_t epoch;          /* the greatest that was sent */
	unsigned int silence_ms; /* 0: never */

	/* The watch. */
	sl_runtime_watch_fn *watch;
	void *watch_data;

	/* What was given out. */
	struct json_object *given;
	struct sl_runtime_session session;
	struct sl_runtime_owner owner;
};

/* --- machine.c --- */

/* Does what can be done without waiting, and sets the timer. */
void machine_run(struct sl_runtime *rt);

/* Sets the timer to what is due next. */
void machine_timer(struct sl_runtime *rt, bool at_once);

/* Ends the connection; what is wanted is tried again, at once if it was up. */
void machine_drop(struct sl_runtime *rt);

/* Final. The error is set. */
void machine_over(struct sl_runtime *rt, int code);

/* Gives up an Attach that was not sent. */
void machine_unsaid(struct sl_runtime *rt);

/* Tries again with the next run. */
void machine_hurry(struct sl_runtime *rt);

enum machine_need {
	MACHINE_CONNECTION, /* of a handle with a session: its own, unless that is over */
	MACHINE_SESSION,
};

/* Waits until it is there and no answer is awaited. 0, or by rule 1. */
int machine_reach(struct sl_runtime *rt, enum machine_need need, int64_t until);

/* --- answer.c --- */

/*
 * The error of the latest answer as an errno and, in rt->err, for people. Negative, never 0.
 */
int answer_error(struct sl_runtime *rt, struct json_object *reply);

/* A member of an answer: NULL, 0 and false when it is not there or of another type. */
const char *answer_text(struct json_object *json, const char *key);
uint64_t answer_number(struct json_object *json, const char *key);
bool answer_bool(struct json_object *json, const char *key);
struct json_object *answer_object(struct json_object *json, const char *key);

/* Adds a text, NULL adds nothing. -EILSEQ, -ENOMEM. */
int ask_text(struct json_object *json, const char *key, const char *text);

/* --- call.c --- */

/*
 * One call and its answer; `parameters` (NULL: none) are taken over, *reply (may be NULL) is
 * the caller's.
 */
int lib_call(struct sl_runtime *rt, enum machine_need need, const char *method,
	     struct json_object *parameters, const struct sl_fds *fds, struct json_object **reply);

/* --- look.c --- */

/* One message of a watch. */
void lib_watched(struct sl_runtime *rt, struct json_object *message);

#endif
