/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of this build, which are run as they are. */
#ifndef SLUICE_BENCH_PROGRAM_H
#define SLUICE_BENCH_PROGRAM_H

#include <limits.h>

#include "base/err.h"

/* The path of this program. */
int sl_program_self(char out[PATH_MAX], struct sl_err *err);

/*
 * The path of `name`: what the variable `named_by` of the environment says, else beside this
 * program. It can be executed.
 */
int sl_program_find(char out[PATH_MAX], const char *name, const char *named_by, struct sl_err *err);

#endif
