/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why a name may not have an address that its DNS has for it, and what would let it. */
#ifndef SLUICE_USER_WITHHELD_H
#define SLUICE_USER_WITHHELD_H

#include "policy/compile.h"

#define SL_WITHHELD_TEXT 1024

/*
 * One line, safe to print, of a name in normal form that a rule has; `port` 0: any. The rule is
 * the first one that has the name, one with the port if there is such a rule. "" when none has
 * the name, or the line does not fit: a part of a rule is another rule. Returns dst.
 */
const char *sl_withheld_text(char *dst, size_t size, const struct sl_policy *policy,
			     const char *name, uint16_t port, const struct sl_addr *addr);

#endif
