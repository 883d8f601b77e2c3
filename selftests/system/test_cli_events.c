/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of JSON: each a document by itself, with the fields that are promised. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "system/cli.h"
#include "system/expect.h"

TestSuite(cli_events, .fini = world_down, .timeout = 120);

static void has(struct json_object *line, const char *path, enum json_type type)
{
	struct json_object *value = json_at(line, path);

	cr_expect_eq(json_object_get_type(value), type, "%s of %s", path,
		     json_object_to_json_string(line));
}

/* "cookie" and ids are decimal strings: they exceed what a double holds. */
static void has_id(struct json_object *line, const char *path)
{
	const char *text = json_text(line, path);

	cr_expect(*text && strspn(text, "0123456789") == strlen(text), "%s of %s", path,
		  json_object_to_json_string(line));
}

static void has_time(struct json_object *line, const char *path)
{
	unsigned int y, mo, d, h, mi, s, ns;
	int end = 0;

	sscanf(json_text(line, path), "%4u-%2u-%2uT%2u:%2u:%2u.%9uZ%n", &y, &mo, &d, &h, &mi, &s,
	       &ns, &end);
	cr_expect_eq(end, 30, "%s of %s", path, json_object_to_json_string(line));
}

static void check_process(struct json_object *line)
{
	has(line, "process.pid", json_type_int);
	has(line, "process.ns_pid", json_type_int);
	has_time(line, "process.start");
	has(line, "process.uid", json_type_int);
	has(line, "process.comm", json_type_string);
	has(line, "process.exe.path", json_type_string);
	has(line, "process.exe.dev", json_type_string);
	has(line, "process.exe.ino", json_type_int);
	has(line, "process.exe.flags", json_type_array);
	has(line, "process.lineage", json_type_array);
	cr_expect(json_object_object_get_ex(json_at(line, "process"), "script", NULL));
	cr_expect(json_object_object_get_ex(json_at(line, "process.exe"), "sha256", NULL));
}

static void check_sock(struct json_object *line, bool established)
{
	has_id(line, "cookie");
	cr_expect_str_eq(json_text(line, "proto"), "tcp");
	cr_expect_str_eq(json_text(line, "family"), "inet");
	has(line, "remote.addr", json_type_string);
	has(line, "remote.port", json_type_int);
	has(line, "original.addr", json_type_string);
	has(line, "original.port", json_type_int);
	cr_expect(json_object_object_get_ex(line, "name", NULL));
	has(line, "bytes_sent", json_type_int);
	has(line, "bytes_received", json_type_int);
	has(line, "process.tid", json_type_int);
	if (established) {
		has(line, "local.addr", json_type_string);
		has(line, "local.port", json_type_int);
	}
}

static void check_close(struct json_object *line, unsigned int port)
{
	check_sock(line, true);
	has(line, "duration_us", json_type_int);
	has_time(line, "since");
	has_time(line, "closed");
	cr_expect_eq(json_object_get_int(json_at(line, "remote.port")), (int)port);
	cr_expect_eq(json_object_get_int(json_at(line, "bytes_sent")), 1000);
	cr_expect_eq(strlen(json_text(line, "process.exe.sha256")), 64);
	cr_expect_str_eq(json_text(line, "process.exe.path"), getenv("SL_LOAD"));
}

struct seen {
	unsigned int exec, connect, established, close, exit;
};

/* All lines of a text, in the order in which they must come. */
static void check_lines(const char *text, unsigned int port, struct seen *seen)
{
	struct json_object *line;
	int pid = 0;

	*seen = (struct seen){ 0 };
	while ((line = json_line(&text))) {
		const char *event = json_text(line, "event");

		has_time(line, "time");
		has(line, "sandbox", json_type_string);
		check_process(line);
		if (!strcmp(event, "exec")) {
			seen->exec++;
			pid = json_object_get_int(json_at(line, "process.pid"));
		} else if (!strcmp(event, "exit")) {
			/* A sanitizer forks when its program ends. */
			seen->exit += json_object_get_int(json_at(line, "process.pid")) == pid;
		} else if (!strcmp(event, "connect")) {
			cr_expect_geq(seen->exec, 1);
			seen->connect++;
			check_sock(line, false);
		} else if (!strcmp(event, "established")) {
			cr_expect_eq(seen->connect, 1);
			seen->established++;
			check_sock(line, true);
		} else if (!strcmp(event, "close")) {
			cr_expect_eq(seen->established, 1);
			seen->close++;
			check_close(line, port);
		}
		json_object_put(line);
	}
}

static void expect_seen(const struct seen *seen)
{
	cr_expect_eq(seen->exec, 1);
	cr_expect_eq(seen->connect, 1);
	cr_expect_eq(seen->established, 1);
	cr_expect_eq(seen->close, 1);
	cr_expect_eq(seen->exit, 1);
}

static char *file_text(const char *path)
{
	_cleanup_file_ FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	cr_assert_not_null(file, "%s", path);
	cr_assert_geq(getdelim(&text, &size, '\0', file), 0);
	return text;
}

Test(cli_events, run_writes_lines, .init = world_up)
{
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	_cleanup_free_ char *text = NULL;
	char to[64], file[128];
	struct seen seen;
	struct cli cli;

	snprintf(to, sizeof(to), "127.0.0.1:%u", port);
	snprintf(file, sizeof(file), "%s/events", world.scratch);
	CLI(&cli, "run", "-q", "--events", file, "--", getenv("SL_LOAD"), "tcp-send", "--server",
	    to, "--bytes", "1000", "--count", "1");
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	text = file_text(file);
	check_lines(text, port, &seen);
	expect_seen(&seen);
	cli_free(&cli);
	/* stdout: the command's own is in between, so it has none. */
	CLI(&cli, "run", "-q", "--events", "-", "--", "sh", "-c", "exec \"$0\" \"$@\" >/dev/null",
	    getenv("SL_LOAD"), "tcp-send", "--server", to, "--bytes", "1000", "--count", "1");
	check_lines(cli.out, port, &seen);
	seen.exec--; /* the shell's */
	expect_seen(&seen);
	cli_free(&cli);
	load_end(&server);
	load_free(&server);
}

static bool is_watched(void *arg)
{
	(void)arg;
	return watched_events() != 0;
}

Test(cli_events, watch_prints_lines, .init = world_up)
{
	struct load server, client;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	struct seen seen;
	struct cli cli;

	cli_start(&cli, NULL,
		  CLI_ARGV("-j", "--set", world.dir, "event", "watch", "--count", "5", "-k",
			   "exec,connect,established,close,exit"));
	cr_assert(eventually(is_watched, NULL));
	load_run(&client, INSIDE, "tcp-send --server 127.0.0.1:%u --bytes 1000 --count 1", port);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	check_lines(cli.out, port, &seen);
	expect_seen(&seen);
	cr_expect_not(is_watched(NULL), "events are still made");
	load_end(&server);
	load_free(&client);
	load_free(&server);
	cli_free(&cli);
}

/* Events have one reader; the first one is not disturbed. */
Test(cli_events, second_watch_is_refused, .init = world_up)
{
	struct cli first, second;

	cli_start(&first, NULL, CLI_ARGV("--set", world.dir, "event", "watch"));
	cr_assert(eventually(is_watched, NULL));
	CLI(&second, "--set", world.dir, "event", "watch");
	cli_expect_error(&second, 1, "another process reads the events");
	cr_expect(is_watched(NULL));
	kill(first.pid, SIGTERM);
	cli_end(&first);
	cr_expect_eq(first.status, 0, "%s", first.err);
	cli_free(&first);
	cli_free(&second);
}

/* A set that is removed does not leave its watcher waiting for ever. */
Test(cli_events, watched_set_is_removed, .init = world_up)
{
	struct cli cli;

	cli_start(&cli, NULL, CLI_ARGV("--set", world.dir, "event", "watch"));
	cr_assert(eventually(is_watched, NULL));
	cr_assert_eq(sl_set_destroy(world.dir, NULL), 0);
	cli_end(&cli);
	cr_expect_eq(cli.status, 1);
	cr_expect_not_null(strstr(cli.err, "was removed"), "%s", cli.err);
	cli_free(&cli);
}

/* A reader that goes away: the command goes on, and the loss is said once. */
Test(cli_events, reader_goes_away, .init = world_up)
{
	char go[128];
	struct cli cli;

	snprintf(go, sizeof(go), "%s/go", world.scratch);
	cli_start(&cli, NULL,
		  CLI_ARGV("run", "-q", "--events", "-", "--", "sh", "-c",
			   "while [ ! -e \"$0\" ]; do sleep 0.01; done; "
			   "echo goes on >&2; exit 3",
			   go));
	cli_await(&cli, "\"event\":\"exec\"");
	sl_cleanup_fd(&cli.fds[0]);
	cr_assert_eq(mkdir(go, 0700), 0);
	cli_end(&cli);
	cr_expect_eq(cli.status, 3);
	cr_expect_not_null(strstr(cli.err, "goes on\n"), "%s", cli.err);
	cr_expect_eq(text_count(cli.err, "\n"), 2, "%s", cli.err);
	cr_expect_eq(text_count(cli.err, "events are missing"), 1, "%s", cli.err);
	cr_expect(run_left_nothing(cli.pid));
	cli_free(&cli);
}

/* S12: what a reader that stands still misses is exactly what is counted as lost. */
Test(cli_events, reader_that_stands_still)
{
	const struct sl_set_options options = { .ring_bytes = 4096 };
	struct json_object *json;
	struct sl_counters now;
	uint64_t read = 0, lost = 0;
	struct load server, churn;
	const char *text;
	unsigned int port;
	struct cli cli;
	int status;

	world_make(&options, true);
	port = server_start(&server, "tcp-server --quiet --fork --count 10000");
	cli_start(&cli, NULL, CLI_ARGV("-j", "--set", world.dir, "event", "watch", "--no-digests"));
	cr_assert(eventually(is_watched, NULL));
	cr_assert_eq(kill(cli.pid, SIGSTOP), 0);
	cr_assert_eq(waitpid(cli.pid, &status, WUNTRACED), cli.pid);
	load_run(&churn, INSIDE, "tcp-churn --server 127.0.0.1:%u --count 200 --rst --quiet", port);
	kill(cli.pid, SIGTERM);
	kill(cli.pid, SIGCONT);
	cli_end(&cli);
	cr_expect_eq(cli.status, 0, "%s", cli.err);
	text = cli.out;
	while ((json = json_line(&text))) {
		if (!strcmp(json_text(json, "event"), "lost"))
			lost += json_object_get_uint64(json_at(json, "count"));
		else
			read++;
		json_object_put(json);
	}
	now = counters();
	cr_expect_gt(lost, 0);
	cr_expect_eq(lost, now.n[SL_COUNTER_EVENT_LOST], "%llu told, %llu counted",
		     (unsigned long long)lost, (unsigned long long)now.n[SL_COUNTER_EVENT_LOST]);
	cr_expect_eq(read, now.n[SL_COUNTER_EVENT_SUBMITTED]);
	/* Each connection opens, connects, is established and closes. */
	cr_expect_geq(read + lost, 200 * 4);
	load_end(&server);
	load_free(&server);
	load_free(&churn);
	cli_free(&cli);
}
