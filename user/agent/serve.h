/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The egress of one session: what its client asked for, the network namespace, and, when its
 * policy has something to serve, policy DNS and relay (egress/egress.h).
 *
 *	sl_serve_new(&serve, json, request, member, &err);	of Attach
 *	sl_serve_keep(serve, link, copies, key, tag, &err);	for the next worker, which does
 *	sl_serve_adopt(&serve, link, copies, key, cgroup, &err);
 *	sl_serve_apply_options(serve, &options);		of a policy
 *	sl_serve_listen(), load, sl_serve_ready(), sl_serve_switch()
 *	sl_serve_drop(serve, link);				with its session
 *	sl_serve_free(&serve);
 *
 * Rules
 * 1. The keeper holds the namespace like a listener: a worker that follows finds it though
 *    nobody is in it. After the keeper's own death it is found by a member that is.
 * 2. Policies that are asked are counted from here (struct sl_use), and not trimmed.
 * 3. listen, ready and switch are for jobs of the session; stats are for the loop meanwhile.
 *    NULL is a session without: then all do nothing.
 * 4. Streams and flows end with the worker; what names were told goes on.
 */
#ifndef SLUICE_USER_AGENT_SERVE_H
#define SLUICE_USER_AGENT_SERVE_H

#include "agent/copy.h"
#include "agent/use.h"
#include "base/object.h"
#include "broker/keeper.h"
#include "control/server.h"
#include "guard/apply.h"
#include "run/reach.h"

struct sl_serve;

/*
 * `json` is an object as `Egress` of io.sluice; without a netns_fd the namespace is that of the
 * process `member`, 0: the agent's. -EINVAL, -EBADF, or why it can't be opened.
 */
int sl_serve_new(struct sl_serve **out, struct json_object *json, struct sl_request *request,
		 pid_t member, struct sl_err *err);
void sl_serve_free(struct sl_serve **serve);

/* `tag` is one of sl_held_tag(). */
int sl_serve_keep(struct sl_serve *serve, struct sl_keeper_link *link,
		  const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY], uint64_t tag,
		  struct sl_err *err);
/* -ENOENT, without a text: the session has none. `cgroup`: its directory, open; -1: gone. */
int sl_serve_adopt(struct sl_serve **out, struct sl_keeper_link *link,
		   const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY], int cgroup,
		   struct sl_err *err);
/* The keeper holds nothing for it any more. */
void sl_serve_drop(struct sl_serve *serve, struct sl_keeper_link *link);

void sl_serve_apply_options(const struct sl_serve *serve, struct sl_apply_options *options);

/* Before a policy is loaded: listens, if it does not and there is something to serve. */
int sl_serve_listen(struct sl_serve *serve, struct sl_use *use, struct sl_err *err);
/* `use` is not in force yet. */
int sl_serve_ready(struct sl_serve *serve, struct sl_use *use, uint32_t policy_id,
		   struct sl_err *err);
/* It is, or (false) will not be: then what listens for it alone does not any more. */
void sl_serve_switch(struct sl_serve *serve, bool loaded);

/* As it is shown. */
struct sl_serve_view {
	const char *net, *dns;
	bool serving;
	struct sl_egress_stats stats;
};
extern const struct sl_field sl_serve_fields[];

void sl_serve_view(struct sl_serve *serve, struct sl_serve_view *out);

#endif
