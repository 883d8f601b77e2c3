/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluice as a program: started with arguments, its output read, on pipes or on a terminal.
 *
 * Order of use: cli_start() or cli_terminal(); cli_await(), cli_type(); cli_end() reads to
 * the end of the output and reaps; cli_free(). CLI() does all but the last. Nothing here
 * returns an error: what fails fails the test.
 */
#ifndef SLUICE_SYSTEM_CLI_H
#define SLUICE_SYSTEM_CLI_H

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/types.h>

struct cli {
	pid_t pid;
	int status; /* exit code, or 128 + signal, after cli_end() */
	int in;     /* of a terminal: its other side */
	int fds[2]; /* read ends of stdout and stderr; one alone for a terminal */
	char *out;  /* texts, never NULL */
	char *err;
};

/* What is done in the child before exec: namespaces, limits, signals. May be NULL. */
typedef void (*cli_before)(void);
/* There: ends the child, as a failure, unless `ret` is 0. */
void cli_must(int ret);
/* There: a mount namespace, of which nothing gets out. */
void cli_own_mounts(void);

/*
 * argv[0] is sluice unless it is a path; ends with NULL. A `run` goes by the test's own agent
 * if there is one (agent_up()), else by that of the environment's CLI_AGENT (a socket), else
 * without: so whole suites can be tried with an agent, too.
 */
void cli_start(struct cli *cli, cli_before before, const char *const argv[]);
/* The same as leader of a session on a terminal of 100 columns and 40 rows. */
void cli_terminal(struct cli *cli, const char *const argv[]);

/* Waits until stdout (or the terminal) has the text; fails at the end of the output. */
void cli_await(struct cli *cli, const char *text);
void cli_type(struct cli *cli, const char *keys);
void cli_end(struct cli *cli);
void cli_free(struct cli *cli);

#define CLI_ARGV(...) ((const char *const[]){ "sluice", __VA_ARGS__, NULL })
#define CLI_BEFORE(cli, before, ...)                               \
	do {                                                       \
		cli_start((cli), (before), CLI_ARGV(__VA_ARGS__)); \
		cli_end(cli);                                      \
	} while (0)
#define CLI(cli, ...) CLI_BEFORE(cli, NULL, __VA_ARGS__)

/* Fails unless it is one message with a hint, and this exit code; the text must be in it. */
void cli_expect_error(const struct cli *cli, int status, const char *text);

unsigned int text_count(const char *text, const char *what);
/* Columns of the widest line. */
unsigned int text_width(const char *text);

/* Each number, and a time with its unit, becomes '#': of two runs they may differ. */
void text_without_numbers(char *text);

/* A document, whole and strict; freed with json_object_put(). */
struct json_object *json_of(const char *text);
/* "process.exe.path" of an object, or NULL. */
struct json_object *json_at(struct json_object *object, const char *path);
const char *json_text(struct json_object *object, const char *path);
/* The next line of JSON, and behind it; NULL at the end. */
struct json_object *json_line(const char **text);

/* Whether the world of `sluice run` with this pid is gone: set, cgroup. */
bool run_left_nothing(pid_t pid);
/* The path of its cgroup. */
void run_cgroup(char *out, size_t size, pid_t pid);
/* Pid of its keeper: the child that is no member of its cgroup; 0 when there is none. */
pid_t run_keeper(pid_t pid);

#endif
