// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Definitions of all maps; see maps.h. */
#include "kernel.h"
#define SL_DEFINE_MAPS
#include "maps.h"
#include "scratch.h"

/* See task.h; set by the loader. */
const volatile bool owners_by_key = false;

/* GPL-compatible half of the dual licence: the helpers used require it. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
