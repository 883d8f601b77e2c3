/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guard/dns.h"

#include <bpf/bpf.h>
#include <errno.h>

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

int sl_guard_synthetic(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err)
{
	return set_flag(set, sandbox, SL_GUARD_SYNTHETIC, on, err);
}

/* What tells the addresses comes before what changes them, and goes after the last that does. */
static int lead(struct sl_set *set, unsigned int sandbox, __u32 flag, struct sl_err *err)
{
	return sl_sandbox_redirect(set, sandbox, true, err)
		       ?: set_flag(set, sandbox, flag, true, err);
}

static int lead_no_more(struct sl_set *set, unsigned int sandbox, __u32 flag, struct sl_err *err)
{
	struct sl_guard guard = { 0 };
	int rc = set_flag(set, sandbox, flag, false, err);

	if (rc || sl_guard_read(set, sandbox, &guard) ||
	    (guard.flags & (SL_GUARD_DNS | SL_GUARD_PROXY)))
		return rc;
	return sl_sandbox_redirect(set, sandbox, false, err);
}

int sl_guard_dns(struct sl_set *set, unsigned int sandbox, const struct sl_dns_listeners *listeners,
		 struct sl_err *err)
{
	__u32 key = sandbox;
	int rc;

	if (!listeners)
		return lead_no_more(set, sandbox, SL_GUARD_DNS, err);
	rc = sl_guard_put(set, SL_MAP_DNS_LISTENERS, &key, listeners, BPF_ANY);
	if (rc)
		return sl_err_sys(err, -rc, "can't name the policy DNS of sandbox %u", sandbox);
	return lead(set, sandbox, SL_GUARD_DNS, err);
}

int sl_guard_proxy(struct sl_set *set, unsigned int sandbox, const struct sl_proxy *proxy,
		   struct sl_err *err)
{
	__u32 key = sandbox;
	int rc;

	if (!proxy)
		return lead_no_more(set, sandbox, SL_GUARD_PROXY, err);
	if (!proxy->v4.port_be && !proxy->v6.port_be)
		return sl_err_set(err, EINVAL, "a proxy of no address takes nothing");
	rc = sl_guard_put(set, SL_MAP_PROXIES, &key, proxy, BPF_ANY);
	if (rc)
		return sl_err_sys(err, -rc, "can't name the proxy of sandbox %u", sandbox);
	return lead(set, sandbox, SL_GUARD_PROXY, err);
}
