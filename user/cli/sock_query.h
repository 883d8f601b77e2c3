/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The subcommands of `sock`. */
#ifndef SLUICE_USER_SOCK_QUERY_H
#define SLUICE_USER_SOCK_QUERY_H

#include "cli/query.h"
#include "socket/sock_find.h"

extern const struct sl_command sl_cmd_sock_resolve;

#endif
