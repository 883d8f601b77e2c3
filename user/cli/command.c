/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sock.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/words.h"

int sl_command_find(const struct sl_command **out, const struct sl_command *parent,
		    const char *word, struct sl_err *err)
{
	const struct sl_command *found = NULL;
	struct sl_closest closest = { 0 };
	struct sl_words candidates = { 0 };
	size_t len = strlen(word);
	unsigned int matches = 0;

	for (size_t i = 0; parent->subcommands[i]; i++) {
		const struct sl_command *command = parent->subcommands[i];

		if (!strcmp(command->name, word)) {
			*out = command;
			return 0;
		}
		if (command->flags & SL_COMMAND_HIDDEN)
			continue;
		sl_closest_offer(&closest, word, command->name);
		if (len > 0 && !strncmp(command->name, word, len)) {
			found = command;
			matches++;
			sl_words_add(&candidates, command->name);
		}
	}
	if (matches == 1) {
		*out = found;
		return 0;
	}
	if (matches > 1) {
		sl_err_set(err, ENOTUNIQ, "'%s' is ambiguous", word);
		return sl_err_hint(err, "it may be: %s", candidates.text);
	}
	sl_err_set(err, ENOENT, "unknown command '%s'", word);
	if (closest.word)
		sl_err_hint(err, "did you mean '%s'?", closest.word);
	return -ENOENT;
}

static size_t option_value_size(const struct sl_option *option)
{
	static const size_t sizes[SL_OPTION_TYPE_MAX] = {
		[SL_OPTION_FLAG] = sizeof(bool),
		[SL_OPTION_TEXT] = sizeof(char *),
		[SL_OPTION_U32] = sizeof(uint32_t),
		[SL_OPTION_SIZE] = sizeof(uint64_t),
		[SL_OPTION_DURATION_US] = sizeof(uint64_t),
		[SL_OPTION_CHOICE] = sizeof(int),
		[SL_OPTION_ENDPOINT] = sizeof(struct sl_endpoint),
	};

	return option->type == SL_OPTION_CUSTOM ? option->size : sizes[option->type];
}

static bool option_good(const struct sl_option *option)
{
	if ((unsigned int)option->type >= SL_OPTION_TYPE_MAX || !option->help)
		return false;
	if (option->type == SL_OPTION_CHOICE)
		return option->choices;
	if (option->type == SL_OPTION_CUSTOM && !option->parse)
		return false;
	return option->type == SL_OPTION_FLAG || option->metavar;
}

static int check_options(const struct sl_command *command, struct sl_err *err)
{
	_cleanup_free_ void *values = calloc(1, command->options_size + 1);
	struct sl_option_set set = { .options = command->options, .values = values };

	if (!values)
		return sl_err_sys(err, ENOMEM, "%s", command->name);
	for (const struct sl_option *option = set.options; option && option->name; option++) {
		if (!option_good(option) || option->size != option_value_size(option) ||
		    option->offset + option->size > command->options_size)
			return sl_err_set(err, EINVAL, "%s: bad row for --%s", command->name,
					  option->name);
		if (sl_option_by_name(set.options, option->name, strlen(option->name)) != option ||
		    sl_option_by_name(sl_global_options, option->name, strlen(option->name)))
			return sl_err_set(err, EINVAL, "%s: second --%s", command->name,
					  option->name);
		if (option->letter && (sl_option_by_letter(set.options, option->letter) != option ||
				       sl_option_by_letter(sl_global_options, option->letter)))
			return sl_err_set(err, EINVAL, "%s: second -%c", command->name,
					  option->letter);
	}
	return sl_options_default(&set, err);
}

static int check_level(const struct sl_command *command, unsigned int depth, struct sl_err *err)
{
	const struct sl_command *const *subs = command->subcommands;

	if (!command->name || !*command->name || !command->summary)
		return sl_err_set(err, EINVAL, "a command without a name or summary");
	if (!subs == !command->run || (subs && command->options) || depth > SL_COMMAND_DEPTH)
		return sl_err_set(err, EINVAL, "%s: either runs or has subcommands", command->name);
	if (command->max_args != SL_ARGS_ANY && command->max_args < command->min_args)
		return sl_err_set(err, EINVAL, "%s: max_args below min_args", command->name);
	for (size_t i = 0; subs && subs[i]; i++) {
		int ret = check_level(subs[i], depth + 1, err);

		for (size_t j = 0; !ret && j < i; j++) {
			if (!strcmp(subs[i]->name, subs[j]->name))
				ret = sl_err_set(err, EINVAL, "second '%s'", subs[i]->name);
		}
		if (ret)
			return sl_err_prefix(err, "%s", command->name);
	}
	return check_options(command, err);
}

int sl_command_check(const struct sl_command *root, struct sl_err *err)
{
	return check_level(root, 1, err) ? -EINVAL : 0;
}
