/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "run/enforce.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/filter.h"
#include "policy/bits.h"
#include "policy/decide.h"
#include "policy/tell.h"
#include "run/hints.h"

struct sl_enforce {
	struct sl_policy *policy;
	struct sl_compiled *compiled;
	struct sl_names *names;
	struct sl_files *files;
	enum sl_run_hold hold;
	bool needs_files; /* what only user space can match is in the policy */
	enum sl_guard_mode mode;
	struct sl_set *set;
	__u32 policy_id;
	/* Over `compiled`, which leases change, and `stop`. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t refresher;
	bool refreshing;
	bool stop;
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
	sl_names_free(&e->names);
	sl_files_free(&e->files);
	sl_compiled_free(&e->compiled);
	sl_policy_free(&e->policy);
	free(e);
	*enforce = NULL;
}

unsigned int sl_enforce_holds(const struct sl_enforce *e)
{
	switch (e->hold) {
	case SL_RUN_HOLD_EXEC:
		return SL_HOLD_EXEC;
	case SL_RUN_HOLD_CONNECT:
		return SL_HOLD_CONNECT | (e->needs_files ? SL_HOLD_SEND : 0);
	case SL_RUN_HOLD_AUTO:
		break;
	}
	return e->needs_files ? SL_HOLD_EXEC : 0;
}

static enum sl_guard_holder holder_of(enum sl_run_hold hold)
{
	return hold == SL_RUN_HOLD_CONNECT ? SL_GUARD_HOLDS_CALLS : SL_GUARD_HOLDS_EXEC;
}

int sl_enforce_open(struct sl_enforce **out, const struct sl_enforce_options *options,
		    struct sl_err *err)
{
	_cleanup_(sl_enforce_free) struct sl_enforce *e = calloc(1, sizeof(*e));
	struct sl_compiled_needs needs;
	int rc;

	if (!e)
		return sl_err_sys(err, ENOMEM, "policy");
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->wake, NULL);
	e->hold = options->hold;
	rc = sl_policy_load_file(&e->policy, options->file, err);
	rc = rc ?: sl_compiled_new(&e->compiled, e->policy, err);
	rc = rc ?: sl_guard_supports(e->compiled, holder_of(e->hold), err);
	if (rc)
		return rc;
	sl_compiled_needs(e->compiled, &needs);
	e->needs_files = needs.globs || needs.digests || needs.scripts;
	rc = sl_names_new(&e->names, e->compiled);
	if (rc)
		return sl_err_sys(err, -rc, "policy");
	e->mode = options->mode;
	if (e->mode == SL_GUARD_MODE_MAX)
		e->mode = e->policy->mode == SL_POLICY_AUDIT ? SL_GUARD_AUDIT : SL_GUARD_ENFORCE;
	sl_policy_tell(e->policy);
	sl_hints_tell(e->compiled);
	*out = TAKE_PTR(e);
	return 0;
}

static int refresh(struct sl_enforce *e, bool first, struct sl_err *err)
{
	struct sl_names_report report;
	int rc = sl_names_resolve(e->names, &report);

	if (rc)
		return sl_err_sys(err, -rc, "names");
	if (first)
		sl_names_tell(&report);
	pthread_mutex_lock(&e->lock);
	rc = sl_names_apply(e->names, e->set, e->policy_id, err);
	pthread_mutex_unlock(&e->lock);
	return rc;
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
		if (refresh(e, false, &err))
			sl_log_error("refreshing the policy's names: %s", err.text);
	}
}

int sl_enforce_start(struct sl_enforce *e, struct sl_set *set, unsigned int sandbox,
		     struct sl_err *err)
{
	struct sl_guard_options options = { .mode = e->mode };
	int rc;

	if (e->policy->keep_established)
		options.flags |= SL_GUARD_KEEP;
	e->set = set;
	rc = sl_guard_load(set, sandbox, e->compiled, &options, &e->policy_id, err);
	rc = rc ?: refresh(e, true, err);
	if (rc)
		return rc;
	if (e->needs_files) {
		rc = sl_files_new(&e->files, set, e->compiled, sandbox, e->policy_id);
		if (rc)
			return sl_err_sys(err, -rc, "policy");
	}
	rc = pthread_create(&e->refresher, NULL, refresh_main, e);
	if (rc)
		return sl_err_sys(err, rc, "can't start a thread");
	e->refreshing = true;
	return 0;
}

struct sl_files *sl_enforce_files(const struct sl_enforce *enforce)
{
	return enforce->files;
}

bool sl_enforce_strict(const struct sl_enforce *enforce)
{
	return sl_bits_any(sl_compiled_strict_bits(enforce->compiled));
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

	query.image_count = images_of(event->process, images, ADVICE_IMAGES);
	query.transport = strcmp(event->decision->proto, "udp") ? SL_TRANSPORT_TCP
								: SL_TRANSPORT_UDP;
	query.port = __builtin_bswap16(event->decision->remote.port_be);
	memcpy(query.addr.be, event->decision->remote.addr_be, sizeof(query.addr.be));
	return sl_near_miss(e->compiled, &query, &denied, &near, 1)
		       ? e->policy->entries[near.rule].key
		       : NULL;
}

void sl_enforce_advise(struct sl_advice *advice, const struct sl_view_event *event, void *enforce)
{
	struct sl_enforce *e = enforce;

	pthread_mutex_lock(&e->lock);
	if (event->process &&
	    (advice->reason == SL_REASON_ENDPOINT || advice->reason == SL_REASON_LISTEN ||
	     advice->reason == SL_REASON_RESERVED_ADDRESS))
		advice->rule = entry_of_binary(e, event);
	pthread_mutex_unlock(&e->lock);
	if (e->policy->first_use)
		advice->set_dir = sl_set_dir(e->set);
}
