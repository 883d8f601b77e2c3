/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words of verdicts and reasons, and what a reason means; NULL for no value. */
#ifndef SLUICE_USER_POLICY_WORDS_H
#define SLUICE_USER_POLICY_WORDS_H

#include <sluice/reason.h>

const char *sl_reason_name(enum sl_reason reason);
const char *sl_reason_help(enum sl_reason reason);
const char *sl_verdict_name(enum sl_verdict verdict);

#endif
