/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sandbox policy`, `mode`, `freeze` and `thaw`, and what `attach --policy` shares with them. */
#ifndef SLUICE_USER_CLI_SANDBOX_POLICY_H
#define SLUICE_USER_CLI_SANDBOX_POLICY_H

#include "cli/command.h"
#include "guard/apply.h"

extern const struct sl_command sl_cmd_sandbox_policy;
extern const struct sl_command sl_cmd_sandbox_mode;
extern const struct sl_command sl_cmd_sandbox_freeze;
extern const struct sl_command sl_cmd_sandbox_thaw;

/* Choices of --mode, ends with NULL; the first is "policy": not given. */
extern const char *const sl_sandbox_modes[];

#define SL_SANDBOX_POLICY_HELP                                                                    \
	"With a policy, the kernel decides, and goes on to when no sluice runs. An attached\n"    \
	"sandbox has no seccomp filter: socket families without hooks (packet, vsock, ...) are\n" \
	"not mediated, nor are io_uring's sockets of those; names are looked up once, when the\n" \
	"policy is loaded; policies that pin digests or have wildcards within a path are\n"       \
	"refused. `sluice run --policy` has all of these."

/* *out stays NULL without a file. -errno with cli->err filled. */
int sl_sandbox_policy_open(struct sl_apply **out, struct sl_cli *cli, const char *file,
			   unsigned int mode);
int sl_sandbox_policy_load(struct sl_apply *apply, struct sl_cli *cli, unsigned int sandbox,
			   unsigned int mode);

#endif
