/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SLUICE_USER_POLICY_TELL_H
#define SLUICE_USER_POLICY_TELL_H

#include "policy/policy.h"

/* Logs a policy's notes, each with its place in the file. */
void sl_policy_tell(const struct sl_policy *policy);

#endif
