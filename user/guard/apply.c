/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guard/apply.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "guard/names.h"
#include "policy/tell.h"

struct sl_apply {
	struct sl_policy *policy;
	struct sl_compiled *compiled;
	struct sl_names *names;
};

void sl_apply_free(struct sl_apply **apply)
{
	struct sl_apply *a = *apply;

	if (!a)
		return;
	sl_names_free(&a->names);
	sl_compiled_free(&a->compiled);
	sl_policy_free(&a->policy);
	free(a);
	*apply = NULL;
}

static int resolve(struct sl_apply *apply, struct sl_err *err)
{
	struct sl_names_report report;
	int rc = sl_names_new(&apply->names, apply->compiled);

	rc = rc ?: sl_names_resolve(apply->names, &report);
	if (rc)
		return sl_err_sys(err, -rc, "names");
	sl_names_tell(&report);
	if (report.names)
		sl_log_notice("names were looked up now, and are not again: load the policy anew "
			      "when addresses have changed");
	return 0;
}

int sl_apply_open(struct sl_apply **out, const char *file, struct sl_err *err)
{
	_cleanup_(sl_apply_free) struct sl_apply *apply = calloc(1, sizeof(*apply));
	int rc;

	if (!apply)
		return sl_err_sys(err, ENOMEM, "policy");
	rc = sl_policy_load_file(&apply->policy, file, err);
	rc = rc ?: sl_compiled_new(&apply->compiled, apply->policy, err);
	rc = rc ?: sl_guard_supports(apply->compiled, SL_GUARD_HOLDS_NOTHING, err);
	rc = rc ?: resolve(apply, err);
	if (rc)
		return rc;
	sl_policy_tell(apply->policy);
	*out = TAKE_PTR(apply);
	return 0;
}

/* Leases are there before the policy is in force: nothing is denied for want of them. */
static int put_names(struct sl_set *set, __u32 policy_id, void *arg, struct sl_err *err)
{
	struct sl_apply *apply = arg;

	return sl_names_apply(apply->names, set, policy_id, err);
}

static enum sl_guard_mode choose_mode(const struct sl_apply *apply, const struct sl_guard *guard,
				      enum sl_guard_mode mode)
{
	if (mode != SL_GUARD_MODE_MAX)
		return mode;
	if (guard->policy)
		return guard->mode == SL_GUARD_FROZEN ? guard->thawed : guard->mode;
	return apply->policy->mode == SL_POLICY_AUDIT ? SL_GUARD_AUDIT : SL_GUARD_ENFORCE;
}

int sl_apply_load(struct sl_apply *apply, struct sl_set *set, unsigned int sandbox,
		  enum sl_guard_mode mode, __u32 *policy_id, struct sl_err *err)
{
	struct sl_guard_options options = { .prepare = put_names, .arg = apply };
	struct sl_guard guard;
	int rc = sl_guard_read(set, sandbox, &guard);

	if (rc)
		return sl_err_sys(err, -rc, "can't read the guard of sandbox %u", sandbox);
	options.mode = choose_mode(apply, &guard, mode);
	if (apply->policy->keep_established)
		options.flags |= SL_GUARD_KEEP;
	return sl_guard_load(set, sandbox, apply->compiled, &options, policy_id, err);
}
