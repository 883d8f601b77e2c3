/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

/* Where texts begin, and where they are broken. */
#define HELP_INDENT 30
#define HELP_WIDTH 96

/* Prints `text` from the current column, which is `at`, broken between words. */
static void print_wrapped(FILE *file, const char *text, size_t at)
{
	bool first = true;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (!first && at + 1 + len > HELP_WIDTH) {
			fprintf(file, "\n%*s", HELP_INDENT, "");
			at = HELP_INDENT;
			first = true;
		}
		fprintf(file, "%s%.*s", first ? "" : " ", (int)len, text);
		at += len + !first;
		first = false;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', file);
}

static void print_row(FILE *file, const char *left, const char *text)
{
	size_t len = strlen(left);

	fputs(left, file);
	if (len + 2 > HELP_INDENT)
		fprintf(file, "\n%*s", HELP_INDENT, "");
	else
		fprintf(file, "%*s", (int)(HELP_INDENT - len), "");
	print_wrapped(file, text, HELP_INDENT);
}

static void print_options(FILE *file, const char *title, const struct sl_option *options)
{
	if (!options || !options->name)
		return;
	fprintf(file, "\n%s:\n", title);
	for (const struct sl_option *option = options; option->name; option++) {
		char left[160], value[128], text[512];

		sl_option_value_text(option, value, sizeof(value));
		if (option->letter)
			snprintf(left, sizeof(left), "  -%c, --%s%s", option->letter, option->name,
				 value);
		else
			snprintf(left, sizeof(left), "      --%s%s", option->name, value);
		if (option->fallback)
			snprintf(text, sizeof(text), "%s (default: %s)", option->help,
				 option->fallback);
		else
			snprintf(text, sizeof(text), "%s", option->help);
		print_row(file, left, text);
	}
}

static void print_usage(FILE *file, const struct sl_command *const *path, size_t depth)
{
	const struct sl_command *command = path[depth - 1];

	fputs("Usage:", file);
	for (size_t i = 0; i < depth; i++)
		fprintf(file, " %s", path[i]->name);
	fputs(" [OPTIONS]", file);
	if (command->subcommands)
		fprintf(file, " %s{ COMMAND | help }", depth == 1 ? "OBJECT " : "");
	else if (command->synopsis)
		fprintf(file, " %s", command->synopsis);
	fputc('\n', file);
}

void sl_help_print(FILE *file, const struct sl_command *const *path, size_t depth)
{
	const struct sl_command *command = path[depth - 1];

	print_usage(file, path, depth);
	fprintf(file, "\n%s\n", command->summary);
	if (command->details)
		fprintf(file, "\n%s\n", command->details);
	if (command->subcommands) {
		fprintf(file, "\n%s:\n", depth == 1 ? "Objects" : "Commands");
		for (size_t i = 0; command->subcommands[i]; i++) {
			const struct sl_command *sub = command->subcommands[i];
			char left[160];

			if (sub->flags & SL_COMMAND_HIDDEN)
				continue;
			snprintf(left, sizeof(left), "  %s %s", sub->name,
				 sub->synopsis ? sub->synopsis : "");
			print_row(file, left, sub->summary);
		}
	}
	print_options(file, "Options", command->options);
	print_options(file, "Options of every command", sl_global_options);
}
