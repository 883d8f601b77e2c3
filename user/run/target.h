/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where something was meant to go, in one column of the tables of `sluice run`. */
#ifndef SLUICE_USER_RUN_TARGET_H
#define SLUICE_USER_RUN_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/name.h>
#include <sluice/sock.h>

#include "base/format.h"

#define SL_TARGET_MAX (SL_NAME_MAX + SL_FORMAT_MAX + 4)

/* A relay was asked for a name by its text, and nobody has looked it up: there is no address. */
bool sl_target_unresolved(const struct sl_endpoint *end);

/*
 * "example.org (192.0.2.1:443)"; "example.org:443" where nobody has looked the name up; either
 * of both where the other is not known (`name` NULL), or "". Not escaped. Returns dst.
 */
const char *sl_target_text(char *dst, size_t size, const char *name, const struct sl_endpoint *end);

#endif
