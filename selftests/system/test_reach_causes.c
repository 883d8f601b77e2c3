/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a relay's clients asked for, and why something was not to be had: told to both sides. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "system/guarded.h"
#include "system/reach.h"

TestSuite(reach_causes, .init = reach_up, .fini = reach_down, .timeout = 120);

static const char rules[] =
	"  relayed:\n"
	"    endpoints:\n"
	"      - { host: one.reach.test, ports: [8080, 8081], allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: one.reach.test, port: 5354, transport: udp, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: '*.wild.test', port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { cidr: 192.0.2.11/32, port: 8080 }\n"
	"    binaries: [{ path: /usr/bin/** }]\n";

#define PROXY "p=127.0.0.1:3128\n"

static void expect_text(struct json_object *event, const char *path, const char *wanted)
{
	const char *text = json_object_get_string(json_at(event, path));

	cr_expect_str_eq(text ? text : "", wanted, "%s is %s, not %s", path, text, wanted);
}

/* The event of this kind and name, or fails; both ends as they are told. */
static void expect_event(const char *kind, const char *name, const char *remote,
			 const char *original, const char *port)
{
	struct json_object *event = reach_event(kind, "name", name);

	cr_assert_not_null(event, "no %s of %s", kind, name);
	expect_text(event, "remote.addr", remote);
	expect_text(event, "original.addr", original);
	expect_text(event, "original.port", port);
	expect_text(event, "process.exe.path", "/usr/bin/curl");
	json_object_put(event);
}

/* Who asks the proxy is told by what it asked for, not as one that called 127.0.0.1. */
Test(reach_causes, requests_have_names)
{
	static const char script[] = PROXY
		"curl -sS -m 20 -p -x http://$p http://one.reach.test:8080/\n"
		"curl -sS -m 20 --socks5-hostname $p http://a.wild.test:8080/\n"
		"curl -sS -m 20 -x http://$p http://192.0.2.11:8080/\n"
		"curl -sS -m 20 -x http://$p -o /dev/null http://two.reach.test:8080/\n";
	struct json_object *event;
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	cr_expect_eq(text_count(cli.out, "hello from"), 3, "%s%s", cli.out, cli.err);
	expect_event("request", "one.reach.test", "127.0.0.1", "::", "8080");
	expect_event("close", "one.reach.test", "127.0.0.1", "::", "8080");
	expect_event("request", "a.wild.test", "127.0.0.1", "::", "8080");
	expect_event("close", "a.wild.test", "127.0.0.1", "::", "8080");
	/* One that is denied as well. */
	expect_event("request", "two.reach.test", "127.0.0.1", "::", "8080");
	expect_event("close", "two.reach.test", "127.0.0.1", "::", "8080");
	event = reach_event("close", "original.addr", "192.0.2.11");
	cr_assert_not_null(event);
	expect_text(event, "remote.port", "3128");
	json_object_put(event);
	cr_expect_not_null(strstr(cli.err, " one.reach.test:8080 "), "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, " 192.0.2.11:8080 "), "%s", cli.err);
	cr_expect_null(strstr(cli.err, "127.0.0.1:3128"), "%s", cli.err);
	cli_free(&cli);
}

/* A socket that is connected anew has not asked for what its connection before did. */
Test(reach_causes, request_ends_with_its_connection)
{
	static const char script[] =
		"/usr/bin/python3 - <<'END'\n"
		"import ctypes, socket\n"
		"s = socket.create_connection(('127.0.0.1', 3128))\n"
		"s.sendall(b'GET http://one.reach.test:8080/ HTTP/1.0\\r\\n\\r\\n')\n"
		"while s.recv(65536): pass\n"
		"ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)\n"
		"s.connect(('192.0.2.11', 8080))\n"
		"s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
		"print('again:', 'hello from' in s.makefile().read(), flush=True)\n"
		"END\n";
	struct json_object *event;
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	reach_expect(&cli, "again: True");
	event = reach_event("request", "name", "one.reach.test");
	cr_expect_not_null(event);
	json_object_put(event);
	event = reach_event("close", "remote.addr", "192.0.2.11");
	cr_assert_not_null(event);
	expect_text(event, "original.addr", "192.0.2.11");
	expect_text(event, "name", "");
	json_object_put(event);
	cli_free(&cli);
}

static void expect_unreachable(const char *name, const char *error, const char *state,
			       const char *remote)
{
	struct json_object *event = reach_event("unreachable", "name", name);

	cr_assert_not_null(event, "nothing of %s", name);
	expect_text(event, "error", error);
	expect_text(event, "state", state);
	expect_text(event, "remote.addr", remote);
	expect_text(event, "process.exe.path", "/usr/bin/curl");
	json_object_put(event);
}

/* A row of the table at the end, whatever the columns' widths. */
static void expect_row(const char *text, const char *to, const char *error, const char *why,
		       unsigned int count)
{
	const char *line = strstr(text, "could not be made\n");
	char wanted[256], got[256] = "";
	size_t used = 0;

	line = line ? strstr(line, to) : NULL;
	cr_assert_not_null(line, "no %s in: %s", to, text);
	for (size_t i = 0; line[i] && line[i] != '\n' && used < sizeof(got) - 1; i++)
		if (line[i] != ' ' || line[i + 1] != ' ')
			got[used++] = line[i];
	snprintf(wanted, sizeof(wanted), "%s %s %s %u", to, error, why, count);
	cr_expect_str_eq(got, wanted, "%s", text);
}

/* Nobody listens there, or the name is none: the event, the answer and the report say so. */
Test(reach_causes, unreachable)
{
	static const char script[] = PROXY
		/* With one address only: some are reset before curl gives up on the other. */
		"curl -4 -sS -m 20 http://one.reach.test:8081/\n"
		"curl -4 -sS -m 20 http://one.reach.test:8081/\n"
		"curl -sS -m 20 -x http://$p http://one.reach.test:8081/\n"
		"curl -sS -m 20 -x http://$p http://none.wild.test:8080/\n";
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	cr_expect_not_null(strstr(cli.out, "{\"reason\":\"refused\",\"host\":\"one.reach.test\","
					   "\"port\":8081,\"error\":\"ECONNREFUSED\",\"hint\":"
					   "\"192.0.2.10:8081: Connection refused\"}"),
			   "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "\"hint\":\"there is no such name\"}"), "%s", cli.out);
	expect_unreachable("one.reach.test", "ECONNREFUSED", "refused", "192.0.2.10");
	expect_unreachable("none.wild.test", "ENOENT", "failed", "::");
	cr_expect_not_null(strstr(cli.err, "sluice: 4 connections or look-ups could not be made\n"),
			   "%s", cli.err);
	expect_row(cli.err, "one.reach.test (192.0.2.10:8081)", "ECONNREFUSED",
		   "Connection refused", 3);
	expect_row(cli.err, "none.wild.test:8080", "ENOENT", "there is no such name", 1);
	cli_free(&cli);
}

/* Programs without a proxy say nothing of why a name has no address: here it is told. */
static void expect_failed_look_up(enum reach_net net)
{
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, net, "curl -4 -sS -m 20 http://none.wild.test:8080/\n");
	expect_unreachable("none.wild.test", "ENOENT", "failed", "");
	expect_row(cli.err, "none.wild.test", "ENOENT", "there is no such name", 1);
	cli_free(&cli);
}

Test(reach_causes, failed_look_up)
{
	expect_failed_look_up(REACH_RELAY);
}

Test(reach_causes, failed_look_up_direct)
{
	expect_failed_look_up(REACH_DIRECT);
}

/* No server answers: each question is told, by whoever asked it. */
Test(reach_causes, no_server_answers)
{
	struct cli cli;

	reach_policy(rules);
	cr_assert_eq(kill(reach_dns_pid(), SIGSTOP), 0);
	reach_run(&cli, REACH_RELAY, "curl -4 -sS -m 30 http://one.reach.test:8080/\n");
	cr_assert_eq(kill(reach_dns_pid(), SIGCONT), 0);
	expect_unreachable("one.reach.test", "ETIMEDOUT", "timed-out", "");
	cr_expect_not_null(strstr(cli.err, "no DNS server answered"), "%s", cli.err);
	cli_free(&cli);
}

/* What was no request: the client is told what is wrong with it, the operator how many. */
Test(reach_causes, bad_requests)
{
	static const char script[] =
		"/usr/bin/python3 - <<'END'\n"
		"import socket\n"
		"for head in (b'CONNECT one.reach.test:99999 HTTP/1.1\\r\\n\\r\\n', b'GET /\\r\\n\\r\\n'):\n"
		"    s = socket.create_connection(('127.0.0.1', 3128))\n"
		"    s.sendall(head)\n"
		"    print(s.makefile().read())\n"
		"END\n";
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	cr_expect_not_null(strstr(cli.out, "{\"reason\":\"bad-port\",\"hint\":\"the port is no "
					   "number from 1 to 65535\"}"),
			   "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "{\"reason\":\"request-line\","), "%s", cli.out);
	cr_expect_eq(text_count(cli.err, "2 requests to the proxy in the sandbox were malformed"),
		     1, "%s", cli.err);
	cr_expect_null(strstr(cli.err, "proxy_bad_request"), "%s", cli.err);
	cli_free(&cli);
}

/* The line that a denied client is shown works as it is shown. */
Test(reach_causes, hint_works)
{
	static const char script[] = PROXY
		"curl -sS -m 20 -x http://$p http://two.reach.test:8080/ | "
		"sed 's/.*`\\(.*\\)`.*/hint: \\1/'\n"
		"echo; echo ready; read x < " REACH_DIR "/go\n";
	char command[512] = "", *argv[16] = { NULL };
	struct cli cli, list;
	unsigned int n = 0;
	char *rest = command;

	reach_policy(rules);
	cr_assert_eq(mkfifo(REACH_DIR "/go", 0644), 0);
	reach_start(&cli, REACH_RELAY, NULL, script);
	cli_await(&cli, "ready\n");
	cr_assert_eq(sscanf(cli.out, "hint: %511[^\n]", command), 1, "%s", cli.out);
	while (n < ARRAY_SIZE(argv) - 1 && (argv[n] = strsep(&rest, " ")))
		n++;
	cr_expect_str_eq(argv[0], "sluice");
	cli_start(&list, NULL, (const char *const *)argv);
	cli_end(&list);
	cr_expect_eq(list.status, 0, "%s", list.err);
	cr_expect_not_null(strstr(list.out, "two.reach.test"), "%s%s", list.out, list.err);
	cli_free(&list);
	reach_file("go", "\n", 0644);
	cli_end(&cli);
	cli_free(&cli);
}
