/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why a relay could not make a connection, in words: for clients of its proxy, and reports. */
#ifndef SLUICE_USER_EGRESS_UNREACHABLE_H
#define SLUICE_USER_EGRESS_UNREACHABLE_H

#include <stdbool.h>

/*
 * `code` is a positive errno: of a dial or, `lookup`, of the look-up of its name, as
 * sl_resolver_addresses() has them.
 */
const char *sl_unreachable_text(int code, bool lookup);

#endif
