/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manual page sluice(8) in man(7)'s macros, from the tables that parsing and help come
 * from, so that the three can't differ. Hidden: `make install` runs it.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

/* Text as roff takes it: no escapes, and no control character at a line's beginning. */
static void put(FILE *file, const char *text)
{
	bool begin = true;

	for (; *text; text++) {
		if (begin && (*text == '.' || *text == '\''))
			fputs("\\&", file);
		begin = *text == '\n';
		if (*text == '\\')
			fputs("\\e", file);
		else if (*text == '-')
			fputs("\\-", file);
		else
			fputc(*text, file);
	}
}

static void put_options(FILE *file, const struct sl_option *options)
{
	for (const struct sl_option *option = options; option && option->name; option++) {
		char value[128];

		fputs(".TP\n.B ", file);
		if (option->letter)
			fprintf(file, "\\-%c, ", option->letter);
		fputs("\\-\\-", file);
		put(file, option->name);
		put(file, sl_option_value_text(option, value, sizeof(value)));
		fputc('\n', file);
		put(file, option->help);
		if (option->fallback) {
			fputs(" (default: ", file);
			put(file, option->fallback);
			fputc(')', file);
		}
		fputc('\n', file);
	}
}

/* A command that runs, with all the words that lead to it; else those below it. */
static void put_command(FILE *file, const struct sl_command *command, const char *words)
{
	char path[256];

	if (command->flags & SL_COMMAND_HIDDEN)
		return;
	snprintf(path, sizeof(path), "%s %s", words, command->name);
	for (size_t i = 0; command->subcommands && command->subcommands[i]; i++)
		put_command(file, command->subcommands[i], path);
	if (command->subcommands)
		return;
	fputs(".SS ", file);
	put(file, path);
	if (command->synopsis) {
		fputc(' ', file);
		put(file, command->synopsis);
	}
	fputc('\n', file);
	put(file, command->summary);
	fputs(".\n", file);
	if (command->details) {
		fputs(".PP\n", file);
		put(file, command->details);
		fputc('\n', file);
	}
	put_options(file, command->options);
}

static int manual_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	const struct sl_command *root = cli->root;
	FILE *file = cli->output.file;

	(void)options;
	(void)argc;
	(void)argv;
	fprintf(file, ".TH %s 8 \"\" \"%s " SL_VERSION "\" \"System administration\"\n", root->name,
		root->name);
	fprintf(file, ".SH NAME\n%s \\- ", root->name);
	put(file, root->summary);
	fprintf(file, "\n.SH SYNOPSIS\n.B %s\n[OPTIONS] OBJECT { COMMAND | help }\n", root->name);
	fputs(".SH DESCRIPTION\n", file);
	put(file, root->details);
	fputs("\n.SH OPTIONS OF EVERY COMMAND\n", file);
	put_options(file, sl_global_options);
	fputs(".SH COMMANDS\n", file);
	for (size_t i = 0; root->subcommands[i]; i++)
		put_command(file, root->subcommands[i], root->name);
	fputs(".SH EXIT STATUS\n0 for success, 1 for a failure, 2 for wrong usage;\n"
	      "what differs is said of the command.\n",
	      file);
	return 0;
}

const struct sl_command sl_cmd_manual = {
	.name = "manual",
	.summary = "print the manual page, for man(1)",
	.run = manual_run,
	.flags = SL_COMMAND_HIDDEN,
};
