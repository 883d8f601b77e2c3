/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line as data. A command either has subcommands or runs. Its tables give
 * parsing, help, completion.
 *
 *	const struct sl_command sl_cmd_sock = {
 *		.name = "sock", .summary = "sockets and who owns them",
 *		.subcommands = (const struct sl_command *const[]){ &list, &show, NULL },
 *	};
 *
 * Rules
 * 1. Words choose a command by its name or a unique prefix of it; hidden commands by the
 *    whole name only. Options may stand anywhere; "--" ends them. With SL_COMMAND_EXEC they
 *    end at the first argument too, so that what follows is a command line of its own.
 * 2. "help" in place of a subcommand or of the first argument, and -h or --help anywhere,
 *    print help on stdout and exit with 0 (an EXEC command knows --help only).
 * 3. A usage error exits with usage_status (2 if that is 0), a failure with failure_status
 *    (1 if 0). Errors go to stderr as text with a hint, under -j as
 *    {"error": {"message", "hint", "errno"}} to stdout.
 */
#ifndef SLUICE_USER_COMMAND_H
#define SLUICE_USER_COMMAND_H

#include "base/err.h"
#include "base/object.h"
#include "cli/options.h"

struct sl_command;

/* What a running command gets; valid while it runs. */
struct sl_cli {
	struct sl_output output; /* stdout; form and width as the user asked */
	struct sl_err err;       /* what a failing run() fills */
	const struct sl_command *root;
	const struct sl_command *command;
	const char *set_dir; /* --set: directory of the set to work on */
	const char *agent;   /* --agent: its control socket; NULL: the usual one, if it is there */
	bool quiet;
};

enum sl_command_flag {
	SL_COMMAND_HIDDEN = 1 << 0, /* neither in help nor in completion */
	SL_COMMAND_EXEC = 1 << 1,   /* rule 1 */
};

#define SL_ARGS_ANY (-1)

struct sl_command {
	const char *name;
	const char *summary;  /* one line, no full stop */
	const char *synopsis; /* its arguments, "tcp|udp LOCAL REMOTE"; NULL: none */
	const char *details;  /* paragraphs for help, lines broken; NULL: none */
	const struct sl_command *const *subcommands; /* ends with NULL */
	const struct sl_option *options;             /* ends with { 0 }; of its own */
	size_t options_size;                         /* of the struct of their values */
	/*
	 * `options` are the values, zeroed and defaulted; argv are the arguments, NULL after
	 * the last. Returns the exit status (0 or more), or -errno with cli->err filled:
	 * the error is then printed, and the exit status is failure_status.
	 */
	int (*run)(struct sl_cli *cli, const void *options, int argc, char **argv);
	int min_args, max_args; /* max_args SL_ARGS_ANY: no limit */
	unsigned int flags;     /* enum sl_command_flag */
	int usage_status, failure_status;
};

/* Options that every command takes. */
struct sl_globals {
	bool json, pretty, quiet, debug, version, help;
	const char *set_dir, *agent;
};
extern const struct sl_option sl_global_options[];

/* Runs a command line, argv[0] being the program; returns the exit status. */
int sl_cli_main(const struct sl_command *root, int argc, char **argv);

/*
 * The subcommand that `word` names. -ENOENT and -ENOTUNIQ, with the closest name or the
 * candidates in err.
 */
int sl_command_find(const struct sl_command **out, const struct sl_command *parent,
		    const char *word, struct sl_err *err);

/* Help of the command reached by path[0] (the root) … path[depth - 1]. */
void sl_help_print(FILE *file, const struct sl_command *const *path, size_t depth);

/* Prints an error as rule 3 says. */
void sl_error_print(const struct sl_output *output, const struct sl_err *err);

/*
 * Prints the words, one a line, that may stand for the last of `words` (which may be ""),
 * the others being what precedes it on the command line, without the program.
 */
void sl_complete(FILE *file, const struct sl_command *root, int count, char **words);

/*
 * Checks a tree of commands for what a compiler can't see: names that are missing or
 * double, values outside their struct, fallbacks that don't parse. 0 or -EINVAL.
 */
int sl_command_check(const struct sl_command *root, struct sl_err *err);

/* The deepest nesting of commands, the root included. */
#define SL_COMMAND_DEPTH 4

#endif
