/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guard/apply.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "guard/names.h"
#include "policy/bits.h"
#include "policy/tell.h"

struct sl_apply {
	struct sl_apply_options options;
	struct sl_policy *policy;
	struct sl_compiled *compiled;
	struct sl_names *names;
	struct sl_files *files;
	bool needs_files;
	struct sl_set *set;
	unsigned int sandbox;
	__u32 policy_id;
	pthread_mutex_t lock; /* over `compiled` */
};

void sl_apply_free(struct sl_apply **apply)
{
	struct sl_apply *a = *apply;

	if (!a)
		return;
	sl_files_free(&a->files);
	sl_names_free(&a->names);
	sl_compiled_free(&a->compiled);
	sl_policy_free(&a->policy);
	pthread_mutex_destroy(&a->lock);
	free(a);
	*apply = NULL;
}

int sl_apply_open(struct sl_apply **out, const struct sl_apply_options *options, struct sl_err *err)
{
	_cleanup_(sl_apply_free) struct sl_apply *a = calloc(1, sizeof(*a));
	const struct sl_policy_options wanted = { .inspects = options->inspects,
						  .relayed = options->relayed };
	struct sl_compiled_needs needs;
	int rc;

	if (!a)
		return sl_err_sys(err, ENOMEM, "policy");
	pthread_mutex_init(&a->lock, NULL);
	a->options = *options;
	rc = options->text ? sl_policy_load_for(&a->policy, options->text, options->len,
						options->file, &wanted, err)
			   : sl_policy_load_file_for(&a->policy, options->file, &wanted, err);
	rc = rc ?: sl_compiled_new(&a->compiled, a->policy, err);
	rc = rc ?: sl_guard_supports(a->compiled, options->holder, err);
	if (rc)
		return rc;
	sl_compiled_needs(a->compiled, &needs);
	a->needs_files = needs.globs || needs.digests || needs.scripts;
	rc = sl_names_new(&a->names, a->compiled);
	if (rc)
		return sl_err_sys(err, -rc, "policy");
	if (!options->quiet)
		sl_policy_tell(a->policy);
	*out = TAKE_PTR(a);
	return 0;
}

int sl_apply_resolve(struct sl_apply *a, struct sl_err *err)
{
	struct sl_names_report report;
	int rc;

	if (a->options.names_by_dns)
		return 0;
	rc = sl_names_resolve(a->names, &report, err);
	if (rc)
		return rc;
	if (!a->options.quiet)
		sl_names_tell(&report);
	return 0;
}

static int set_target(struct sl_apply *a, struct sl_set *set, __u32 policy_id, struct sl_err *err)
{
	int rc = a->needs_files ? sl_files_new(&a->files, set, a->compiled, a->sandbox, policy_id)
				: 0;

	if (rc)
		return sl_err_sys(err, -rc, "policy");
	a->set = set;
	a->policy_id = policy_id;
	return 0;
}

/* Leases are there before the policy is in force: nothing is denied for want of them. */
static int prepare(struct sl_set *set, __u32 policy_id, void *arg, struct sl_err *err)
{
	struct sl_apply *a = arg;
	int rc = a->options.names_by_dns ? 0 : sl_names_apply(a->names, set, policy_id, err);

	rc = rc ?: set_target(a, set, policy_id, err);
	return !rc && a->options.ready ? a->options.ready(a->options.arg, policy_id, err) : rc;
}

static enum sl_guard_mode choose_mode(const struct sl_apply *a, const struct sl_guard *guard,
				      enum sl_guard_mode mode)
{
	if (mode != SL_GUARD_MODE_MAX)
		return mode;
	if (guard->policy)
		return guard->mode == SL_GUARD_FROZEN ? guard->thawed : guard->mode;
	return a->policy->mode == SL_POLICY_AUDIT ? SL_GUARD_AUDIT : SL_GUARD_ENFORCE;
}

int sl_apply_load(struct sl_apply *a, struct sl_set *set, unsigned int sandbox,
		  enum sl_guard_mode mode, __u32 *policy_id, struct sl_err *err)
{
	struct sl_guard_options options = { .prepare = prepare, .arg = a };
	struct sl_guard guard;
	int rc = sl_guard_read(set, sandbox, &guard);

	if (rc)
		return sl_err_sys(err, -rc, "can't read the guard of sandbox %u", sandbox);
	a->sandbox = sandbox;
	options.mode = choose_mode(a, &guard, mode);
	if (a->policy->keep_established)
		options.flags |= SL_GUARD_KEEP;
	if (a->options.own_netns)
		options.flags |= SL_GUARD_OWN_NETNS;
	return sl_guard_load(set, sandbox, a->compiled, &options, policy_id, err);
}

int sl_apply_adopt(struct sl_apply *a, struct sl_set *set, unsigned int sandbox, __u32 policy_id,
		   struct sl_err *err)
{
	a->sandbox = sandbox;
	return set_target(a, set, policy_id, err);
}

int sl_apply_refresh(struct sl_apply *a, struct sl_err *err)
{
	struct sl_names_report report;
	int rc;

	if (a->options.names_by_dns)
		return 0;
	rc = sl_names_resolve(a->names, &report, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&a->lock);
	rc = sl_names_apply(a->names, a->set, a->policy_id, err);
	pthread_mutex_unlock(&a->lock);
	return rc;
}

bool sl_apply_has_names(const struct sl_apply *a)
{
	return !a->options.names_by_dns && sl_names_count(a->names);
}

bool sl_apply_wants_dns(const struct sl_apply *a)
{
	return sl_names_count(a->names) || sl_names_wildcards(a->names);
}

bool sl_apply_needs_files(const struct sl_apply *a)
{
	return a->needs_files;
}

bool sl_apply_strict(const struct sl_apply *a)
{
	return sl_bits_any(sl_compiled_strict_bits(a->compiled));
}

struct sl_files *sl_apply_files(const struct sl_apply *a)
{
	return a->files;
}

const struct sl_policy *sl_apply_policy(const struct sl_apply *a)
{
	return a->policy;
}

struct sl_compiled *sl_apply_lock(struct sl_apply *a)
{
	pthread_mutex_lock(&a->lock);
	return a->compiled;
}

void sl_apply_unlock(struct sl_apply *a)
{
	pthread_mutex_unlock(&a->lock);
}
