/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the hooks of a sandbox with policy DNS do beyond deciding. Off for a sandbox without,
 * which then pays nothing for it. A policy that is loaded leaves all of it as it is; the end
 * of the sandbox is the end of it. Callers serialise what they do to one sandbox, as for
 * guard/guard.h.
 */
#ifndef SLUICE_USER_GUARD_DNS_H
#define SLUICE_USER_GUARD_DNS_H

#include "guard/guard.h"

/*
 * Whether hooks look up by which name a destination is known (kernel/name.h). Not in mode
 * observe. 0 or -errno with err.
 */
int sl_guard_names(struct sl_set *set, unsigned int sandbox, bool on, struct sl_err *err);

#endif
