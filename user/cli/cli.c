/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/commands.h"
#include "kernel/set.h"

/* A command line while it is read. */
struct reader {
	int argc;
	char **argv;
	int at;
	struct sl_globals globals;
	const struct sl_command *path[SL_COMMAND_DEPTH];
	size_t depth;
	void *values;         /* of the innermost command's options, owned */
	struct sl_array args; /* char *, borrowed from argv */
	bool options_ended;
	bool help;
};

const struct sl_option sl_global_options[] = {
	SL_OPTION(FLAG, struct sl_globals, json, "json", 'j', NULL, "print JSON, errors too"),
	SL_OPTION(FLAG, struct sl_globals, pretty, "pretty", 'p', NULL, "print indented JSON"),
	SL_OPTION(TEXT, struct sl_globals, set_dir, "set", 0, "DIR",
		  "directory where the set of programs and maps is pinned",
		  .fallback = SL_SET_DEFAULT),
	SL_OPTION(TEXT, struct sl_globals, agent, "agent", 0, "SOCKET",
		  "control socket of the agent (default: /run/sluice/control.sock, if it is there); "
		  "none: run without it"),
	SL_OPTION(FLAG, struct sl_globals, quiet, "quiet", 'q', NULL, "report errors only"),
	SL_OPTION(FLAG, struct sl_globals, debug, "debug", 'v', NULL,
		  "report what is done, and how"),
	SL_OPTION(FLAG, struct sl_globals, version, "version", 'V', NULL, "print the version"),
	SL_OPTION(FLAG, struct sl_globals, help, "help", 'h', NULL, "print this help"),
	{ 0 },
};

static const struct sl_command *innermost(const struct reader *reader)
{
	return reader->path[reader->depth - 1];
}

static int enter(struct reader *reader, const struct sl_command *command, struct sl_err *err)
{
	struct sl_option_set set = { .options = command->options };

	if (reader->depth == SL_COMMAND_DEPTH)
		return sl_err_set(err, EINVAL, "commands nested too deep");
	free(reader->values);
	reader->values = calloc(1, command->options_size + 1);
	if (!reader->values)
		return sl_err_sys(err, ENOMEM, "%s", command->name);
	set.values = reader->values;
	reader->path[reader->depth++] = command;
	return sl_options_default(&set, err);
}

static int take_option(struct reader *reader, struct sl_err *err)
{
	const struct sl_option_set sets[] = {
		{ .options = innermost(reader)->options, .values = reader->values },
		{ .options = sl_global_options, .values = &reader->globals },
	};

	return sl_options_take(sets, ARRAY_SIZE(sets), reader->argc, reader->argv, &reader->at,
			       err);
}

static int take_argument(struct reader *reader, struct sl_err *err)
{
	char **slot = sl_array_add(&reader->args);

	if (!slot)
		return sl_err_sys(err, ENOMEM, "arguments");
	*slot = reader->argv[reader->at++];
	if (innermost(reader)->flags & SL_COMMAND_EXEC)
		reader->options_ended = true;
	return 0;
}

static int take_word(struct reader *reader, struct sl_err *err)
{
	const struct sl_command *command = innermost(reader);
	const char *word = reader->argv[reader->at];
	bool exec = command->flags & SL_COMMAND_EXEC;
	int ret;

	if (!reader->help && !reader->options_ended && !exec && reader->args.count == 0 &&
	    !strcmp(word, "help")) {
		reader->help = true;
		reader->at++;
		return 0;
	}
	if (!command->subcommands)
		return take_argument(reader, err);
	ret = sl_command_find(&command, command, word, err);
	if (ret)
		return ret;
	reader->at++;
	return enter(reader, command, err);
}

static int read_all(struct reader *reader, struct sl_err *err)
{
	while (reader->at < reader->argc && !reader->globals.help) {
		const char *word = reader->argv[reader->at];
		int ret = 0;

		if (reader->options_ended || word[0] != '-' || !word[1]) {
			ret = take_word(reader, err);
		} else if (!strcmp(word, "--")) {
			reader->options_ended = true;
			reader->at++;
		} else {
			ret = take_option(reader, err);
		}
		if (ret)
			return ret;
	}
	return 0;
}

/* After an error: whether the rest asks for JSON, so that the error is what was asked for. */
static void note_json(struct reader *reader)
{
	if (innermost(reader)->flags & SL_COMMAND_EXEC)
		return;
	for (int i = reader->at; i < reader->argc && strcmp(reader->argv[i], "--") != 0; i++) {
		const char *word = reader->argv[i];

		reader->globals.json |= !strcmp(word, "-j") || !strcmp(word, "--json");
		reader->globals.pretty |= !strcmp(word, "-p") || !strcmp(word, "--pretty");
	}
}

static int check_arguments(const struct reader *reader, struct sl_err *err)
{
	const struct sl_command *command = innermost(reader);
	int count = (int)reader->args.count;

	if (command->subcommands) {
		sl_err_set(err, EINVAL, "no %s named", reader->depth == 1 ? "object" : "command");
	} else if (count < command->min_args) {
		sl_err_set(err, EINVAL, "too few arguments");
	} else if (command->max_args != SL_ARGS_ANY && count > command->max_args) {
		sl_err_set(err, EINVAL, "too many arguments, beginning with '%s'",
			   *(char **)sl_array_at(&reader->args, (size_t)command->max_args));
	} else {
		return 0;
	}
	return -EINVAL;
}

/* A usage error without a hint gets the nearest help as one. */
static void hint_help(const struct reader *reader, struct sl_err *err)
{
	char command[128] = "";
	size_t used = 0;

	if (err->hint[0])
		return;
	for (size_t i = 0; i < reader->depth && used < sizeof(command); i++)
		used += (size_t)snprintf(command + used, sizeof(command) - used, "%s ",
					 reader->path[i]->name);
	sl_err_hint(err, "see '%s--help'", command);
}

static void apply_globals(struct sl_cli *cli, const struct sl_globals *globals)
{
	cli->output.json = globals->json || globals->pretty;
	cli->output.pretty = globals->pretty;
	cli->set_dir = globals->set_dir;
	cli->agent = globals->agent;
	cli->quiet = globals->quiet;
	if (globals->debug)
		sl_log_set_level(SL_LOG_DEBUG);
	else if (globals->quiet)
		sl_log_set_level(SL_LOG_ERROR);
}

/* stdout is flushed here, so that a full disk is a failure and no silent loss. */
static int finish_output(struct sl_cli *cli, int status, int failure_status)
{
	int code;

	errno = 0;
	if (fflush(cli->output.file) == 0 && !ferror(cli->output.file))
		return status;
	code = errno ? errno : EIO;
	cli->output.json = false;
	sl_err_sys(&cli->err, code, "writing the output");
	sl_error_print(&cli->output, &cli->err);
	return status ? status : failure_status;
}

static int run_command(struct sl_cli *cli, const void *values, struct sl_array *args)
{
	const struct sl_command *command = cli->command;
	int failure_status = command->failure_status ? command->failure_status : 1;
	int argc = (int)args->count;
	int status;

	/* One more, zeroed: argv ends with NULL. */
	if (!sl_array_add(args)) {
		status = sl_err_sys(&cli->err, ENOMEM, "arguments");
	} else {
		status = command->run(cli, values, argc, args->data);
	}
	if (status < 0) {
		if (!cli->err.code)
			sl_err_sys(&cli->err, -status, "%s", command->name);
		sl_error_print(&cli->output, &cli->err);
		status = failure_status;
	}
	return finish_output(cli, status, failure_status);
}

static int dispatch(struct sl_cli *cli, struct reader *reader)
{
	const struct sl_command *command;
	int ret = enter(reader, cli->root, &cli->err);

	if (!ret)
		ret = read_all(reader, &cli->err);
	if (ret)
		note_json(reader);
	command = &sl_cmd_version;
	/* Of sluice it is a command as well. */
	if (!ret && reader->globals.version && !reader->globals.help && cli->root->subcommands)
		ret = sl_command_find(&command, cli->root, "version", &cli->err);
	if (!ret && reader->globals.version && !reader->globals.help) {
		reader->depth = 1;
		reader->args.count = 0;
		ret = enter(reader, command, &cli->err);
	}
	apply_globals(cli, &reader->globals);
	command = innermost(reader);
	if (!ret && (reader->globals.help || reader->help)) {
		sl_help_print(cli->output.file, reader->path, reader->depth);
		return finish_output(cli, 0, 1);
	}
	if (!ret)
		ret = check_arguments(reader, &cli->err);
	if (ret) {
		hint_help(reader, &cli->err);
		sl_error_print(&cli->output, &cli->err);
		return finish_output(cli, command->usage_status ? command->usage_status : 2, 1);
	}
	cli->command = command;
	return run_command(cli, reader->values, &reader->args);
}

int sl_cli_main(const struct sl_command *root, int argc, char **argv)
{
	struct reader reader = {
		.argc = argc,
		.argv = argv,
		.at = 1,
		.args = SL_ARRAY(char *),
	};
	struct sl_option_set globals = { sl_global_options, &reader.globals };
	struct sl_cli cli = { .root = root };
	int status;

	sl_output_init(&cli.output, stdout);
	(void)sl_options_default(&globals, &cli.err);
	status = dispatch(&cli, &reader);
	sl_array_free(&reader.args);
	free(reader.values);
	return status;
}

static const struct sl_field error_fields[] = {
	SL_FIELD_AS(STRING, struct sl_err, text, "message", NULL),
	SL_FIELD_AS(STRING, struct sl_err, hint, "hint", NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_AS(INT, struct sl_err, code, "errno", NULL),
	{ 0 },
};

void sl_error_print(const struct sl_output *output, const struct sl_err *err)
{
	const struct {
		struct sl_err error;
	} document = { *err };
	static const struct sl_field fields[] = {
		SL_FIELD_AS(OBJECT, __typeof__(document), error, "error", NULL,
			    .fields = error_fields),
		{ 0 },
	};

	if (!output->json || sl_print_record(output, fields, &document))
		sl_log_err(SL_LOG_ERROR, err);
}
