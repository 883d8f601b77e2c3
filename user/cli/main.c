/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/start.h"
#include "cli/commands.h"

static const struct sl_command *const objects[] = {
	&sl_cmd_run,
	&sl_cmd_status,
	&sl_cmd_sandbox,
	&sl_cmd_sock,
	&sl_cmd_proc,
	&sl_cmd_exe,
	&sl_cmd_policy,
	&sl_cmd_counter,
	&sl_cmd_decision,
	&sl_cmd_name,
	&sl_cmd_event,
	&sl_cmd_oci,
	&sl_cmd_proxy,
	&sl_cmd_feature,
	&sl_cmd_version,
	&sl_cmd_completion,
	&sl_cmd_complete_words,
	&sl_cmd_manual,
	NULL,
};

static const struct sl_command root = {
	.name = "sluice",
	.summary = "which program owns a socket, where it goes, and what it carried",
	.details = "Objects and commands may be cut to a prefix that is unique.",
	.subcommands = objects,
};

int main(int argc, char **argv)
{
	sl_start_descriptors();
	sl_start_raise_files();
	return sl_cli_main(&root, argc, argv);
}
