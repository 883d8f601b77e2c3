/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "guard/guard.h"
#include "policy/bits.h"

static const char *why_held(const struct sl_policy *policy, const struct sl_compiled_needs *needs)
{
	if (policy->first_use)
		return "has `integrity: first-use`";
	return needs->digests ? "pins digests (sha256)"
			      : "has wildcards within a path, or a path of more than 250 bytes";
}

int sl_guard_supports(const struct sl_compiled *compiled, enum sl_guard_holder holder,
		      struct sl_err *err)
{
	const struct sl_policy *policy = sl_compiled_policy(compiled);
	struct sl_compiled_needs needs;

	sl_compiled_needs(compiled, &needs);
	if (holder == SL_GUARD_HOLDS_EXEC)
		return 0;
	if (holder == SL_GUARD_HOLDS_CALLS) {
		if (!policy->first_use)
			return 0;
		/* Between two runs of an image anybody may have changed it. */
		sl_err_set(err, ENOTSUP,
			   "'%s' has `integrity: first-use`: each file has to be looked at before "
			   "it runs, not when it connects",
			   policy->file);
		return sl_err_hint(err, "leave `--hold connect` out, or pin digests (sha256)");
	}
	if (sl_bits_any(sl_compiled_strict_bits(compiled))) {
		sl_err_set(
			err, ENOTSUP,
			"'%s' has `strict` binaries: only a filter keeps others from tracing them",
			policy->file);
		return sl_err_hint(err, "an attached sandbox has none: leave `strict` out, or use "
					"'sluice run --policy'");
	}
	if (!needs.globs && !needs.digests && !needs.scripts)
		return 0;
	sl_err_set(err, ENOTSUP, "'%s' %s: somebody has to look at each file before it runs",
		   policy->file, why_held(policy, &needs));
	return sl_err_hint(err, "an attached sandbox has nobody for that: use exact paths or "
				"prefixes that end in /**, or 'sluice run --policy'");
}
