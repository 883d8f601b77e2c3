// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "agent/serve.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/serve_private.h"
#include "base/cleanup.h"
#include "base/object.h"
#include "kernel/netns.h"

#define STATS(name) SL_FIELD_AS(UINT, struct sl_serve_view, stats.name, #name, NULL)

const struct sl_field sl_serve_fields[] = {
	SL_FIELD_TEXT(struct sl_serve_view, net, "NET"),
	SL_FIELD_TEXT(struct sl_serve_view, dns, NULL),
	SL_FIELD_BOOL(struct sl_serve_view, serving, NULL),
	STATS(queries),
	STATS(refused_names),
	STATS(leases),
	STATS(synthetic),
	STATS(unleased),
	STATS(crowded),
	STATS(limited),
	STATS(lost),
	STATS(streams),
	STATS(flows),
	STATS(denied),
	STATS(dial_failed),
	STATS(strangers),
	{ 0 },
};

void sl_serve_free(struct sl_serve **out)
{
	struct sl_serve *serve = TAKE_PTR(*out);

	if (!serve)
		return;
	sl_reach_free(&serve->reach);
	sl_use_put(&serve->next);
	sl_use_put(&serve->now);
	sl_agent_set_put(&serve->set);
	sl_cleanup_fd(&serve->netns);
	json_object_put(serve->json);
	pthread_mutex_destroy(&serve->lock);
	free(serve);
}

void sl_serve_drop(struct sl_serve *serve, struct sl_keeper_link *link)
{
	if (serve && serve->tag)
		(void)sl_keeper_drop(link, serve->tag);
}

void sl_serve_apply_options(const struct sl_serve *serve, struct sl_apply_options *options)
{
	if (serve)
		sl_reach_apply_options(serve->reach, options);
}

/* --- in jobs --- */

int sl_serve_listen(struct sl_serve *serve, struct sl_use *use, struct sl_err *err)
{
	bool serves;
	int rc;

	if (!serve || serve->serving)
		return 0;
	serves = sl_reach_serves(serve->reach, use->apply);
	if (!serves && !sl_reach_leads(serve->reach))
		return 0;
	if (!serve->set)
		serve->set = sl_agent_set_get(use->set);
	rc = sl_reach_listen(serve->reach, serve->set->set, use->sandbox, use->apply, err);
	if (rc)
		return sl_err_prefix(err, "egress");
	pthread_mutex_lock(&serve->lock);
	serve->serving = serves;
	pthread_mutex_unlock(&serve->lock);
	return 0;
}

int sl_serve_ready(struct sl_serve *serve, struct sl_use *use, uint32_t policy_id,
		   struct sl_err *err)
{
	if (!serve || !serve->serving)
		return 0;
	use->kept = true;
	sl_use_put(&serve->next);
	serve->next = sl_use_get(use);
	return sl_reach_ready(serve->reach, use->apply, policy_id, err);
}

void sl_serve_switch(struct sl_serve *serve, bool loaded)
{
	struct sl_use *before;

	if (!serve || !serve->serving)
		return;
	sl_reach_switch(serve->reach, loaded && serve->next);
	before = loaded && serve->next ? serve->now : serve->next;
	if (loaded && serve->next)
		serve->now = serve->next;
	serve->next = NULL;
	sl_use_put(&before);
	if (serve->now)
		return;
	/* It was made for a policy that did not come. */
	pthread_mutex_lock(&serve->lock);
	serve->serving = false;
	pthread_mutex_unlock(&serve->lock);
	sl_reach_unlisten(serve->reach);
}

/* --- in the loop --- */

void sl_serve_view(struct sl_serve *serve, struct sl_serve_view *out)
{
	*out = (struct sl_serve_view){
		.net = sl_reach_net_names[serve->options.net],
		.dns = sl_reach_dns_names[serve->options.dns],
	};
	pthread_mutex_lock(&serve->lock);
	out->serving = serve->serving;
	if (serve->serving)
		sl_reach_stats(serve->reach, &out->stats);
	pthread_mutex_unlock(&serve->lock);
}
