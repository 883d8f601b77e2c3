/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capabilities that undo mediation, and taking them from the calling thread. */
#ifndef SLUICE_USER_BROKER_CAPS_H
#define SLUICE_USER_BROKER_CAPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Bit per capability. */
uint64_t sl_caps_undoing(void);

/* Their names, blanks between, cut to size. */
void sl_caps_names(char *out, size_t size);

/* From the bounding set. No error without CAP_SETPCAP when they are not in it. */
int sl_caps_unbound(struct sl_err *err);

/* From the effective, permitted and inheritable sets; the ambient set becomes empty. */
int sl_caps_drop(struct sl_err *err);

/* Keeps these alone, as far as they are there, in all of those sets. */
int sl_caps_keep(uint64_t bits, struct sl_err *err);

/* What mediating needs: programs, maps and links; tasks of held calls, and their files. */
uint64_t sl_caps_mediating(void);

#endif
