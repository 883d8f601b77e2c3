// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is only looked at: sandboxes, and who owns a socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/object.h"
#include "base/parse.h"
#include "lib/private.h"

/* What was given out before is gone, what is given now points into `json`. */
static const char *give(struct sl_runtime *rt, struct json_object *json, struct json_object *shown)
{
	json_object_put(rt->given);
	rt->given = json;
	return json_object_to_json_string_ext(shown, JSON_C_TO_STRING_PLAIN);
}

static int strange(struct sl_runtime *rt)
{
	return sl_err_set(&rt->err, EPROTO, "the agent's answer is that of no agent");
}

static void fill_session(struct sl_runtime_session *out, struct json_object *session,
			 const char *text)
{
	*out = (struct sl_runtime_session){
		.json = text,
		.sandbox = answer_text(session, "sandbox"),
		.cgroup = answer_text(session, "cgroup"),
		.state = answer_text(session, "state"),
		.wanted = answer_text(session, "wanted"),
		.cause = answer_text(session, "cause"),
		.reason = answer_text(session, "reason"),
		.freeze_asked = answer_bool(session, "freeze_asked"),
		.connected = answer_bool(session, "connected"),
		.enforced = answer_bool(session, "enforced"),
	};
}

int sl_runtime_show(struct sl_runtime *rt, const struct sl_runtime_session **out)
{
	struct json_object *parameters = NULL, *reply = NULL, *session;
	const char *text;
	int ret;

	if (rt->sandbox[0]) {
		parameters = json_object_new_object();
		ret = parameters ? ask_text(parameters, "sandbox", rt->sandbox) : -ENOMEM;
		if (ret) {
			json_object_put(parameters);
			return sl_err_sys(&rt->err, -ret, "can't ask");
		}
	}
	ret = lib_call(rt, MACHINE_CONNECTION, "io.sluice.Show", parameters, NULL, &reply);
	if (ret)
		return ret;
	session = answer_object(reply, "session");
	text = give(rt, reply, session);
	if (!session || !text)
		return strange(rt);
	fill_session(&rt->session, session, text);
	*out = &rt->session;
	return 0;
}

int sl_runtime_watch(struct sl_runtime *rt, sl_runtime_watch_fn *fn, void *data)
{
	if (rt->state != SL_RUNTIME_NONE || rt->watch || !rt->timeout_ms)
		return sl_err_set(&rt->err, EBUSY,
				  "a watch needs a connected handle without a session");
	rt->watch = fn;
	rt->watch_data = data;
	rt->state = SL_RUNTIME_LOST;
	machine_timer(rt, true);
	return 0;
}

void lib_watched(struct sl_runtime *rt, struct json_object *message)
{
	struct json_object *session = answer_object(message, "session");
	const char *event = answer_text(message, "event"), *text;

	/* What a later agent has more is not this one's to show. */
	if (!session || !event)
		return;
	text = give(rt, json_object_get(message), session);
	if (!text)
		return;
	fill_session(&rt->session, session, text);
	rt->session.gone = !strcmp(event, "gone");
	rt->session.lost = answer_number(message, "lost");
	rt->watch(&rt->session, rt->watch_data);
}

/* --- owners --- */

static int give_owner(struct sl_runtime *rt, struct json_object *reply, bool by_fd,
		      const struct sl_runtime_owner **out)
{
	struct json_object *found = answer_object(reply, "socket"), *socket, *owner;
	const char *where = answer_text(found, "found");
	const char *text = give(rt, reply, found);
	const char *start;
	bool accepted;

	socket = answer_object(found, "socket");
	if (!found || !socket || !where || !text)
		return strange(rt);
	/*
	 * An accepted socket's record has the client, too, if that is known; if not, whose the
	 * socket is says nothing of who is at the other end.
	 */
	accepted = by_fd && !strcmp(answer_text(socket, "direction") ?: "", "in");
	owner = answer_object(socket, accepted ? "peer" : "process");
	start = answer_text(owner, "start_ns");
	rt->owner = (struct sl_runtime_owner){
		.closed = !strcmp(where, "closed"),
		.pid = (pid_t)answer_number(owner, "pid"),
		.uid = (uid_t)answer_number(owner, "uid"),
		.exe = answer_text(answer_object(owner, "exe"), "path"),
		.comm = answer_text(owner, "comm"),
		.sandbox = answer_text(owner, "sandbox"),
		.json = text,
	};
	if (start && sl_parse_u64(start, 0, UINT64_MAX, &rt->owner.start_ns))
		return strange(rt);
	*out = &rt->owner;
	return 0;
}

int sl_runtime_resolve_fd(struct sl_runtime *rt, int socket_fd, const struct sl_runtime_owner **out)
{
	struct json_object *parameters = json_object_new_object(), *reply = NULL;
	const struct sl_fds fds = { .fd = { socket_fd }, .count = 1 };
	int ret = parameters ? 0 : -ENOMEM;

	ret = ret ?: sl_json_add(parameters, "socket_fd", json_object_new_int(0));
	if (ret) {
		json_object_put(parameters);
		return sl_err_sys(&rt->err, -ret, "can't ask");
	}
	ret = lib_call(rt, MACHINE_CONNECTION, "io.sluice.ResolveFd", parameters, &fds, &reply);
	return ret ?: give_owner(rt, reply, true, out);
}

static int ask_endpoint(struct json_object *json, const char *key, const struct sockaddr *address)
{
	struct json_object *endpoint = json_object_new_object();
	const struct sockaddr_in6 *v6 = (const void *)address;
	const struct sockaddr_in *v4 = (const void *)address;
	char text[INET6_ADDRSTRLEN];
	unsigned int port;
	int ret = endpoint ? 0 : -ENOMEM;

	if (!ret && address->sa_family != AF_INET && address->sa_family != AF_INET6)
		ret = -EAFNOSUPPORT;
	if (!ret) {
		port = ntohs(address->sa_family == AF_INET ? v4->sin_port : v6->sin6_port);
		inet_ntop(address->sa_family,
			  address->sa_family == AF_INET ? (const void *)&v4->sin_addr
							: (const void *)&v6->sin6_addr,
			  text, sizeof(text));
		ret = ask_text(endpoint, "addr", text);
		ret = ret ?: sl_json_add(endpoint, "port", json_object_new_int((int)port));
	}
	if (!ret)
		return sl_json_add(json, key, endpoint);
	json_object_put(endpoint);
	return ret;
}

static int ask_tuple(struct json_object *json, int type, const struct sockaddr *local,
		     const struct sockaddr *remote, uint64_t netns_cookie)
{
	char cookie[24];
	int ret;

	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return -EPROTOTYPE;
	snprintf(cookie, sizeof(cookie), "%" PRIu64, netns_cookie);
	ret = ask_text(json, "transport", type == SOCK_STREAM ? "tcp" : "udp");
	ret = ret ?: ask_endpoint(json, "local", local);
	ret = ret ?: ask_endpoint(json, "remote", remote);
	return ret ?: ask_text(json, "netns_cookie", netns_cookie ? cookie : NULL);
}

int sl_runtime_resolve_tuple(struct sl_runtime *rt, int type, const struct sockaddr *local,
			     const struct sockaddr *remote, uint64_t netns_cookie,
			     const struct sl_runtime_owner **out)
{
	struct json_object *parameters = json_object_new_object(), *reply = NULL;
	int ret = parameters ? ask_tuple(parameters, type, local, remote, netns_cookie) : -ENOMEM;

	if (ret) {
		json_object_put(parameters);
		return sl_err_sys(&rt->err, -ret, "can't ask for these addresses");
	}
	ret = lib_call(rt, MACHINE_CONNECTION, "io.sluice.ResolveTuple", parameters, NULL, &reply);
	return ret ?: give_owner(rt, reply, false, out);
}
