/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between server.c (connections) and request.c (what is said on them). */
#ifndef SLUICE_USER_CONTROL_SERVER_PRIVATE_H
#define SLUICE_USER_CONTROL_SERVER_PRIVATE_H

#include <sys/queue.h>

#include "control/server.h"

/* Embedded in its client, one at a time: in hand while `json` is not NULL. */
struct sl_request {
	struct sl_client *client;
	struct json_object *json;       /* the message */
	struct json_object *parameters; /* of it, or an empty object of its own */
	const char *method;             /* in `json` */
	struct sl_fds fds;
	bool more, oneway;
};

struct sl_client {
	LIST_ENTRY(sl_client) all;
	struct sl_server *server;
	struct sl_wire *wire;
	struct ucred peer;
	uint64_t group; /* whose room it takes; 0: its user's */
	struct sl_request request;
	void *data;
	unsigned int watched; /* EPOLL* */
	int64_t since_ms;     /* the last time that it did not keep us waiting */
	bool taking;          /* its requests are being taken: an answer need not start that */
	bool kicked;          /* answered otherwise: the next may be in the buffer already */
	bool ended;
	bool unanswered;   /* what was done could not be told */
	const char *cause; /* of its end, the first that is known */
};

struct sl_server {
	struct sl_server_options options;
	int epoll;
	bool paused; /* not listening */
	unsigned int count;
	LIST_HEAD(, sl_client) clients;
	uint64_t counts[SL_SERVER_COUNT_MAX];
};

/* Finds the method of the message in request->json and calls it, or answers with an error. */
void sl_request_run(struct sl_request *request);

/* Forgets the call, answered or not. */
void sl_request_drop(struct sl_request *request);

/* Tells the client that, and why, it is ended: the error Closed of the interface. */
void sl_client_say_end(struct sl_client *client);
/* The same on a connection that becomes no client. */
void sl_closed_send(const struct sl_server *server, int fd, const char *text);

/* Says so and ends it; `cause` is a static text. */
void sl_client_end_for(struct sl_client *client, const char *cause);

/* Watches for what the client's state needs now. */
void sl_client_watch(struct sl_client *client);

#endif
