/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A varlink service (https://varlink.org): clients on a unix socket, their calls handed to
 * methods, answers and streams sent back. Knows nothing of what the methods do.
 *
 *	sl_server_new(&server, &options, &err);
 *	poll sl_server_fd(server), then sl_server_run(server);	calls the methods
 *	sl_server_tick(server);					about once a second
 *	sl_server_free(&server);
 *
 * In a method, or later: each call is answered exactly once, by sl_request_reply() or
 * sl_request_error(). A method that returns without an answer keeps the call; the client's next
 * one is not read until then, so a client has one call in hand. With "more" (SL_METHOD_MORE)
 * any number of sl_request_continue() may come before the answer.
 *
 * Rules
 * 1. A client fails alone: what it sent wrong, does not read, or leaves half said ends its
 *    connection and nothing else. Its pending call is told by `gone` and is then invalid.
 * 2. Clients are bounded: all together and for each user but root, for whom some places are
 *    kept. Without a free descriptor nothing is accepted until the next tick.
 * 3. Who a client is, is what the kernel said when it connected (SO_PEERCRED).
 * 4. One thread. Methods may free nothing of the server's.
 * 5. What the server ends, or refuses, is told why before: INTERFACE.Closed (text, taken), an error
 *    that answers nothing. Unless `taken`, of what was not answered nothing was or will be done.
 */
#ifndef SLUICE_USER_CONTROL_SERVER_H
#define SLUICE_USER_CONTROL_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <json-c/json.h>

#include "base/err.h"
#include "control/wire.h"

struct sl_server;
struct sl_client;
struct sl_request; /* a call of a client */

enum sl_method_flag {
	SL_METHOD_ROOT = 1 << 0, /* for uid 0 only; others get PermissionDenied */
	SL_METHOD_MORE = 1 << 1, /* a stream: a call without "more" gets ExpectedMore */
};

struct sl_method {
	const char *name; /* without the interface */
	unsigned int flags;
	void (*fn)(struct sl_request *request, void *ctx);
};

struct sl_interface {
	const char *name;
	const char *description; /* in varlink's interface language */
	const struct sl_method *methods;
	size_t count;
};

struct sl_server_options {
	int listener; /* listening, borrowed */
	const struct sl_interface *interface;
	void *ctx; /* of the methods */
	const char *product, *version;
	/* A client has gone, with what sl_client_set() left. May be NULL. */
	void (*gone)(struct sl_client *client, void *data, void *ctx);
	/* 0 is the default. */
	struct sl_wire_limits wire;
	unsigned int clients;  /* 1024; a quarter of them is kept for root */
	unsigned int per_user; /* 32, for each user but root */
	/*
	 * A number that is not 0 for peers that are root and yet not to be trusted with all the
	 * room there is: those of one number have as much as a user. May be NULL.
	 */
	uint64_t (*group)(const struct ucred *peer, void *ctx);
	unsigned int partial_ms; /* 10,000: for a message that was begun, or is not read */
};

enum sl_server_count {
	SL_SERVER_ACCEPTED,
	SL_SERVER_REFUSED,   /* too many clients */
	SL_SERVER_NO_FDS,    /* accept() had no descriptor or memory */
	SL_SERVER_MALFORMED, /* ended for what they sent */
	SL_SERVER_STALLED,   /* ended: a message begun and not finished, an answer not read */
	SL_SERVER_CALLS,
	SL_SERVER_COUNT_MAX
};

int sl_server_new(struct sl_server **out, const struct sl_server_options *options,
		  struct sl_err *err);
void sl_server_free(struct sl_server **server);

int sl_server_fd(const struct sl_server *server);
void sl_server_run(struct sl_server *server);
void sl_server_tick(struct sl_server *server);

uint64_t sl_server_count(const struct sl_server *server, enum sl_server_count which);
unsigned int sl_server_clients(const struct sl_server *server);

/* Of a call, valid until it is answered or its client has gone. */
struct json_object *sl_request_parameters(const struct sl_request *request); /* never NULL */
struct sl_client *sl_request_client(const struct sl_request *request);
const char *sl_request_method(const struct sl_request *request);

/* A descriptor that came with it, the caller's from now on. -EBADF: no such. */
int sl_request_take_fd(struct sl_request *request, unsigned int index);

/* `parameters` is taken over, NULL for none. No memory ends the client. */
void sl_request_reply(struct sl_request *request, struct json_object *parameters);
void sl_request_error(struct sl_request *request, const char *error,
		      struct json_object *parameters);
void sl_request_invalid(struct sl_request *request, const char *parameter); /* InvalidParameter */

/*
 * One of a stream. -ENOBUFS: the client reads too slowly, nothing was sent, and the caller
 * decides what to leave out.
 */
int sl_request_continue(struct sl_request *request, struct json_object *parameters);

/* What belongs to the client; NULL at first. */
void sl_client_set(struct sl_client *client, void *data);
void *sl_client_get(const struct sl_client *client);
const struct ucred *sl_client_peer(const struct sl_client *client);
/* Its call that is not answered yet, or NULL. */
struct sl_request *sl_client_request(const struct sl_client *client);

/* Why it has gone, for people; in `gone`. */
const char *sl_client_cause(const struct sl_client *client);

/*
 * Ends it after what is queued was offered once; `gone` is called from the next run. `cause`, a
 * static text, is told first (rule 5); NULL: its last answer has said it.
 */
void sl_client_end(struct sl_client *client, const char *cause);

#endif
