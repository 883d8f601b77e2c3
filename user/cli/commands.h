/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The objects of the command line, each in the file cmd_<object>.c. */
#ifndef SLUICE_USER_COMMANDS_H
#define SLUICE_USER_COMMANDS_H

#include "cli/command.h"

extern const struct sl_command sl_cmd_run;
extern const struct sl_command sl_cmd_status;
extern const struct sl_command sl_cmd_sandbox;
extern const struct sl_command sl_cmd_sock;
extern const struct sl_command sl_cmd_proc;
extern const struct sl_command sl_cmd_exe;
extern const struct sl_command sl_cmd_exe_accept; /* its subcommand */
extern const struct sl_command sl_cmd_policy;
extern const struct sl_command sl_cmd_counter;
extern const struct sl_command sl_cmd_decision;
extern const struct sl_command sl_cmd_name;
extern const struct sl_command sl_cmd_event;
extern const struct sl_command sl_cmd_oci;
extern const struct sl_command sl_cmd_proxy;
extern const struct sl_command sl_cmd_feature;
extern const struct sl_command sl_cmd_version;
extern const struct sl_command sl_cmd_completion;
extern const struct sl_command sl_cmd_complete_words;
extern const struct sl_command sl_cmd_manual;

#endif
