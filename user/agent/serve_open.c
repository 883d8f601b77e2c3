/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Egress of a session as it is asked for, as it is kept for the next worker, and from there. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/serve_private.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/object.h"
#include "base/parse.h"
#include "control/params.h"
#include "kernel/netns.h"
#include "relay/relay.h"

#define NO_FD UINT64_MAX

struct read {
	unsigned int net, dns;
	uint64_t netns_fd, mark;
	struct json_object *upstreams;
	const char *proxy, *inspect, *device;
};

/* The tables of words end with NULL, which no text is. */
static const struct sl_param params[] = {
	SL_PARAM_ENUM(struct read, net, sl_reach_net_names),
	SL_PARAM_ENUM(struct read, dns, sl_reach_dns_names, .optional = true),
	SL_PARAM(UINT, struct read, netns_fd, .optional = true, .max = SL_FDS_MAX - 1),
	SL_PARAM(LIST, struct read, upstreams, .optional = true, .max = SL_RESOLVER_UPSTREAMS),
	SL_PARAM(STRING, struct read, proxy, .optional = true, .max = 64),
	SL_PARAM(STRING, struct read, inspect, .optional = true, .max = 64),
	SL_PARAM(UINT, struct read, mark, .optional = true, .max = UINT32_MAX),
	SL_PARAM(STRING, struct read, device, .optional = true, .max = SL_RELAY_DEVICE_MAX - 1),
	{ 0 },
};

/* --- what was asked for --- */

static int take_upstreams(struct sl_serve *serve, struct json_object *list, struct sl_err *err)
{
	size_t count = list ? json_object_array_length(list) : 0, at = 0, len;
	const char *text;

	for (size_t i = 0; i < count; i++) {
		text = json_object_get_string(json_object_array_get_idx(list, i));
		len = strlen(text);
		if (at + len + 2 > sizeof(serve->upstreams) || strchr(text, ','))
			return sl_err_set(err, EINVAL,
					  "upstreams are addresses, with a port or "
					  "without");
		if (at)
			serve->upstreams[at++] = ',';
		memcpy(&serve->upstreams[at], text, len + 1);
		at += len;
	}
	serve->options.upstream = at ? serve->upstreams : NULL;
	return 0;
}

/* What `json` says; it is held. */
static int serve_of(struct sl_serve **out, struct json_object *json, struct read *read,
		    struct sl_err *err)
{
	_cleanup_(sl_serve_free) struct sl_serve *serve = calloc(1, sizeof(*serve));
	const char *bad;

	if (!serve)
		return sl_err_sys(err, ENOMEM, "egress");
	pthread_mutex_init(&serve->lock, NULL);
	serve->netns = -1;
	*read = (struct read){ .netns_fd = NO_FD };
	if (sl_params_read(read, params, json, &bad))
		return sl_err_set(err, EINVAL, "egress: '%s' is not what it has to be", bad);
	serve->json = json_object_get(json);
	serve->options = (struct sl_reach_options){
		.net = read->net,
		.dns = read->dns,
		.proxy = read->proxy,
		.inspect = read->inspect,
	};
	serve->mark = read->mark;
	serve->device = read->device;
	if (take_upstreams(serve, read->upstreams, err))
		return -EINVAL;
	*out = TAKE_PTR(serve);
	return 0;
}

static int open_reach(struct sl_serve *serve, bool resume, struct sl_err *err)
{
	const struct sl_reach_place place = {
		.netns = serve->netns,
		.resume = resume,
		.mark = (unsigned int)serve->mark,
		.device = serve->device,
		.relays = 1,
	};
	int rc = sl_reach_open(&serve->reach, &serve->options, &place, err);

	return rc ? sl_err_prefix(err, "egress") : 0;
}

/* A relay in the agent's own namespace would cut the host off. */
static int check_netns(struct sl_serve *serve, struct sl_err *err)
{
	_cleanup_fd_ int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	__u64 cookie = 0;
	int rc = 0;

	if (serve->netns >= 0)
		rc = sl_netns_cookie(serve->netns, &serve->netns_cookie);
	if (rc)
		return sl_err_sys(err, -rc, "egress: netns_fd is no network namespace");
	if (serve->options.net != SL_REACH_NET_RELAY)
		return 0;
	rc = serve->netns < 0 || own < 0 ? 0 : sl_netns_cookie(own, &cookie);
	if (!rc && serve->netns >= 0 && cookie != serve->netns_cookie)
		return 0;
	sl_err_set(err, EINVAL, "egress: a relay needs a network namespace of the sandbox's own");
	return sl_err_hint(err, "send it as netns_fd, or name a process in it as mounts_of");
}

int sl_serve_new(struct sl_serve **out, struct json_object *json, struct sl_request *request,
		 pid_t member, struct sl_err *err)
{
	_cleanup_(sl_serve_free) struct sl_serve *serve = NULL;
	struct read read;
	int rc = serve_of(&serve, json, &read, err);

	if (rc)
		return rc;
	if (read.netns_fd != NO_FD) {
		serve->netns = sl_request_take_fd(request, (unsigned int)read.netns_fd);
		if (serve->netns < 0)
			return sl_err_set(err, EBADF, "netns_fd: no such descriptor was sent");
		json_object_object_del(serve->json, "netns_fd");
	} else if (member) {
		rc = sl_netns_of(member, &serve->netns, err);
	}
	rc = rc ?: check_netns(serve, err);
	rc = rc ?: open_reach(serve, false, err);
	if (!rc)
		*out = TAKE_PTR(serve);
	return rc;
}

/* --- for the next worker --- */

struct kept {
	struct json_object *egress;
	uint64_t netns_tag, netns_cookie;
};

static const struct sl_param kept_params[] = {
	SL_PARAM(OBJECT, struct kept, egress),
	SL_PARAM(ID, struct kept, netns_tag),
	SL_PARAM(ID, struct kept, netns_cookie),
	{ 0 },
};

static int add_id(struct json_object *json, const char *key, uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
	return sl_json_add(json, key, json_object_new_string(text));
}

static int write_kept(const struct sl_serve *serve, const struct sl_copies *copies,
		      const uint8_t key[SL_SESSION_KEY])
{
	struct json_object *json = json_object_new_object();
	const char *text;
	int rc = json ? sl_json_add(json, "egress", json_object_get(serve->json)) : -ENOMEM;

	rc = rc ?: add_id(json, "netns_tag", serve->tag);
	rc = rc ?: add_id(json, "netns_cookie", serve->netns_cookie);
	text = rc ? NULL : json_object_to_json_string(json);
	if (!rc)
		rc = text ? sl_copies_set_egress(copies, key, text) : -ENOMEM;
	json_object_put(json);
	return rc;
}

int sl_serve_keep(struct sl_serve *serve, struct sl_keeper_link *link,
		  const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY], uint64_t tag,
		  struct sl_err *err)
{
	int rc = 0;

	if (!serve)
		return 0;
	if (serve->netns >= 0) {
		rc = sl_keeper_hold(link, serve->netns, tag);
		if (rc)
			return sl_err_sys(err, -rc, "the keeper can't hold the network namespace");
		serve->tag = tag;
	}
	rc = write_kept(serve, copies, key);
	return rc ? sl_err_sys(err, -rc, "can't note the egress") : 0;
}

/* Rule 1: of the processes in the cgroup, one that is in the namespace. -1: there is none. */
static int find_netns(int cgroup, __u64 cookie)
{
	int fd = cgroup < 0 ? -1 : openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	_cleanup_file_ FILE *procs = fd < 0 ? NULL : fdopen(fd, "r");
	char line[32];
	uint32_t pid;
	__u64 found;
	int ns;

	if (!procs && fd >= 0)
		close(fd);
	while (procs && fgets(line, sizeof(line), procs)) {
		line[strcspn(line, "\n")] = '\0';
		if (sl_parse_u32(line, 1, INT32_MAX, &pid) || sl_netns_of((pid_t)pid, &ns, NULL))
			continue;
		if (!sl_netns_cookie(ns, &found) && found == cookie)
			return ns;
		close(ns);
	}
	return -1;
}

/* What the keeper has, or after its death what a member is in: then it has that from now on. */
static int adopt_netns(struct sl_serve *serve, struct sl_keeper_link *link, uint64_t tag,
		       int cgroup, struct sl_err *err)
{
	if (!tag)
		return 0;
	serve->tag = tag;
	if (!sl_keeper_take(link, tag, &serve->netns))
		return 0;
	serve->netns = find_netns(cgroup, serve->netns_cookie);
	if (serve->netns < 0)
		return sl_err_set(err, ENOENT,
				  "the agent was killed with its keeper, and no process of the "
				  "sandbox is in its network namespace: attach it anew");
	if (sl_keeper_hold(link, serve->netns, tag))
		sl_log_warning("a network namespace is not held for the worker after this one");
	return 0;
}

int sl_serve_adopt(struct sl_serve **out, struct sl_keeper_link *link,
		   const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY], int cgroup,
		   struct sl_err *err)
{
	_cleanup_(sl_serve_free) struct sl_serve *serve = NULL;
	_cleanup_free_ char *text = NULL;
	struct json_object *json;
	struct kept kept = { 0 };
	struct read read;
	const char *bad;
	int rc = sl_copies_egress(copies, key, &text);

	if (rc)
		return rc == -ENOENT ? rc : sl_err_sys(err, -rc, "can't read the egress");
	json = json_tokener_parse(text);
	if (!json_object_is_type(json, json_type_object) ||
	    sl_params_read(&kept, kept_params, json, &bad))
		rc = sl_err_set(err, EBADMSG, "what was noted of the egress is damaged");
	rc = rc ?: serve_of(&serve, kept.egress, &read, err);
	json_object_put(json);
	if (rc)
		return rc;
	serve->netns_cookie = kept.netns_cookie;
	rc = adopt_netns(serve, link, kept.netns_tag, cgroup, err);
	rc = rc ?: open_reach(serve, true, err);
	if (!rc)
		*out = TAKE_PTR(serve);
	return rc;
}
