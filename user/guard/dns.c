/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guard/dns.h"

#include <bpf/bpf.h>

#include "guard/guard_private.h"

static int set_flag(struct sl_set *set, unsigned int sandbox, __u32 flag, bool on,
		    struct sl_err *err)
{
	struct sl_guard guard;
	int rc = sl_guard_read(set, sandbox, &guard);

	if (!rc) {
		guard.flags = on ? guard.flags | flag : guard.flags & ~flag;
		rc = sl_guard_write(set, sandbox, &guard);
	}
	return rc ? sl_err_sys(err, -rc, "can't change the guard of sandbox %u", sandbox) : 0;
}

int sl_guard_names(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err)
{
	return set_flag(set, sandbox, SL_GUARD_NAMES, on, err);
}

int sl_guard_datagrams(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err)
{
	return set_flag(set, sandbox, SL_GUARD_DATAGRAMS, on, err);
}

/* What tells the addresses comes before what changes them, and goes after it. */
int sl_guard_dns(struct sl_set *set, unsigned int sandbox, const struct sl_dns_listeners *listeners,
		 struct sl_err *err)
{
	__u32 key = sandbox;
	int rc;

	if (!listeners)
		return set_flag(set, sandbox, SL_GUARD_DNS, false, err)
			       ?: sl_sandbox_redirect(set, sandbox, false, err);
	rc = sl_guard_put(set, SL_MAP_DNS_LISTENERS, &key, listeners, BPF_ANY);
	if (rc)
		return sl_err_sys(err, -rc, "can't name the policy DNS of sandbox %u", sandbox);
	rc = sl_sandbox_redirect(set, sandbox, true, err);
	return rc ? rc : set_flag(set, sandbox, SL_GUARD_DNS, true, err);
}
