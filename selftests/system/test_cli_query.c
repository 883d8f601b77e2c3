/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queries: text of an ordinary width, JSON that parses, words cut short, help. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_query, .init = world_up, .fini = world_down, .timeout = 120);

#define WORDS_MAX 6

/* One live connection, whose facts are compared. */
struct live {
	struct load server, client;
	char local[64], remote[64], cookie[32], pid[32];
};

static void live_make(struct live *live)
{
	unsigned int port = server_start(&live->server, "tcp-server --quiet --count 100");
	const char *line;

	load_start(&live->client, INSIDE, "tcp-idle --server 127.0.0.1:%u --count 1", port);
	load_await(&live->client, "open", 1);
	line = fact_next(&live->client, NULL, "open");
	cr_assert(fact_text(line, "local", live->local, sizeof(live->local)));
	cr_assert(fact_text(line, "remote", live->remote, sizeof(live->remote)));
	cr_assert(fact_text(line, "cookie", live->cookie, sizeof(live->cookie)));
	cr_assert(fact_text(line, "pid", live->pid, sizeof(live->pid)));
}

static void live_free(struct live *live)
{
	load_end(&live->client);
	load_end(&live->server);
	load_free(&live->client);
	load_free(&live->server);
}

static void query(struct cli *cli, const char *form, const char *const words[WORDS_MAX])
{
	const char *argv[WORDS_MAX + 5] = { "sluice", "--set", world.dir, form };

	for (int i = 0; i < WORDS_MAX && words[i]; i++)
		argv[i + (form ? 4 : 3)] = words[i];
	cli_start(cli, NULL, argv);
	cli_end(cli);
	cr_expect_eq(cli->status, 0, "%s %s: exit %d: %s", words[0], words[1] ? words[1] : "",
		     cli->status, cli->err);
	cr_expect_str_eq(cli->err, "");
}

/* Plain text fits where it goes; both forms of JSON are documents of the same type. */
static void expect_forms(const char *const words[WORDS_MAX])
{
	struct json_object *line, *pretty;
	struct cli cli;

	query(&cli, NULL, words);
	cr_expect_neq(cli.out[0], '\0');
	/* A chain of images stands on one line, however long it is. */
	if (!strstr(cli.out, "lineage: "))
		cr_expect_leq(text_width(cli.out), 100, "%s: %s", words[0], cli.out);
	cli_free(&cli);
	query(&cli, "-j", words);
	cr_expect_eq(text_count(cli.out, "\n"), 1, "%s", cli.out);
	line = json_of(cli.out);
	cli_free(&cli);
	query(&cli, "-p", words);
	pretty = json_of(cli.out);
	cr_expect_gt(text_count(cli.out, "\n"), 1, "%s", cli.out);
	cr_expect_eq(json_object_get_type(line), json_object_get_type(pretty));
	json_object_put(line);
	json_object_put(pretty);
	cli_free(&cli);
}

Test(cli_query, forms)
{
	struct live live;

	setenv("COLUMNS", "100", 1);
	live_make(&live);
	{
		const char *const queries[][WORDS_MAX] = {
			{ "sandbox", "list" },
			{ "sandbox", "show", "1" },
			{ "sock", "list" },
			{ "sock", "list", "--all" },
			{ "sock", "show", live.cookie },
			{ "sock", "resolve", "tcp", live.local, live.remote },
			{ "proc", "list" },
			{ "proc", "show", live.pid },
			{ "exe", "list" },
			{ "counter", "list", "--all" },
			{ "version" },
			{ "status" },
			{ "feature", "probe" },
		};

		for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
			expect_forms(queries[i]);
	}
	live_free(&live);
}

Test(cli_query, owner_of_a_connection)
{
	struct json_object *json;
	struct live live;
	struct cli cli;

	live_make(&live);
	query(&cli, "-j",
	      (const char *const[WORDS_MAX]){ "sock", "resolve", "tcp", live.local, live.remote });
	json = json_of(cli.out);
	cr_expect_str_eq(json_text(json, "found"), "live");
	cr_expect_str_eq(json_text(json, "socket.cookie"), live.cookie);
	cr_expect_str_eq(json_text(json, "socket.process.exe.path"), getenv("SL_LOAD"));
	cr_expect_eq(json_object_get_int(json_at(json, "socket.process.pid")), atoi(live.pid));
	json_object_put(json);
	cli_free(&cli);
	/* Words may be cut to what is unique. */
	query(&cli, "-j", (const char *const[WORDS_MAX]){ "so", "s", live.cookie });
	json = json_of(cli.out);
	cr_expect_str_eq(json_text(json, "cookie"), live.cookie);
	json_object_put(json);
	cli_free(&cli);
	CLI(&cli, "s", "list");
	cli_expect_error(&cli, 2, "'s' is ambiguous");
	cli_free(&cli);
	CLI(&cli, "-j", "--set", world.dir, "sock", "show", "1");
	json = json_of(cli.out);
	cr_expect_eq(cli.status, 1);
	cr_expect_neq(json_text(json, "error.message")[0], '\0');
	cr_expect_neq(json_text(json, "error.hint")[0], '\0');
	cr_expect_str_eq(cli.err, "");
	json_object_put(json);
	cli_free(&cli);
	live_free(&live);
}

Test(cli_query, help_exits_with_0)
{
	static const char *const objects[] = { "run",     "status",  "sandbox",   "sock",
					       "proc",    "exe",     "counter",   "event",
					       "feature", "version", "completion" };
	struct cli cli;

	CLI(&cli, "help");
	cr_expect_eq(cli.status, 0);
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
		cr_expect_not_null(strstr(cli.out, objects[i]), "%s", objects[i]);
	cli_free(&cli);
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		CLI(&cli, objects[i], "--help");
		cr_expect_eq(cli.status, 0, "%s", objects[i]);
		cr_expect_str_eq(cli.err, "");
		cr_expect_leq(text_width(cli.out), 100, "%s", cli.out);
		cr_expect_not_null(strstr(cli.out, "Usage: sluice "), "%s", cli.out);
		cli_free(&cli);
	}
	/* What follows `run` is a command, and may be called so. */
	CLI(&cli, "sock", "list", "help");
	cr_expect_eq(cli.status, 0);
	cr_expect_not_null(strstr(cli.out, "Usage: sluice sock list"), "%s", cli.out);
	cli_free(&cli);
}

Test(cli_query, completion_is_a_script)
{
	char script[128];
	struct cli cli, bash;
	FILE *file;

	CLI(&cli, "completion", "bash");
	cr_expect_eq(cli.status, 0);
	snprintf(script, sizeof(script), "%s/completion", world.scratch);
	file = fopen(script, "we");
	cr_assert_not_null(file);
	fputs(cli.out, file);
	/* As bash does when TAB is pressed after "sluice sandbox at". */
	fprintf(file,
		"PATH=${SLUICE%%/*}:$PATH; COMP_WORDS=(sluice sandbox at); COMP_CWORD=2\n"
		"$(complete -p sluice | sed 's/.* -F \\([^ ]*\\) .*/\\1/') sluice at sandbox\n"
		"printf '<%%s>' \"${COMPREPLY[@]}\"\n");
	fclose(file);
	cli_start(&bash, NULL, (const char *const[]){ "/bin/bash", script, NULL });
	cli_end(&bash);
	cr_expect_eq(bash.status, 0, "%s", bash.err);
	cr_expect_not_null(strstr(bash.out, "<attach"), "%s%s", bash.out, bash.err);
	cli_free(&cli);
	cli_free(&bash);
}

/* From the same tables as help: each command and option of one is in the other. */
Test(cli_query, manual_has_what_help_has)
{
	static const char *const commands[][2] = {
		{ "run", NULL },      { "status", NULL },    { "sandbox", "attach" },
		{ "event", "watch" }, { "sock", "resolve" }, { "feature", "probe" }
	};
	struct cli manual;

	CLI(&manual, "manual");
	cr_expect_eq(manual.status, 0);
	cr_expect_eq(strncmp(manual.out, ".TH sluice 8 ", 13), 0);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		struct cli help;
		char title[64];

		snprintf(title, sizeof(title), ".SS sluice %s%s%s", commands[i][0],
			 commands[i][1] ? " " : "", commands[i][1] ? commands[i][1] : "");
		cr_expect_not_null(strstr(manual.out, title), "%s", title);
		if (commands[i][1])
			CLI(&help, commands[i][0], commands[i][1], "--help");
		else
			CLI(&help, commands[i][0], "--help");
		for (const char *at = help.out; (at = strstr(at, ", --"));) {
			char option[64];

			at += strlen(", --");
			snprintf(option, sizeof(option), "\\-\\-%.*s", (int)strcspn(at, " -\n"),
				 at);
			cr_expect_not_null(strstr(manual.out, option), "%s", option);
		}
		cli_free(&help);
	}
	cli_free(&manual);
}
