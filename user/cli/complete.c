/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

/* Where a partial command line has got to. */
struct position {
	const struct sl_command *command;
	const struct sl_option *pending; /* its value is the next word */
	bool options_ended;
	bool lost; /* an unknown word: nothing can be said */
};

static void offer(FILE *file, const char *typed, const char *dashes, const char *word)
{
	size_t len = strlen(dashes);

	/* `typed` must be a prefix of dashes and word together. */
	if (strncmp(typed, dashes, strlen(typed) < len ? strlen(typed) : len) != 0)
		return;
	if (strlen(typed) > len && strncmp(typed + len, word, strlen(typed) - len) != 0)
		return;
	fprintf(file, "%s%s\n", dashes, word);
}

static const struct sl_option *find_option(const struct sl_command *command, const char *word)
{
	const struct sl_option *tables[] = { command->options, sl_global_options };

	for (size_t i = 0; i < 2; i++) {
		const struct sl_option *option;

		if (word[1] == '-')
			option = sl_option_by_name(tables[i], word + 2, strlen(word + 2));
		else
			option = word[2] ? NULL : sl_option_by_letter(tables[i], word[1]);
		if (option)
			return option;
	}
	return NULL;
}

static void step(struct position *position, const char *word)
{
	const struct sl_command *command = position->command;

	if (position->pending) {
		/* bash splits --name=VALUE into three words. */
		if (strcmp(word, "=") != 0)
			position->pending = NULL;
		return;
	}
	if (!position->options_ended && word[0] == '-' && word[1]) {
		const struct sl_option *option;

		if (!strcmp(word, "--")) {
			position->options_ended = true;
			return;
		}
		option = find_option(command, word);
		if (option && option->type != SL_OPTION_FLAG)
			position->pending = option;
		return;
	}
	if (!command->subcommands) {
		position->options_ended |= (command->flags & SL_COMMAND_EXEC) != 0;
		return;
	}
	if (strcmp(word, "help") != 0 && sl_command_find(&position->command, command, word, NULL))
		position->lost = true;
}

static void offer_options(FILE *file, const char *typed, const struct sl_option *options)
{
	for (const struct sl_option *option = options; option && option->name; option++)
		offer(file, typed, "--", option->name);
}

void sl_complete(FILE *file, const struct sl_command *root, int count, char **words)
{
	struct position position = { .command = root };
	const char *typed = count > 0 ? words[count - 1] : "";
	const struct sl_command *const *subs;

	for (int i = 0; i + 1 < count && !position.lost; i++)
		step(&position, words[i]);
	if (position.lost)
		return;
	if (position.pending) {
		const char *const *choices = position.pending->choices;

		typed = strcmp(typed, "=") == 0 ? "" : typed;
		for (; choices && *choices; choices++)
			offer(file, typed, "", *choices);
		return;
	}
	if (typed[0] == '-' && !position.options_ended) {
		offer_options(file, typed, position.command->options);
		offer_options(file, typed, sl_global_options);
		return;
	}
	subs = position.command->subcommands;
	for (size_t i = 0; subs && subs[i]; i++) {
		if (!(subs[i]->flags & SL_COMMAND_HIDDEN))
			offer(file, typed, "", subs[i]->name);
	}
	if (subs)
		offer(file, typed, "", "help");
}
