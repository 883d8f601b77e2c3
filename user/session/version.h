/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which version of the session protocol two components speak: the greatest that is in both
 * ranges. Without one nothing is made: the refusal comes before the launch and names both.
 * See selftests/model/session.pml, property `version`.
 */
#ifndef SLUICE_USER_SESSION_VERSION_H
#define SLUICE_USER_SESSION_VERSION_H

#include <stdint.h>

#include "base/err.h"

/* What this code speaks. A change of the protocol that old clients notice raises MAX. */
#define SL_PROTOCOL_MIN 1
#define SL_PROTOCOL_MAX 1

/* As in Hello. The texts are the peer's own words and borrowed. */
struct sl_component {
	const char *name;    /* "libsluice", "sluiced", … */
	const char *version; /* of the program, for people only */
	uint32_t min, max;   /* of the protocol, both included */
};

/* -EINVAL: a range of the peer's that is none. -EPROTONOSUPPORT: no version in common. */
int sl_version_agree(uint32_t *out, const struct sl_component *self,
		     const struct sl_component *peer, struct sl_err *err);

#endif
