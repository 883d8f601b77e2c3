/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/abi.h>

#include "cli/commands.h"
#include "cli/words.h"

enum mode { MODE_OBSERVE, MODE_AUDIT };

struct values {
	bool all;
	enum mode mode;
	uint32_t max;
	uint64_t ring;
	uint64_t grace_us;
	const char *user;
	int custom;
};

static const char *const modes[] = { "observe", "audit", NULL };

/* What the last command got. */
static struct values got;
static char got_args[256];
static char got_set[64];
static int runs;

static int parse_even(const char *value, void *member, struct sl_err *err)
{
	if (strlen(value) % 2)
		return sl_err_set(err, EINVAL, "--even: '%s' is odd", value);
	*(int *)member += (int)strlen(value);
	return 0;
}

static const struct sl_option options[] = {
	SL_OPTION(FLAG, struct values, all, "all", 'a', NULL, "all"),
	SL_OPTION(CHOICE, struct values, mode, "mode", 'm', NULL, "mode", .choices = modes,
		  .fallback = "audit"),
	SL_OPTION(U32, struct values, max, "max", 'n', "COUNT", "max", .min = 1, .max = 10,
		  .fallback = "3"),
	SL_OPTION(SIZE, struct values, ring, "ring", 0, "BYTES", "ring"),
	SL_OPTION(DURATION_US, struct values, grace_us, "grace", 0, "TIME", "grace"),
	SL_OPTION(TEXT, struct values, user, "user", 'u', "UID", "user"),
	SL_OPTION(CUSTOM, struct values, custom, "even", 0, "TEXT", "even", .parse = parse_even),
	{ 0 },
};

static int record(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	size_t used = 0;

	runs++;
	got = *(const struct values *)values;
	got_args[0] = '\0';
	snprintf(got_set, sizeof(got_set), "%s", cli->set_dir);
	cr_expect_null(argv[argc]);
	for (int i = 0; i < argc; i++)
		used += (size_t)snprintf(got_args + used, sizeof(got_args) - used, "%s|", argv[i]);
	return 0;
}

static int fail(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	(void)values;
	(void)argc;
	(void)argv;
	sl_err_sys(&cli->err, ENOENT, "opening '%s'", "a\nb\x1b");
	return sl_err_hint(&cli->err, "attach first");
}

static int fail_without_words(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	(void)cli;
	(void)values;
	(void)argc;
	(void)argv;
	return -EPERM;
}

static const struct sl_command list = {
	.name = "list",
	.summary = "list",
	.run = record,
	.options = options,
	.options_size = sizeof(struct values),
	.max_args = 2,
	.synopsis = "[A [B]]",
};
static const struct sl_command show = { .name = "show", .summary = "show", .run = fail };
static const struct sl_command sock = {
	.name = "sock",
	.summary = "sockets",
	.subcommands = (const struct sl_command *const[]){ &list, &show, NULL },
};
static const struct sl_command sandbox = {
	.name = "sandbox",
	.summary = "sandboxes",
	.run = fail_without_words,
};
static const struct sl_command run = {
	.name = "run",
	.summary = "run",
	.run = record,
	.options = options,
	.options_size = sizeof(struct values),
	.min_args = 1,
	.max_args = SL_ARGS_ANY,
	.flags = SL_COMMAND_EXEC,
	.usage_status = 125,
	.failure_status = 125,
};
static const struct sl_command hidden = {
	.name = "hidden",
	.summary = "hidden",
	.run = record,
	.options = options,
	.options_size = sizeof(struct values),
	.flags = SL_COMMAND_HIDDEN,
};
static const struct sl_command root = {
	.name = "sluice",
	.summary = "test",
	.subcommands = (const struct sl_command *const[]){ &sock, &sandbox, &run, &hidden,
							   &sl_cmd_version, &sl_cmd_completion,
							   &sl_cmd_complete_words, NULL },
};

static char out[16384], errors[16384];

/* Runs a line (words end with NULL) with stdout and stderr caught; returns the exit status. */
static int sluice(const char *first, ...)
{
	char *argv[16] = { (char *)"sluice" };
	FILE *old_out = stdout, *old_err = stderr;
	int argc = 1, status;
	va_list words;

	va_start(words, first);
	for (const char *word = first; word; word = va_arg(words, const char *))
		argv[argc++] = (char *)word;
	va_end(words);
	memset(out, 0, sizeof(out));
	memset(errors, 0, sizeof(errors));
	stdout = fmemopen(out, sizeof(out) - 1, "w");
	stderr = fmemopen(errors, sizeof(errors) - 1, "w");
	status = sl_cli_main(&root, argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = old_out;
	stderr = old_err;
	return status;
}

/* SL_SCHEMA as text. */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define SCHEMA TEXT(SL_SCHEMA)

static void has(const char *text, const char *part)
{
	cr_expect_not_null(strstr(text, part), "'%s' lacks '%s'", text, part);
}

Test(cli, tree_is_sound)
{
	struct sl_err err = { 0 };

	cr_expect_eq(sl_command_check(&root, &err), 0, "%s", err.text);
}

Test(cli, prefixes_choose_when_unique)
{
	cr_expect_eq(sluice("so", "l", NULL), 0);
	cr_expect_eq(runs, 1);
	cr_expect_eq(sluice("s", "l", NULL), 2);
	cr_expect_str_eq(errors, "sluice: 's' is ambiguous\n"
				 "sluice: hint: it may be: sock, sandbox\n");
	cr_expect_eq(sluice("sokc", NULL), 2);
	has(errors, "did you mean 'sock'?");
	cr_expect_eq(sluice("zzzzzz", NULL), 2);
	has(errors, "unknown command 'zzzzzz'");
	has(errors, "--help");
	cr_expect_eq(sluice("", NULL), 2);
	cr_expect_eq(sluice("hid", NULL), 2);
	cr_expect_eq(sluice("hidden", NULL), 0);
	cr_expect_eq(runs, 2);
	cr_expect_str_empty(out);
}

Test(cli, options_of_every_type_and_their_defaults)
{
	cr_assert_eq(sluice("sock", "list", NULL), 0);
	cr_expect_eq(got.mode, MODE_AUDIT);
	cr_expect_eq(got.max, 3);
	cr_expect_null(got.user);
	cr_expect_not(got.all);
	cr_expect_str_eq(got_set, "/sys/fs/bpf/sluice/v1");
	cr_assert_eq(sluice("sock", "list", "x", "--set=/d", "-am", "observe", "--max", "10", "-u7",
			    "y", "--ring=64K", "--grace", "2s", "--even=ab", "--even=abcd", NULL),
		     0);
	cr_expect(got.all);
	cr_expect_eq(got.mode, MODE_OBSERVE);
	cr_expect_eq(got.max, 10);
	cr_expect_str_eq(got.user, "7");
	cr_expect_eq(got.ring, 65536);
	cr_expect_eq(got.grace_us, 2000000);
	cr_expect_eq(got.custom, 6);
	cr_expect_str_eq(got_args, "x|y|");
	cr_expect_str_eq(got_set, "/d");
}

Test(cli, bad_options_are_usage_errors)
{
	static const char *const bad[][2] = {
		{ "--max=11", "expected is 1 to 10" },
		{ "--max=1x", "expected is a decimal number" },
		{ "--max=0", "out of range" },
		{ "--mode=aud", "it is one of: observe, audit" },
		{ "--mdoe=audit", "did you mean '--mode'?" },
		{ "--ring=4Q", "64K" },
		{ "--grace=4", "500ms" },
		{ "--even=abc", "'abc' is odd" },
		{ "--all=1", "takes no value" },
		{ "--all\n", "unknown option '--all\\x0a'" },
		{ "--user", "needs a value" },
		{ "-u", "needs a value" },
		{ "-ax", "unknown option '-x' in '-ax'" },
		{ "--", NULL },
	};

	for (size_t i = 0; bad[i][1]; i++) {
		cr_expect_eq(sluice("sock", "list", bad[i][0], NULL), 2, "%s", bad[i][0]);
		has(errors, bad[i][1]);
	}
	cr_expect_eq(runs, 0);
}

Test(cli, double_dash_ends_options_and_arguments_are_counted)
{
	cr_expect_eq(sluice("sock", "list", "--", "-a", "--help", NULL), 0);
	cr_expect_str_eq(got_args, "-a|--help|");
	cr_expect_not(got.all);
	cr_expect_eq(sluice("sock", "list", "-", NULL), 0);
	cr_expect_str_eq(got_args, "-|");
	cr_expect_eq(sluice("sock", "list", "1", "2", "3\x1b", NULL), 2);
	has(errors, "too many arguments, beginning with '3\\x1b'");
	cr_expect_eq(sluice("sock", NULL), 2);
	cr_expect_eq(sluice(NULL), 2);
}

Test(cli, exec_commands_leave_the_rest_alone)
{
	cr_expect_eq(sluice("run", "-a", "curl", "-j", "--help", "--", "x", NULL), 0);
	cr_expect_str_eq(got_args, "curl|-j|--help|--|x|");
	cr_expect(got.all);
	cr_expect_eq(sluice("run", "--", "-x", NULL), 0);
	cr_expect_str_eq(got_args, "-x|");
	cr_expect_eq(sluice("run", "help", NULL), 0);
	cr_expect_str_eq(got_args, "help|");
	cr_expect_eq(sluice("run", NULL), 125);
	cr_expect_eq(sluice("run", "--bogus", NULL), 125);
	cr_expect_eq(sluice("run", "--help", NULL), 0);
	has(out, "Usage: sluice run");
}

Test(cli, help_everywhere_on_stdout_with_status_0)
{
	cr_expect_eq(sluice("help", NULL), 0);
	has(out, "Usage: sluice [OPTIONS] OBJECT { COMMAND | help }");
	has(out, "  sock ");
	cr_expect_null(strstr(out, "hidden"));
	cr_expect_eq(sluice("-h", NULL), 0);
	cr_expect_eq(sluice("sock", "help", NULL), 0);
	has(out, "Usage: sluice sock");
	cr_expect_eq(sluice("help", "sock", "list", NULL), 0);
	has(out, "Usage: sluice sock list [OPTIONS] [A [B]]");
	has(out, "-m, --mode observe|audit");
	has(out, "(default: audit)");
	cr_expect_eq(sluice("sock", "list", "help", NULL), 0);
	cr_expect_eq(sluice("sock", "list", "x", "--help", NULL), 0);
	cr_expect_eq(sluice("help", "nothing", NULL), 2);
	cr_expect_eq(runs, 0);
	cr_expect_eq(sluice("sock", "list", "x", "help", NULL), 0);
	cr_expect_str_eq(got_args, "x|help|");
}

Test(cli, help_fits_100_columns)
{
	char *save = NULL;

	cr_expect_eq(sluice("help", "sock", "list", NULL), 0);
	for (char *line = strtok_r(out, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		cr_expect_leq(strlen(line), 100, "%s", line);
}

Test(cli, failures_are_told_in_the_form_asked_for)
{
	cr_expect_eq(sluice("sock", "show", NULL), 1);
	cr_expect_str_eq(errors, "sluice: opening 'a\\x0ab\\x1b': No such file or directory\n"
				 "sluice: hint: attach first\n");
	cr_expect_str_empty(out);
	cr_expect_eq(sluice("sock", "show", "-j", NULL), 1);
	cr_expect_str_eq(out, "{\"error\":{\"message\":\"opening 'a\\nb\\u001b': No such file or "
			      "directory\",\"hint\":\"attach first\",\"errno\":2}}\n");
	cr_expect_str_empty(errors);
	cr_expect_eq(sluice("-q", "sandbox", NULL), 1);
	cr_expect_str_eq(errors, "sluice: sandbox: Operation not permitted\n");
	cr_expect_eq(sluice("sandbox", "-p", NULL), 1);
	has(out, "\"hint\": null");
	cr_expect_eq(sluice("sokc", "-j", NULL), 2);
	has(out, "{\"error\":{\"message\":\"unknown command 'sokc'\"");
}

Test(cli, version_and_completion)
{
	cr_expect_eq(sluice("version", NULL), 0);
	has(out, "schema: " SCHEMA "\n");
	cr_expect_eq(sluice("-Vj", NULL), 0);
	has(out, "\"schema\":" SCHEMA ",\"libbpf\":\"v");
	cr_expect_eq(sluice("version", "x", NULL), 2);
	cr_expect_eq(sluice("completion", "bash", NULL), 0);
	has(out, "complete -o default -F _sluice sluice\n");
}

Test(cli, completion_knows_what_the_tables_know)
{
	cr_expect_eq(sluice("complete-words", "--", "s", NULL), 0);
	cr_expect_str_eq(out, "sock\nsandbox\n");
	sluice("complete-words", "--", "sock", "", NULL);
	cr_expect_str_eq(out, "list\nshow\nhelp\n");
	sluice("complete-words", "--", "-j", "so", "list", "--m", NULL);
	cr_expect_str_eq(out, "--mode\n--max\n");
	sluice("complete-words", "--", "sock", "list", "-m", "o", NULL);
	cr_expect_str_eq(out, "observe\n");
	sluice("complete-words", "--", "sock", "list", "--mode", "=", NULL);
	cr_expect_str_eq(out, "observe\naudit\n");
	sluice("complete-words", "--", "--set", "/x", "sock", "sh", NULL);
	cr_expect_str_eq(out, "show\n");
	sluice("complete-words", "--", "run", "ls", "--m", NULL);
	cr_expect_str_empty(out);
	sluice("complete-words", "--", "bogus", "", NULL);
	cr_expect_str_empty(out);
	cr_expect_eq(sluice("complete-words", "--", NULL), 0);
}

Test(cli, faulty_tables_are_found)
{
	static const struct sl_option twice[] = {
		SL_OPTION(FLAG, struct values, all, "all", 'a', NULL, "x"),
		SL_OPTION(FLAG, struct values, all, "all", 0, NULL, "x"),
		{ 0 },
	};
	static const struct sl_option shadows[] = {
		SL_OPTION(FLAG, struct values, all, "just", 'j', NULL, "x"),
		{ 0 },
	};
	static const struct sl_option fallback[] = {
		SL_OPTION(U32, struct values, max, "max", 0, "N", "x", .max = 3, .fallback = "4"),
		{ 0 },
	};
	static const struct sl_option type[] = {
		SL_OPTION(U32, struct values, ring, "ring", 0, "N", "x"),
		{ 0 },
	};
	const struct sl_option *const faulty[] = { twice, shadows, fallback, type };
	struct sl_err err;

	for (size_t i = 0; i < sizeof(faulty) / sizeof(faulty[0]); i++) {
		struct sl_command command = list;

		command.options = faulty[i];
		cr_expect_eq(sl_command_check(&command, &err), -EINVAL, "%zu", i);
	}
}

Test(cli, word_distance)
{
	char longer[64];

	cr_expect_eq(sl_word_distance("sock", "sock"), 0);
	cr_expect_eq(sl_word_distance("sokc", "sock"), 1);
	cr_expect_eq(sl_word_distance("", "abc"), 3);
	cr_expect_eq(sl_word_distance("kitten", "sitting"), 3);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	cr_expect_eq(sl_word_distance(longer, "a"), SIZE_MAX);
}
