/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who owns a socket: by its descriptor, or by its two ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/object.h"
#include "base/parse.h"
#include "socket/sock_client.h"
#include "socket/sock_find.h"
#include "socket/sock_view.h"

/* The answer to both. */
static int reply_socket(struct sl_request *request, struct sl_set *set, const struct sl_sock *sock,
			bool closed)
{
	_cleanup_(sl_view_source_free) struct sl_view_source *source = NULL;
	struct sl_view_ops ops = sl_view_ops_of_set(set);
	struct json_object *json, *found, *socket = NULL;
	struct sl_view_sock view;
	int ret = sl_view_source_new(&source, &ops);

	ret = ret ?: sl_view_sock_fill(&view, sock, NULL, source);
	ret = ret ?: sl_object_json(&socket, sl_view_sock_fields, &view);
	if (ret)
		return ret;
	json = json_object_new_object();
	found = json_object_new_object();
	if (!json || sl_json_add(json, "socket", found)) {
		json_object_put(json);
		json_object_put(socket);
		return -ENOMEM;
	}
	sl_json_add(found, "found", json_object_new_string(closed ? "closed" : "live"));
	sl_json_add(found, "socket", socket);
	sl_request_reply(request, json);
	return 0;
}

static void refuse(struct sl_request *request, int ret, const char *what)
{
	struct sl_err err;

	if (ret == -ENOENT)
		sl_err_set(&err, ENOENT, "no record of %s", what);
	else
		sl_err_sys(&err, -ret, "can't look up %s", what);
	sl_reply_refused(request, &err);
}

struct by_fd {
	uint64_t socket_fd;
};

static const struct sl_param fd_params[] = {
	SL_PARAM(UINT, struct by_fd, socket_fd, .max = SL_FDS_MAX - 1),
	{ 0 },
};

void sl_method_resolve_fd(struct sl_request *request, void *ctx)
{
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;
	_cleanup_fd_ int fd = -1;
	struct sl_sock sock;
	struct by_fd read;
	int ret;

	if (!sl_read_params(request, fd_params, &read))
		return;
	fd = sl_request_take_fd(request, (unsigned int)read.socket_fd);
	if (fd < 0) {
		sl_request_invalid(request, "socket_fd");
		return;
	}
	ret = sl_agent_set(ctx, &set, NULL);
	if (!ret) {
		ret = sl_sock_by_fd(set->set, fd, &sock);
		if (ret == -ENOENT)
			ret = sl_sock_client(set->set, fd, &sock);
	}
	ret = ret ?: reply_socket(request, set->set, &sock, sock.closed_ns != 0);
	if (ret)
		refuse(request, ret, "that socket");
}

struct endpoint {
	const char *addr;
	uint64_t port;
};

static const struct sl_param endpoint_params[] = {
	SL_PARAM(STRING, struct endpoint, addr, .max = 64),
	SL_PARAM(UINT, struct endpoint, port, .max = UINT16_MAX),
	{ 0 },
};

static const char *const transport_words[] = { "tcp", "udp" };

struct by_tuple {
	unsigned int transport;
	struct json_object *local, *remote;
	uint64_t netns_cookie;
};

static const struct sl_param tuple_params[] = {
	SL_PARAM_ENUM(struct by_tuple, transport, transport_words),
	SL_PARAM(OBJECT, struct by_tuple, local),
	SL_PARAM(OBJECT, struct by_tuple, remote),
	SL_PARAM(ID, struct by_tuple, netns_cookie, .optional = true),
	{ 0 },
};

static bool read_endpoint(struct sl_request *request, struct json_object *json, const char *name,
			  struct sl_endpoint *out)
{
	struct endpoint read;
	const char *bad;

	memset(out, 0, sizeof(*out));
	if (sl_params_read(&read, endpoint_params, json, &bad) ||
	    sl_parse_addr(read.addr, out->addr_be)) {
		sl_request_invalid(request, name);
		return false;
	}
	out->port_be = __builtin_bswap16((uint16_t)read.port);
	return true;
}

/* A search goes through all sockets of the host: beside the loop. */
struct resolve {
	struct sl_job job;
	struct sl_agent *agent;
	uint64_t conn;
	struct sl_agent_set *set; /* NULL: there is none, and no record */
	struct sl_sock_ends ends;
	struct sl_sock_found found;
	int ret;
};

/* One key for all: two searches at a time would be no faster. */
#define RESOLVE_KEY SL_RECORDS_MAX

static void run(struct sl_job *job)
{
	struct resolve *r = (struct resolve *)job;

	if (!r->ret)
		r->ret = sl_sock_find(r->set->set, &r->ends, &r->found);
}

static void done(struct sl_job *job)
{
	struct resolve *r = (struct resolve *)job;
	struct sl_request *request = job->dropped ? NULL : sl_conn_request(r->agent, r->conn);

	if (request && !r->ret)
		r->ret = reply_socket(request, r->set->set, &r->found.found.sock, r->found.closed);
	if (request && r->ret)
		refuse(request, r->ret, "such a socket");
	sl_agent_set_put(&r->set);
	free(r);
}

void sl_method_resolve_tuple(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	const struct sl_conn *conn = sl_conn_enter(agent, request);
	struct by_tuple read = { 0 };
	struct sl_sock_ends ends;
	struct resolve *r;
	unsigned int row;

	if (!conn || !sl_read_params(request, tuple_params, &read) ||
	    !read_endpoint(request, read.local, "local", &ends.local) ||
	    !read_endpoint(request, read.remote, "remote", &ends.remote))
		return;
	/* Of a session's own connection it is a sign of life. */
	(void)sl_session_heard(agent->sessions, conn->id, sl_monotonic_ms(), &row);
	ends.netns_cookie = read.netns_cookie;
	ends.udp = read.transport == 1;
	r = calloc(1, sizeof(*r));
	if (!r) {
		refuse(request, -ENOMEM, "a socket");
		return;
	}
	r->job = (struct sl_job){ .key = RESOLVE_KEY, .run = run, .done = done };
	r->agent = agent;
	r->conn = conn->id;
	r->ends = ends;
	r->ret = sl_agent_set(agent, &r->set, NULL);
	sl_work_add(agent->work, &r->job);
}
