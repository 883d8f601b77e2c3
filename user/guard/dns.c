/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guard/dns.h"

#include "guard/guard_private.h"

static int set_flag(struct sl_set *set, unsigned int sandbox, __u32 flag, bool on)
{
	struct sl_guard guard;
	int rc = sl_guard_read(set, sandbox, &guard);

	if (rc)
		return rc;
	guard.flags = on ? guard.flags | flag : guard.flags & ~flag;
	return sl_guard_write(set, sandbox, &guard);
}

int sl_guard_names(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err)
{
	int rc = set_flag(set, sandbox, SL_GUARD_NAMES, on);

	return rc ? sl_err_sys(err, -rc, "can't tell the guard of sandbox %u of names", sandbox)
		  : 0;
}
