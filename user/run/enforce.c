/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "run/enforce.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/filter.h"
#include "guard/apply.h"
#include "guard/names.h"
#include "policy/decide.h"
#include "policy/withheld.h"
#include "run/hints.h"

struct sl_enforce {
	struct sl_apply *apply;
	struct sl_reach *reach;
	enum sl_run_hold hold;
	enum sl_guard_mode mode;
	struct sl_set *set;
	pthread_mutex_t lock; /* over `stop` */
	pthread_cond_t wake;
	pthread_t refresher;
	bool refreshing;
	bool stop;
	char withheld[SL_WITHHELD_TEXT]; /* of the latest advice */
};

void sl_enforce_free(struct sl_enforce **enforce)
{
	struct sl_enforce *e = *enforce;

	if (!e)
		return;
	if (e->refreshing) {
		pthread_mutex_lock(&e->lock);
		e->stop = true;
		pthread_cond_signal(&e->wake);
		pthread_mutex_unlock(&e->lock);
		pthread_join(e->refresher, NULL);
	}
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
	sl_apply_free(&e->apply);
	free(e);
	*enforce = NULL;
}

unsigned int sl_enforce_holds(const struct sl_enforce *e)
{
	return sl_run_holds(e->hold, sl_apply_needs_files(e->apply));
}

unsigned int sl_run_holds(enum sl_run_hold hold, bool needs_files)
{
	switch (hold) {
	case SL_RUN_HOLD_EXEC:
		return SL_HOLD_EXEC;
	case SL_RUN_HOLD_CONNECT:
		return SL_HOLD_CONNECT | (needs_files ? SL_HOLD_SEND : 0);
	case SL_RUN_HOLD_AUTO:
		break;
	}
	return needs_files ? SL_HOLD_EXEC : 0;
}

enum sl_guard_holder sl_run_holder(enum sl_run_hold hold)
{
	return hold == SL_RUN_HOLD_CONNECT ? SL_GUARD_HOLDS_CALLS : SL_GUARD_HOLDS_EXEC;
}

/* Names that are known already go with the policy. */
static int ready(void *arg, __u32 policy_id, struct sl_err *err)
{
	struct sl_enforce *e = arg;

	return sl_reach_ready(e->reach, e->apply, policy_id, err);
}

int sl_enforce_open(struct sl_enforce **out, const struct sl_enforce_options *options,
		    struct sl_err *err)
{
	_cleanup_(sl_enforce_free) struct sl_enforce *e = calloc(1, sizeof(*e));
	struct sl_apply_options wanted = { .file = options->file,
					   .text = options->text,
					   .len = options->len,
					   .holder = sl_run_holder(options->hold),
					   .ready = ready,
					   .arg = e };
	int rc;

	if (!e)
		return sl_err_sys(err, ENOMEM, "policy");
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->wake, NULL);
	e->hold = options->hold;
	e->reach = options->reach;
	sl_reach_apply_options(e->reach, &wanted);
	rc = sl_apply_open(&e->apply, &wanted, err);
	if (rc)
		return rc;
	e->mode = options->mode;
	if (e->mode == SL_GUARD_MODE_MAX)
		e->mode = sl_apply_policy(e->apply)->mode == SL_POLICY_AUDIT ? SL_GUARD_AUDIT
									     : SL_GUARD_ENFORCE;
	sl_hints_tell(sl_apply_lock(e->apply), !sl_reach_serves(e->reach, e->apply));
	sl_apply_unlock(e->apply);
	*out = TAKE_PTR(e);
	return 0;
}

static void *refresh_main(void *arg)
{
	struct sl_enforce *e = arg;
	struct sl_err err = { 0 };
	struct timespec until;
	bool stop;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += SL_NAMES_REFRESH_MS / 1000;
		pthread_mutex_lock(&e->lock);
		while (!e->stop && pthread_cond_timedwait(&e->wake, &e->lock, &until) != ETIMEDOUT)
			;
		stop = e->stop;
		pthread_mutex_unlock(&e->lock);
		if (stop)
			return NULL;
		if (sl_apply_refresh(e->apply, &err))
			sl_log_error("refreshing the policy's names: %s", err.text);
	}
}

int sl_enforce_start(struct sl_enforce *e, struct sl_set *set, unsigned int sandbox,
		     struct sl_err *err)
{
	__u32 policy_id;
	int rc;

	e->set = set;
	rc = sl_apply_resolve(e->apply, err);
	rc = rc ?: sl_reach_listen(e->reach, set, sandbox, e->apply, err);
	rc = rc ?: sl_apply_load(e->apply, set, sandbox, e->mode, &policy_id, err);
	sl_reach_switch(e->reach, !rc);
	if (rc || !sl_apply_has_names(e->apply))
		return rc;
	rc = pthread_create(&e->refresher, NULL, refresh_main, e);
	if (rc)
		return sl_err_sys(err, rc, "can't start a thread");
	e->refreshing = true;
	return 0;
}

void sl_enforce_borrow(struct sl_enforce *e, struct sl_set *set)
{
	e->set = set;
}

bool sl_enforce_needs_files(const struct sl_enforce *enforce)
{
	return sl_apply_needs_files(enforce->apply);
}

struct sl_files *sl_enforce_files(const struct sl_enforce *enforce)
{
	return sl_apply_files(enforce->apply);
}

bool sl_enforce_strict(const struct sl_enforce *enforce)
{
	return sl_apply_strict(enforce->apply);
}

enum sl_guard_mode sl_enforce_mode(const struct sl_enforce *enforce)
{
	return enforce->mode;
}

/* The images of a member, nearest first, as far as they are members' own. */
static size_t images_of(const struct sl_view_process *process, struct sl_image *images, size_t max)
{
	size_t own = process->lineage.count - process->lineage_outside, n = 0;

	images[n++] = (struct sl_image){
		.path = process->exe ? process->exe->path : NULL,
		.script = process->script,
	};
	for (size_t i = 0; i < own && n < max; i++)
		images[n++] = (struct sl_image){ .path = process->lineage.items[i] };
	return n;
}

#define ADVICE_IMAGES 64

/* An entry that has the binary, to which the destination or port might be added. */
static const char *entry_of_binary(struct sl_enforce *e, const struct sl_view_event *event)
{
	const struct sl_decision denied = { SL_VERDICT_DENY, event->decision->reason_id,
					    SL_RULE_NONE };
	struct sl_image images[ADVICE_IMAGES];
	struct sl_query query = { .images = images };
	struct sl_near near;
	size_t found;

	query.image_count = images_of(event->process, images, ADVICE_IMAGES);
	query.transport = strcmp(event->decision->proto, "udp") ? SL_TRANSPORT_TCP
								: SL_TRANSPORT_UDP;
	query.port = __builtin_bswap16(event->decision->remote.port_be);
	memcpy(query.addr.be, event->decision->remote.addr_be, sizeof(query.addr.be));
	found = sl_near_miss(sl_apply_lock(e->apply), &query, &denied, &near, 1);
	sl_apply_unlock(e->apply);
	return found ? sl_apply_policy(e->apply)->entries[near.rule].key : NULL;
}

/* The script for which alone the rule has the image; NULL: it does not have it. */
static const char *script_of(const struct sl_policy *policy, const struct sl_advice *advice)
{
	for (size_t i = 0; i < policy->entry_count; i++) {
		const struct sl_policy_entry *entry = &policy->entries[i];

		if (strcmp(entry->key, advice->rule) != 0)
			continue;
		for (size_t j = 0; j < entry->binary_count; j++)
			if (!strcmp(entry->binaries[j].path, advice->exe))
				return entry->binaries[j].script;
	}
	return NULL;
}

void sl_enforce_advise(struct sl_advice *advice, const struct sl_view_event *event, void *enforce)
{
	const struct sl_endpoint *remote = &event->decision->remote;
	struct sl_enforce *e = enforce;
	struct sl_addr addr;

	memcpy(addr.be, remote->addr_be, sizeof(addr.be));
	if (advice->reason == SL_REASON_RESERVED_ADDRESS && advice->name)
		advice->withheld = sl_withheld_text(e->withheld, sizeof(e->withheld),
						    sl_apply_policy(e->apply), advice->name,
						    ntohs(remote->port_be), &addr);
	if (event->process &&
	    (advice->reason == SL_REASON_ENDPOINT || advice->reason == SL_REASON_LISTEN ||
	     advice->reason == SL_REASON_RESERVED_ADDRESS))
		advice->rule = entry_of_binary(e, event);
	if (advice->reason == SL_REASON_BINARY && advice->rule && advice->exe)
		advice->script = script_of(sl_apply_policy(e->apply), advice);
	if (sl_apply_policy(e->apply)->first_use)
		advice->set_dir = sl_set_dir(e->set);
}
