/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion asks the program itself, so that it can't lag behind the tables: the script
 * calls the hidden command complete-words with the words typed so far.
 */
#include <stdio.h>

#include "cli/commands.h"

static int complete_words_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)options;
	sl_complete(cli->output.file, cli->root, argc, argv);
	return 0;
}

const struct sl_command sl_cmd_complete_words = {
	.name = "complete-words",
	.summary = "print what may stand for the last of WORDS",
	.synopsis = "-- WORDS...",
	.run = complete_words_run,
	.max_args = SL_ARGS_ANY,
	.flags = SL_COMMAND_HIDDEN | SL_COMMAND_EXEC,
};

static int bash_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	const char *name = cli->root->name;

	(void)options;
	(void)argc;
	(void)argv;
	/* Where sluice knows no words, bash completes file names. */
	fprintf(cli->output.file,
		"# bash completion for %s\n"
		"_%s()\n"
		"{\n"
		"\tmapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" complete-words -- \\\n"
		"\t\t\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
		"}\n"
		"complete -o default -F _%s %s\n",
		name, name, name, name);
	return 0;
}

static const struct sl_command bash = {
	.name = "bash",
	.summary = "print a script for bash",
	.details = "For this shell:  source <(sluice completion bash)",
	.run = bash_run,
};

const struct sl_command sl_cmd_completion = {
	.name = "completion",
	.summary = "print a script that completes command lines",
	.subcommands = (const struct sl_command *const[]){ &bash, NULL },
};
