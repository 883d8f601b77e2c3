/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluiced as a program, with a socket, a state directory and a set of its own, and sandbox
 * runtimes in miniature: sessions with it.
 *
 * Order of use: agent_up() as .init; box_make() and box_attach() for each sandbox, box_go(),
 * calls, box_free(); agent_down() as .fini. Nothing here returns an error: what can't be made
 * fails the test.
 */
#ifndef SLUICE_SYSTEM_AGENT_H
#define SLUICE_SYSTEM_AGENT_H

#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "broker/filter.h"
#include "broker/listener.h"
#include "control/client.h"

struct agent {
	pid_t pid; /* the keeper */
	char dir[64], socket[96], state[96], log[96], set[96];
	void (*before)(void); /* done in its process before it is executed; NULL: nothing */
};

extern struct agent agent;

void agent_up(void);
void agent_down(void);
/* Starts it again, with the same places. */
void agent_start(void);
/* Sends a signal and waits for its end: exit code, or 128 + signal. */
int agent_end(int signal);
/* Pid of the worker. */
pid_t agent_worker(void);
/* A whole file, as far as it is there; freed by the caller. */
char *agent_text(const char *path);
/* How many descriptors a process has. */
unsigned int agent_fds(pid_t pid);
/* The log so far; freed by the caller. */
char *agent_log(void);

/* How many it lists. */
unsigned int agent_sessions(void);

/* Connected, Hello said. */
struct sl_control *agent_connect(void);
/* Connected only. */
int agent_socket(void);

/*
 * A call with parameters of the form "{'key': 'value', 'n': %d}": ' stands for ". The answer's
 * parameters, freed with json_object_put().
 */
struct json_object *agent_call(struct sl_control *control, const char *method, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, and nothing of the answer. */
void agent_do(struct sl_control *control, const char *method, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for one that must fail with this error of io.sluice; its parameters. */
struct json_object *agent_refused(struct sl_control *control, const char *error, const char *method,
				  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same with parameters and descriptors that are made already; `error` NULL: it succeeds. */
struct json_object *agent_send(struct sl_control *control, const char *error, const char *method,
			       struct json_object *params, const struct sl_fds *fds);

struct box {
	char cgroup[PATH_MAX];
	char output[96]; /* file */
	pid_t pid;       /* of its first process, 0: it has none */
	struct sl_handoff handoff;
	int listener; /* -1: it has no filter */
	int in;       /* write end of its stdin */
	struct sl_control *control;
	char key[33], token[65], sandbox[16];
	unsigned int epoch;
};

/*
 * A cgroup, and with `argv` a process in it that waits, under the filter if there is one, to
 * execute that; its output goes to a file.
 */
void box_make(struct box *box, const struct sl_filter_options *filter, const char *const argv[]);
/* Parameters of Attach beside those that a box knows by itself, as of agent_call(). */
void box_attach(struct box *box, const char *policy, const char *options);
/* Calls it, without a listener, and does not wait for the answer. */
void box_begin(struct box *box, const char *policy);
/* Attach that must fail with this error; its parameters. */
struct json_object *box_refused(struct box *box, const char *policy, const char *options,
				const char *error);
/* Lets the process go. */
void box_go(struct box *box);
/* Waits for its end: exit code, or 128 + signal. */
int box_wait(struct box *box);
/* What it has printed; freed by the caller. */
char *box_output(const struct box *box);
/* One more connection from inside, by a process that joins; 0 or what sl-load said. */
int box_connect(const struct box *box, unsigned int port);
/* Recover on a new connection, with the next epoch. */
void box_recover(struct box *box);
/* Kills what is left, detaches, removes the cgroup. */
void box_free(struct box *box);

/* Show of a box by its id, from a connection of its own. */
struct json_object *box_show(const struct box *box);
/* Waits until a text of Show is this. */
void box_await(const struct box *box, const char *member, const char *text);
/* What cgroup.freeze has; waits until it is that. */
void box_await_frozen(const struct box *box, bool frozen);
/* One number of a condition, or its text; fails when there is no such condition. */
struct json_object *box_condition(struct json_object *session, const char *type);
/* NULL: there is none. */
struct json_object *box_find_condition(struct json_object *session, const char *type);

/* A policy for sl-load by its path, or by a pattern if `glob`, to 127.0.0.1:port. */
const char *agent_policy(bool glob, unsigned int port);

#endif
