/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names that no DNS is asked for: those of hosts(5), localhost, and what is no name at all. */
#include <criterion/criterion.h>
#include <string.h>

#include "system/guarded.h"
#include "system/reach.h"

TestSuite(reach_hosts, .init = reach_up, .fini = reach_down, .timeout = 120);

static const char rules[] =
	"  relayed:\n"
	"    endpoints:\n"
	"      - { host: hosted.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: here.reach.test, port: 8080 }\n"
	"      - { cidr: 192.0.2.10/32, port: 8080 }\n"
	"    binaries: [{ path: /usr/bin/** }]\n";

#define PROXY "p=127.0.0.1:3128\n"

/* A program with a proxy reaches what one without does. */
Test(reach_hosts, by_every_way)
{
	static const char script[] = PROXY
		"curl -sS -m 20 http://hosted.reach.test:8080/\n"
		"curl -sS -m 20 -p -x http://$p http://hosted.reach.test:8080/\n"
		"curl -sS -m 20 -x http://$p http://HOSTED.reach.test.:8080/\n"
		"curl -sS -m 20 --socks5-hostname $p http://hosted.reach.test:8080/\n";
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	cr_expect_eq(text_count(cli.out, "hello from"), 4, "%s%s", cli.out, cli.err);
	cr_expect_not(reach_asked("hosted.reach.test"));
	cli_free(&cli);
}

/*
 * A name at 127.0.0.1 is denied for what it is, and is not what others are called that go by
 * an address to the proxy there.
 */
Test(reach_hosts, at_loopback)
{
	static const char script[] = PROXY
		"curl -sS -m 20 -x http://$p http://here.reach.test:8080/\n"
		"curl -sS -m 20 -p -x http://$p http://192.0.2.10:8080/\n"
		"curl -sS -m 20 http://192.0.2.10:8080/\n";
	struct json_object *event;
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	cr_expect_not_null(strstr(cli.out, "{\"reason\":\"reserved-address\","
					   "\"host\":\"here.reach.test\""),
			   "%s", cli.out);
	cr_expect_eq(text_count(cli.out, "hello from"), 2, "%s%s", cli.out, cli.err);
	event = reach_event("request", "original.addr", "192.0.2.10");
	cr_assert_not_null(event);
	cr_expect_null(json_at(event, "name"));
	json_object_put(event);
	event = reach_event("close", "original.addr", "192.0.2.10");
	cr_assert_not_null(event);
	cr_expect_null(json_at(event, "name"));
	json_object_put(event);
	cr_expect_not(reach_asked("here.reach.test"));
	cli_free(&cli);
}

/* RFC 6761, 6.3. What is told to add is a rule that can match. */
Test(reach_hosts, localhost)
{
	static const char script[] = PROXY "curl -sS -m 20 -x http://$p http://localhost:8080/\n"
					   "curl -sS -m 20 -x http://$p http://a.localhost:8080/\n";
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	cr_expect_eq(text_count(cli.out, "{\"reason\":\"reserved-address\""), 2, "%s", cli.out);
	cr_expect_not_null(strstr(cli.err, "add to 'relayed': endpoints: [{cidr: \"127.0.0.1/32\", "
					   "port: 8080, allow_reserved: true}]"),
			   "%s", cli.err);
	cr_expect_not(reach_asked("localhost"));
	cli_free(&cli);
}

/* Forms of an address that only inet_aton(3) takes are told as they were asked. */
Test(reach_hosts, neither_name_nor_address)
{
	static const char script[] =
		"/usr/bin/python3 - <<'END'\n"
		"import socket\n"
		"for host in (b'2130706433', b'0x7f.1', b'127.1', b'0177.0.0.1'):\n"
		"    s = socket.create_connection(('127.0.0.1', 3128))\n"
		"    s.sendall(b'CONNECT ' + host + b':22 HTTP/1.0\\r\\n\\r\\n')\n"
		"    print(s.makefile().read())\n"
		"END\n";
	struct cli cli;

	reach_policy(rules);
	reach_run(&cli, REACH_RELAY, script);
	cr_expect_eq(text_count(cli.out, "\"hint\":\"neither a name nor an address as a.b.c.d or "
					 "IPv6: no rule can have it\"}"),
		     4, "%s", cli.out);
	cr_expect_not_null(strstr(cli.err, "2130706433"), "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "0x7f.1"), "%s", cli.err);
	cr_expect_null(strstr(cli.err, "unmapped-name"), "%s", cli.err);
	cli_free(&cli);
}
