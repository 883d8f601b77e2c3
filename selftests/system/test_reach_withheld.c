/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses that a name has and may not have: who is told what, and what helps. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "system/guarded.h"
#include "system/reach.h"

#define BOTH_NETS(net) for (enum reach_net net = REACH_DIRECT; net <= REACH_RELAY; net++)

TestSuite(reach_withheld, .init = reach_up, .fini = reach_down, .timeout = 120);

static const char web[] =
	"  web:\n"
	"    endpoints:\n"
	"      - { host: '*.bare.test', port: 8080 }\n"
	"      - { host: own.reach.test, ports: [8080, '9000-9001'] }\n"
	"      - { host: hosted.reach.test, port: 8080 }\n"
	"      - { host: loop.reach.test, port: 8080 }\n"
	"      - { host: one.reach.test, port: 8080, allowed_ips: [192.0.2.10] }\n"
	"    binaries: [{ path: /usr/bin/curl }]\n";

/* What is told of these; with a port for one that is known, else those of the rule. */
#define HINT_PRIVATE(ports)                                                       \
	"if it may lead to 10.0.0.5 (private), add to 'web': endpoints: [{host: " \
	"p.bare.test, " ports ", allowed_ips: [\"10.0.0.5/32\"]}]"
#define HINT_OWN(host, addr, ports)                                                               \
	"if it may lead to " addr " (this machine's own), add to 'web': endpoints: [{host: " host \
	", " ports ", allowed_ips: [\"" addr "/32\"]}]"
#define HINT_LOOPBACK                                                                           \
	"no name may lead to 127.0.0.1 (loopback): that takes a `cidr` of just such addresses " \
	"with `allow_reserved: true`"

static void expect_told(const struct cli *cli, const char *name, const char *proto,
			const char *addr, const char *hint)
{
	struct json_object *event = reach_event("decision", "name", name);
	char line[512];

	cr_assert_not_null(event, "no decision on %s: %s", name, cli->err);
	cr_expect_str_eq(json_text(event, "verdict"), "deny");
	cr_expect_str_eq(json_text(event, "reason"), "reserved-address");
	cr_expect_str_eq(json_text(event, "proto"), proto);
	cr_expect_str_eq(json_text(event, "remote.addr"), addr);
	cr_expect_str_eq(json_text(event, "process.exe.path"), "/usr/bin/curl");
	json_object_put(event);
	cr_expect_not_null(strstr(cli->err, hint), "no '%s' in: %s", hint, cli->err);
	/* The table at the end. */
	snprintf(line, sizeof(line), "  %s (%s", name, addr);
	cr_expect_not_null(strstr(cli->err, line), "no '%s' in: %s", line, cli->err);
}

/* Answers without what their name may not have, told as what the client was denied. */
Test(reach_withheld, answers)
{
	static const char script[] =
		"for n in p.bare own.reach loop.reach hosted.reach one.reach; do\n"
		"	text=$(curl -sS -m 20 http://$n.test:8080/ 2>/dev/null)\n"
		"	echo \"$n: $text $?\"\n"
		"done\n";
	struct sink private, loop;
	struct cli cli;

	sink_open(&private, false, "10.0.0.5", 8080);
	sink_open(&loop, false, "127.0.0.1", 8080);
	reach_policy(web);
	BOTH_NETS(net)
	{
		reach_run(&cli, net, script);
		/* 6: it has no address. 7: no connection, since hosts(5) was not asked of us. */
		reach_expect(&cli, "p.bare:  6");
		reach_expect(&cli, "own.reach:  6");
		reach_expect(&cli, "loop.reach:  6");
		reach_expect(&cli, "hosted.reach:  7");
		reach_expect(&cli, "one.reach: hello from 192.0.2.10 0");
		expect_told(&cli, "p.bare.test", "dns", "10.0.0.5", HINT_PRIVATE("port: 8080"));
		expect_told(&cli, "own.reach.test", "dns", "192.0.2.10",
			    HINT_OWN("own.reach.test", "192.0.2.10",
				     "ports: [8080, \"9000-9001\"]"));
		expect_told(&cli, "loop.reach.test", "dns", "127.0.0.1", HINT_LOOPBACK);
		expect_told(&cli, "hosted.reach.test", "tcp", "192.0.2.11",
			    HINT_OWN("hosted.reach.test", "192.0.2.11", "port: 8080"));
		cr_expect_null(reach_event("decision", "name", "one.reach.test"));
		cr_expect_eq(sink_take(&private) + sink_take(&loop), 0);
		cli_free(&cli);
	}
}

/* Equal ones are one, with their number; and what is told to add is enough. */
Test(reach_withheld, repeated_and_helped)
{
	static const char script[] = "for i in 1 2 3 4; do getent ahostsv4 own.reach.test; done\n";
	static const char helped[] =
		"  web:\n"
		"    endpoints: [{host: own.reach.test, ports: [8080, \"9000-9001\"],\n"
		"      allowed_ips: [\"192.0.2.10/32\"]}]\n"
		"    binaries: [{ path: /usr/bin/curl }]\n";
	static const char get[] = "curl -sS -m 20 http://own.reach.test:8080/\n";
	struct cli cli;

	reach_policy(web);
	reach_run(&cli, REACH_DIRECT, script);
	/* A line when it begins; the others are counted. */
	cr_expect_eq(text_count(cli.err, "denied: /usr/bin/getent["), 1, "%s", cli.err);
	cr_expect_not_null(strstr(cli.err, "sluice: 4 denied\n"), "%s", cli.err);
	cli_free(&cli);
	reach_policy(helped);
	BOTH_NETS(net)
	{
		reach_run(&cli, net, get);
		cr_expect_str_eq(cli.out, "hello from 192.0.2.10\n", "%s%s", cli.out, cli.err);
		cli_free(&cli);
	}
}

/* Names that the supervisor looks up: told as it starts, and denied on the way. */
Test(reach_withheld, looked_up_by_the_supervisor)
{
	static const char names[] =
		"  web:\n"
		"    endpoints:\n"
		"      - { host: own.reach.test, port: 8080 }\n"
		"      - { host: left.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
		"      - { cidr: 192.0.2.53/32, port: 53, transport: udp }\n"
		"    binaries: [{ path: /usr/bin/curl }]\n";
	static const char script[] =
		"text=$(curl -sS -m 20 http://own.reach.test:8080/ 2>/dev/null)\n"
		"echo \"own: $text $?\"\n";
	static const char listed[] =
		"echo \"left: $(curl -sS -m 20 http://left.reach.test:8080/ 2>&1)\"\n";
	struct json_object *event;
	struct cli cli;

	/* Both have the same address, and whoever has it by one of them has it. */
	reach_policy(names);
	reach_start(&cli, REACH_DIRECT, REACH_WITH("--dns", "host"), listed);
	cli_end(&cli);
	reach_expect(&cli, "left: hello from 192.0.2.10");
	cr_expect_not_null(strstr(cli.err, "1 of 2 addresses of names are not for them; "
					   "'own.reach.test': " HINT_OWN(
						   "own.reach.test", "192.0.2.10", "port: 8080")),
			   "%s", cli.err);
	cli_free(&cli);
	reach_policy("  web:\n"
		     "    endpoints:\n"
		     "      - { host: own.reach.test, port: 8080 }\n"
		     "      - { cidr: 192.0.2.53/32, port: 53, transport: udp }\n"
		     "    binaries: [{ path: /usr/bin/curl }]\n");
	reach_start(&cli, REACH_DIRECT, REACH_WITH("--dns", "host"), script);
	cli_end(&cli);
	reach_expect(&cli, "own:  7");
	event = reach_event("decision", "remote.addr", "192.0.2.10");
	cr_expect_not_null(event, "%s", cli.err);
	cr_expect_str_eq(json_text(event, "reason"), "reserved-address");
	json_object_put(event);
	cli_free(&cli);
}

/* A client of the explicit proxy is told the same. */
Test(reach_withheld, explicit_proxy)
{
	static const char script[] =
		"get() { echo \"$1: $(shift; curl -sS -m 20 -x http://127.0.0.1:3128 \"$@\" 2>&1)\"; }\n"
		"get private -w '%{http_code}' http://p.bare.test:8080/\n"
		"get own -w '%{http_code}' http://own.reach.test:9000/\n"
		"get loop -w '%{http_code}' http://loop.reach.test:8080/\n"
		"get one http://one.reach.test:8080/\n";
	struct cli cli;
	char *at;

	reach_policy(web);
	reach_run(&cli, REACH_RELAY, script);
	reach_expect(&cli, "one: hello from 192.0.2.10");
	cr_expect_eq(text_count(cli.out, "\n403\n"), 3, "%s", cli.out);
	cr_expect_eq(text_count(cli.out, ": {\"reason\":\"reserved-address\",\"host\":\""), 3, "%s",
		     cli.out);
	expect_told(&cli, "p.bare.test", "tcp", "10.0.0.5", HINT_PRIVATE("port: 8080"));
	expect_told(&cli, "own.reach.test", "tcp", "192.0.2.10",
		    HINT_OWN("own.reach.test", "192.0.2.10", "port: 9000"));
	expect_told(&cli, "loop.reach.test", "tcp", "127.0.0.1", HINT_LOOPBACK);
	/* As JSON has it. */
	while ((at = strstr(cli.out, "\\\"")))
		memmove(at, at + 1, strlen(at));
	cr_expect_not_null(strstr(cli.out, HINT_PRIVATE("port: 8080")), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, HINT_OWN("own.reach.test", "192.0.2.10", "port: 9000")),
			   "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, HINT_LOOPBACK), "%s", cli.out);
	cli_free(&cli);
}
