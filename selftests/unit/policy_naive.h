/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A second, slow and plain reading of a policy, sharing nothing with the compiled form but the
 * parsed policy: the reference of the random tests.
 */
#ifndef SLUICE_TEST_POLICY_NAIVE_H
#define SLUICE_TEST_POLICY_NAIVE_H

#include "policy/decide.h"

void policy_naive_decide(const struct sl_policy *policy, const struct sl_query *query,
			 struct sl_decision *out);

#endif
