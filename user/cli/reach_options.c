/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/reach_options.h"

#include <stddef.h>

const char *const sl_reach_net_names[] = { "host", "relay", NULL };
const char *const sl_reach_dns_names[] = { "auto", "policy", "host", NULL };
